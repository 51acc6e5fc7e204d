"""What stands below the cell of a training."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pliant.core.job import Job, JobSpec, Metric, Progress
from pliant.core.lifecycle import JobState
from pliant.ibm.notebook.show import ACCURACY, LOSS, Cell, chart, progress_line

SPEC = JobSpec(name="notebook", script="train_sent.py", virtual_workers=4, max_tasks=4)
JOB = Job(
    id="job-7",  # type: ignore[arg-type]
    spec=SPEC,
    owner="ada",
    state=JobState.PENDING,
    priority=5000,
    min_tasks=1,
    max_tasks=4,
    submitted_at=0.0,
    why="waits: all 8 slots are held",
)
PROGRESS = Progress(epoch=2, num_epochs=5, step=30, num_steps=75, samples=960, samples_per_s=9.0, loss=0.21447)
RUNNING = replace(JOB, state=JobState.RUNNING, num_slots=4, progress=PROGRESS)


class Handle:
    """Keeps what was shown in its place, as a notebook does."""

    def __init__(self, shown: object) -> None:
        self.all = [shown]

    def update(self, shown: object) -> None:
        self.all.append(shown)


def points(step: int) -> Iterator[Metric]:
    for name, value in ((LOSS, 1.0 / step), (ACCURACY, 0.5)):
        yield Metric(job_id=JOB.id, name=name, step=step, epoch=0, value=value, at=0.0)


def test_the_line_says_how_far_it_is() -> None:
    assert progress_line(JOB) == "job-7 is pending: waits: all 8 slots are held"
    assert progress_line(RUNNING) == "job-7 is running on 4 slots: epoch 3/5, loss 0.2145"
    ended = replace(RUNNING, state=JobState.COMPLETED, num_slots=0, progress=replace(PROGRESS, epoch=5, loss=None))
    assert progress_line(ended) == "job-7 is completed: epoch 5/5"


def test_a_cell_has_one_line_and_one_chart_that_change_in_place() -> None:
    shown: list[Handle] = []

    def display(what: object) -> Any:
        shown.append(Handle(what))
        return shown[-1]

    cell = Cell(display)
    assert cell.last_step == -1
    cell.show(JOB, [])
    cell.show(RUNNING, list(points(4)))
    cell.show(RUNNING, list(points(8)))
    assert cell.last_step == 8
    line, drawn = shown
    assert [repr(one) for one in line.all] == [progress_line(JOB), progress_line(RUNNING)]
    pictures = [one._repr_png_() for one in drawn.all]  # type: ignore[attr-defined]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]


def test_outside_of_a_notebook_a_line_is_printed_when_state_or_size_change(capsys: pytest.CaptureFixture[str]) -> None:
    cell = Cell(None)
    for job in (JOB, RUNNING, replace(RUNNING, progress=replace(PROGRESS, loss=0.1)), replace(RUNNING, num_slots=1)):
        cell.show(job, list(points(4)))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "job-7 is pending",
        "job-7 is running on 4 slots",
        "job-7 is running on 1 slot",
    ]


def test_a_chart_without_an_accuracy_has_one_axis() -> None:
    assert chart({LOSS: [(1, 2.0), (2, 1.0)], ACCURACY: []}).startswith(b"\x89PNG")
