"""What cannot be elastic is refused by the name of the argument, before anything is trained."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.integrations.transformers.small import make

from pliant.integrations.transformers import elastic
from pliant.integrations.transformers.refusals import check_elastic
from pliant.train import TrainingError
from transformers import Trainer


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"auto_find_batch_size": True}, "auto_find_batch_size=True changes the batch"),
        ({"train_sampling_strategy": "batch_rebalance"}, "use 'group_by_length'"),
        ({"enable_jit_checkpoint": True}, "enable_jit_checkpoint=True saves"),
    ],
)
def test_an_argument_that_fixes_the_workers_is_refused(arguments: dict[str, Any], what: str, tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=f"this Trainer cannot be elastic: .*{what}"):
        elastic(make(tmp_path, **arguments))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("deepspeed", "zero3.json"),
        ("fsdp", "full_shard"),
        ("parallelism_config", SimpleNamespace(tp_size=2)),
        ("optim", "lomo"),
        ("optim", "galore_adamw_layerwise"),
        ("optim", "schedule_free_adamw"),
    ],
)
def test_what_needs_packages_that_are_not_here_is_refused_by_its_name(name: str, value: Any, tmp_path: Path) -> None:
    trainer = make(tmp_path)
    setattr(trainer.args, name, value)

    with pytest.raises(TrainingError, match=f"this Trainer cannot be elastic: {name}"):
        check_elastic(trainer)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make(tmp_path, auto_find_batch_size=True)
    trainer.is_model_parallel = True
    monkeypatch.setenv("WORLD_SIZE", "2")

    with pytest.raises(TrainingError, match=r"WORLD_SIZE is 2.*device_map.*auto_find_batch_size"):
        elastic(trainer)


class OwnLoop(Trainer):
    def _inner_training_loop(self, *args: Any, **kwargs: Any) -> Any:
        return super()._inner_training_loop(*args, **kwargs)


def test_a_loop_of_its_own_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="OwnLoop has a _inner_training_loop of its own"):
        elastic(make(tmp_path, cls=OwnLoop))


def test_searches_and_trials_are_refused(tmp_path: Path) -> None:
    trainer = elastic(make(tmp_path))

    with pytest.raises(TrainingError, match="submit an array of jobs"):
        trainer.hyperparameter_search(direction="minimize")
    with pytest.raises(TrainingError, match="trial: "):
        trainer.train(trial={"learning_rate": 1.0})


def test_only_a_trainer_becomes_elastic_and_only_once(tmp_path: Path) -> None:
    trainer = make(tmp_path)

    assert elastic(elastic(trainer)) is trainer
    with pytest.raises(TrainingError, match=r"elastic\(\) got a dict; give it a transformers.Trainer"):
        elastic({})
