"""What the leader tells of a training."""

from collections.abc import Callable

import pytest

from pliant.core.link import EpochFinished, FromTask, Report
from pliant.train.data.sharding import ShardingPlan
from pliant.train.report import Reporter
from pliant.train.state.claim import TrainingClaim


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sent() -> list[FromTask]:
    return []


@pytest.fixture
def make(clock: Clock, sent: list[FromTask]) -> Callable[[], Reporter]:
    """Give a function that makes the reporter of one task; all send to one server."""

    def reporter() -> Reporter:
        plan = ShardingPlan(num_samples=100, batch_size=10, virtual_workers=2)
        standing = TrainingClaim(level="exact", fingerprint="torch")
        return Reporter(send=sent.append, now=clock, plan=plan, claim=standing, num_epochs=2)

    return reporter


def reports(sent: list[FromTask]) -> list[Report]:
    return [message for message in sent if isinstance(message, Report)]


def test_points_are_means_since_the_point_before(
    make: Callable[[], Reporter], clock: Clock, sent: list[FromTask]
) -> None:
    reporter = make()
    for step, loss in enumerate((5.0, 4.0, 3.0, 2.0), start=1):
        reporter.commit({"loss": loss}, step=step, generation=1, leads=True)
        clock.at += 0.1
    first, second = reports(sent)
    assert [(point.name, point.step, point.value) for point in first.points] == [("loss", 1, 5.0)]
    (point,) = second.points
    assert (point.name, point.step) == ("loss", 4)
    assert point.value == pytest.approx(3.0)
    assert (second.progress.step, second.progress.samples, second.progress.loss) == (4, 40, 2.0)


def test_the_first_step_of_a_generation_is_told_at_once_and_its_pause_is_not_its_speed(
    make: Callable[[], Reporter], clock: Clock, sent: list[FromTask]
) -> None:
    reporter = make()
    for step in range(1, 5):
        reporter.commit({"loss": 1.0}, step=step, generation=1, leads=True)
        clock.at += 0.1
    clock.at += 60.0
    reporter.commit({"loss": 1.0}, step=5, generation=3, leads=True)
    assert [(report.generation, report.progress.step) for report in reports(sent)] == [(1, 1), (1, 4), (3, 5)]
    assert [report.progress.samples_per_s for report in reports(sent)] == pytest.approx([0.0, 100.0, 100.0])


def test_the_end_of_an_epoch_is_told_at_once(make: Callable[[], Reporter], sent: list[FromTask]) -> None:
    reporter = make()
    for step in range(1, 11):
        reporter.commit({"loss": 1.0}, step=step, generation=1, leads=True)
    assert [report.progress.step for report in reports(sent)] == [1, 10]
    assert [message.epoch for message in sent if isinstance(message, EpochFinished)] == [0]


def test_the_end_of_the_training_is_told_once(make: Callable[[], Reporter], sent: list[FromTask]) -> None:
    reporter = make()
    for step in range(1, 21):
        reporter.commit({"loss": 1.0}, step=step, generation=1, leads=True)
    reporter.end({"loss": 1.0}, step=20, generation=1)
    assert [report.progress.step for report in reports(sent)] == [1, 10, 20]


def test_who_leads_after_a_leader_that_died_at_the_last_step_tells_how_far_the_training_came(
    make: Callable[[], Reporter], sent: list[FromTask]
) -> None:
    reporter = make()
    for step in range(1, 21):
        reporter.commit({"loss": 1.0, "accuracy": 0.5}, step=step, generation=1, leads=False)
    assert sent == []
    reporter.end({"loss": 0.25, "accuracy": 0.75}, step=20, generation=2)
    (report,) = reports(sent)
    progress = report.progress
    assert (progress.step, progress.epoch, progress.samples) == (20, 2, 200)
    assert (progress.loss, progress.metrics) == (0.25, {"accuracy": 0.75})
