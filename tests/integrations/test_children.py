"""A child of a population goes on from its parent's state in the scale of its own learning rate, in every library."""

from pathlib import Path

import pytest
from tests.integrations.children import TRAININGS
from tests.integrations.modules import HUSHED
from tests.train.loops import training_context

OF_KERAS = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
OF_LIGHTNING = pytest.mark.filterwarnings("ignore:The dirpath has changed")  # its ModelCheckpoint begins anew
pytestmark = [pytest.mark.timeout(120), OF_KERAS, OF_LIGHTNING, *HUSHED]


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("lightning", "epoch 2 in its scale 0.2500"),
        ("keras", "epoch 2 in its scale 0.2500"),
        ("transformers", "epoch 2 in its scale 0.3333"),
    ],
)
def test_a_child_goes_on_in_the_scale_of_its_own_learning_rate(
    by: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def trained(first: float) -> list[str]:
        TRAININGS[by](first)
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("epoch ")]

    with training_context() as context:
        context.result_dir, context.keep_every = tmp_path / "parent", 2
        parent = trained(0.1)
    with training_context() as context:
        context.result_dir, context.own_numbers = tmp_path / "child", True
        context.resume_from = tmp_path / "parent" / "checkpoint" / "epoch-2"
        child = trained(0.02)
    assert parent[0] == "epoch 0 in its scale 1.0000"
    assert child[0] != parent[0]
    assert (parent[-1], child[-1]) == (said, said)
