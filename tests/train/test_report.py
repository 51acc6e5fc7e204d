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


def test_work_without_a_step_is_told_every_few_seconds_and_has_no_speed(
    make: Callable[[], Reporter], clock: Clock, sent: list[FromTask]
) -> None:
    reporter = make()
    for step in (1, 2, 3):
        reporter.commit({"loss": 1.0}, step=step, generation=1, leads=True)
        clock.at += 1.0
    sent.clear()
    for _ in range(25):
        reporter.note_work(step=3, generation=1, leads=True)
        clock.at += 0.5
    told = reports(sent)
    assert len(told) == 2
    assert {(report.progress.step, report.progress.samples_per_s, report.progress.eta_s) for report in told} == {
        (3, 0.0, None)
    }
    reporter.note_work(step=3, generation=1, leads=False)
    assert len(reports(sent)) == 2
    reporter.commit({"loss": 1.0}, step=4, generation=1, leads=True)
    assert reports(sent)[-1].progress.samples_per_s > 0.0


def test_every_step_is_recorded_as_it_is_if_somebody_wants_that(
    make: Callable[[], Reporter], clock: Clock, sent: list[FromTask]
) -> None:
    reporter = make()
    reporter.every = 1
    for step in range(1, 8):
        reporter.commit({"loss": float(step), "accuracy": 0.5}, step=step, generation=1, leads=True)
        clock.at += 0.1
    reporter.end({"loss": 7.0}, step=7, generation=1)
    reporter.flush(step=7, generation=1)
    points = [(p.name, p.step, p.value) for report in reports(sent) for p in report.points]
    assert [p for p in points if p[0] == "loss"] == [("loss", step, float(step)) for step in range(1, 8)]
    assert len(points) == 14
    assert len(reports(sent)) < 7  # they travel together all the same


def test_one_step_in_so_many_is_recorded_and_the_first(
    make: Callable[[], Reporter], clock: Clock, sent: list[FromTask]
) -> None:
    reporter = make()
    reporter.every = 4
    for step in range(1, 11):
        reporter.commit({"loss": float(step)}, step=step, generation=1, leads=True)
        clock.at += 1.0
    assert [p.step for report in reports(sent) for p in report.points] == [1, 4, 8]


def test_no_message_grows_without_end_however_fast_the_steps_are(
    make: Callable[[], Reporter], sent: list[FromTask]
) -> None:
    reporter = make()
    reporter.every = 1
    reporter.plan = ShardingPlan(num_samples=10**6, batch_size=10, virtual_workers=2)
    for step in range(1, 5001):
        reporter.commit({f"m{i}": 0.0 for i in range(16)}, step=step, generation=1, leads=True)
    told = reports(sent)
    assert max(len(report.points) for report in told) <= 1016
    assert sum(len(report.points) for report in told) > 79_000


def test_who_takes_the_lead_tells_the_single_steps_that_a_leader_may_have_died_with(
    make: Callable[[], Reporter], clock: Clock, sent: list[FromTask]
) -> None:
    first, second = make(), make()
    first.every = second.every = 1
    for step in range(1, 7):
        first.commit({"loss": float(step)}, step=step, generation=1, leads=True)
        second.commit({"loss": float(step)}, step=step, generation=1, leads=False)
        clock.at += 0.01
    told = {point.step for report in reports(sent) for point in report.points}
    assert told == {1}, "the others wait for the next report, which never comes"
    second.commit({"loss": 7.0}, step=7, generation=2, leads=True)
    points = [(point.step, point.value) for point in reports(sent)[-1].points]
    assert points == [(step, float(step)) for step in range(1, 8)]
    second.commit({"loss": 8.0}, step=8, generation=2, leads=True)
    second.flush(step=8, generation=2)
    assert [point.step for point in reports(sent)[-1].points] == [8]


def test_a_task_that_does_not_lead_keeps_the_newest_single_steps_only(make: Callable[[], Reporter]) -> None:
    reporter = make()
    reporter.every = 1
    reporter.plan = ShardingPlan(num_samples=10**6, batch_size=10, virtual_workers=2)
    for step in range(1, 3001):
        reporter.commit({"loss": 1.0}, step=step, generation=1, leads=False)
    assert [point.step for point in reporter._points] == list(range(2001, 3001))


def test_who_takes_the_lead_tells_what_the_script_reported_last(
    make: Callable[[], Reporter], sent: list[FromTask]
) -> None:
    """A leader that died just after `run.log` may not have told it, and nobody computes it again."""
    follower = make()
    for step in (9, 10):
        follower.commit({"loss": 1.0}, step=step, generation=1, leads=False)
        follower.log({"val_loss": step / 10, "accuracy": 0.5}, step=step, generation=1, leads=False)
    follower.log({"f1": 0.25}, step=10, generation=1, leads=False)
    follower.commit({"loss": 0.5}, step=11, generation=2, leads=True)

    (report,) = reports(sent)
    told = {(point.name, point.step, point.epoch): point.value for point in report.points}
    assert told == {("val_loss", 10, 1): 1.0, ("accuracy", 10, 1): 0.5, ("f1", 10, 1): 0.25, ("loss", 11, 1): 0.5}


def test_who_finishes_for_a_leader_that_died_tells_what_the_script_reported_last(
    make: Callable[[], Reporter], sent: list[FromTask]
) -> None:
    follower = make()
    follower.commit({"loss": 1.0}, step=20, generation=1, leads=False)
    follower.log({"val_loss": 0.125}, step=20, generation=1, leads=False)
    follower.end({"loss": 1.0}, step=20, generation=2)

    (report,) = reports(sent)
    assert [(point.name, point.step, point.value) for point in report.points] == [("val_loss", 20, 0.125)]
