"""Where the `train` of a notebook trains, and with how many tasks."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pliant.core.errors import InvalidInput, Unavailable
from pliant.ibm.notebook import FabricModel
from pliant.ibm.notebook.model import job_fields


def a_model(**more: Any) -> FabricModel:
    torch.manual_seed(3)
    net = nn.Linear(2, 2)
    x = torch.arange(16.0).reshape(8, 2)
    data = torch.utils.data.TensorDataset(x, (x[:, 0] > 7).long())
    return FabricModel(net, lambda: (data, None), nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), 0.1), **more)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for which no server runs."""
    for name in ("PLIANT_URL", "PLIANT_TOKEN", "DATA_DIR", "RESULT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLIANT_HOME", str(tmp_path))
    return tmp_path


def fields(submit: dict[str, Any] | None = None, **schedule: int) -> dict[str, Any]:
    return job_fields({"engines_number": None, "effective_batch_size": None, **schedule}, submit or {})


def test_a_script_trains_here_though_a_server_may_be_known(nowhere: Path) -> None:
    fabric = a_model()
    before = [one.clone() for one in fabric.model.parameters()]
    fabric.train(1, 4, 2)
    assert not any(map(torch.equal, before, fabric.model.parameters()))
    assert Path(fabric.download(str(nowhere))).is_file()


def test_who_wants_a_server_and_has_none_is_told(nowhere: Path) -> None:
    with pytest.raises(Unavailable, match="no server runs for"):
        a_model().train(1, 4, 2, submit=True)


def test_as_many_tasks_as_engines_or_as_a_batch_has_parts(nowhere: Path) -> None:
    assert fields(engines_number=16)["max_tasks"] == 16
    assert fields()["max_tasks"] == 8
    assert fields(effective_batch_size=3)["max_tasks"] == 3
    assert fields(effective_batch_size=300)["max_tasks"] == 8
    assert fields({"max_tasks": 2, "queue": "q"}, engines_number=4) == {
        "name": "notebook",
        "script": "train_sent.py",
        "max_tasks": 2,
        "queue": "q",
    }


def test_the_data_of_the_notebook_are_those_of_the_job(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", "/data/digits")
    assert fields()["data_dir"] == "/data/digits"
    assert "data_dir" not in fields({"dataset": "digits"})


def test_what_is_wrong_is_told_before_a_server_is_asked(nowhere: Path) -> None:
    with pytest.raises(TypeError, match="unknown keyword"):
        a_model(modle=1)
    with pytest.raises(TypeError, match="unknown keyword"):
        a_model().train(1, 4, 2, engines=3)
    with pytest.raises(InvalidInput, match="epoch_number"):
        a_model().train(0, 4, 2)
