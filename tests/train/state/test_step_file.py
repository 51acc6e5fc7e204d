"""What a task notes of its step is there after it was killed."""

import multiprocessing
import os
import signal
from pathlib import Path

from pliant.files import step_file
from pliant.train.state.step_file import StepFile


def train_until_killed(folder: Path) -> None:
    noted = StepFile(folder)
    for step in range(1, 8):
        noted.write(step)
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_step_of_a_task_outlives_its_kill(tmp_path: Path) -> None:
    task = multiprocessing.get_context("fork").Process(target=train_until_killed, args=(tmp_path / "log",))
    task.start()
    task.join(30)

    assert task.exitcode == -signal.SIGKILL
    assert step_file.read(tmp_path / "log") == 7


def test_only_the_newest_step_is_kept(tmp_path: Path) -> None:
    noted = StepFile(tmp_path)
    for step in (1_000_000, 3):
        noted.write(step)
    noted.close()

    assert step_file.read(tmp_path) == 3
    assert (tmp_path / step_file.NAME).stat().st_size == 8


def test_a_task_that_never_committed_has_no_position(tmp_path: Path) -> None:
    assert step_file.read(tmp_path) is None
    (tmp_path / step_file.NAME).write_bytes(b"torn")
    assert step_file.read(tmp_path) is None


def test_a_folder_that_cannot_be_written_does_not_stop_the_training(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file where the folder should be")

    noted = StepFile(tmp_path / "log")
    noted.write(1)
    noted.close()

    assert step_file.read(tmp_path / "log") is None
