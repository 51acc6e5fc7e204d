"""Scripts that log to trackers by themselves are told that every task runs them."""

from pathlib import Path

import pytest

from pliant.control.kinds.elastic import own_logging
from pliant.control.kinds.elastic.own_logging import note_own_logging

PLIANT = "from pliant.train import Run\n"
WRITER = PLIANT + "from torch.utils.tensorboard import SummaryWriter\n"


def notes(folder: Path, text: str, *, num_tasks: int = 4, is_tracked: bool = True) -> tuple[str, ...]:
    script = folder / "train.py"
    script.write_text(text)
    return note_own_logging(script, num_tasks=num_tasks, is_tracked=is_tracked)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (WRITER, "TensorBoard files"),
        (PLIANT + "import mlflow\n", "MLflow"),
        (PLIANT + "import mlflow.pytorch, tensorboardX\n", "MLflow and TensorBoard files"),
    ],
)
def test_every_task_would_log(tmp_path: Path, text: str, what: str) -> None:
    (note,) = notes(tmp_path, text)
    assert note.startswith(f"train.py logs to {what} itself, and every task runs it: log `if run.leads:` only")
    assert not notes(tmp_path, text, num_tasks=1)
    assert not notes(tmp_path, text + "if run.leads:\n    pass\n")


def test_a_script_that_writes_histograms_is_told_how_they_become_the_jobs(tmp_path: Path) -> None:
    assert notes(tmp_path, WRITER)[0].endswith("report with run.log(name=value)")
    (note,) = notes(tmp_path, WRITER + "SummaryWriter().add_histogram('fc1', values, 7)\n")
    assert note.endswith("report with run.log(name=value) and run.log_histogram(name, values)")


def test_what_a_script_logs_to_w_and_b_is_off_unless_it_is_left_to_it(tmp_path: Path) -> None:
    (note,) = notes(tmp_path, PLIANT + "import wandb\n", num_tasks=1)
    assert "what the script logs is off" in note
    assert "--no-tracking" in note
    (note,) = notes(tmp_path, PLIANT + "import wandb\n", is_tracked=False)
    assert note.startswith("train.py logs to W&B itself")
    assert not notes(tmp_path, PLIANT + "import wandb\nrun.leads\n", is_tracked=False)


def test_of_other_scripts_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not notes(tmp_path, PLIANT)
    assert not notes(tmp_path, "import (")
    monkeypatch.setattr(own_logging, "MAX_SOURCE_BYTES", 10)
    assert not notes(tmp_path, WRITER)
