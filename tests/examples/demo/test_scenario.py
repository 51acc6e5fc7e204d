"""The demo's director waits for what must happen, and says clearly what did not."""

import time
from dataclasses import replace

import pytest

from examples.demo.play import num_epochs_for
from examples.demo.recording import DemoFailed, Recording, Seen
from examples.demo.scenario import Director
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState

A, B = JobId("job-1"), JobId("job-2")


def test_the_size_is_that_of_the_generation_that_trains(seen: Seen) -> None:
    assert [seen.size(A), seen.size(B), seen.size(JobId("job-3"))] == [3, 5, 0]


def test_a_stage_that_does_not_come_true_fails_with_what_is_seen(recording: Recording) -> None:
    director = Director(recording, lambda: None)

    with (
        director.stage(2, "B arrives"),
        pytest.raises(DemoFailed, match=r"stage 2: waited 0 s until pigs fly; A is running, trains on 3"),
    ):
        director.wait("pigs fly", lambda seen: False, within_s=0.0)


def test_what_does_not_last_fails_the_stage(recording: Recording) -> None:
    director = Director(recording, lambda: None)
    until = time.monotonic() + 0.2

    with director.stage(3, "holds"), pytest.raises(DemoFailed, match="stage 3: 3 and 5 did not last"):
        director.hold("3 and 5", lambda seen: time.monotonic() < until, until=lambda seen: False, within_s=5.0)


def test_a_failed_job_fails_the_demo_with_its_reason(recording: Recording) -> None:
    detail = recording.at(0.0).details[B]
    failed = replace(detail, job=replace(detail.job, state=JobState.FAILED, reason="it raised ValueError"))
    recording.set_state([failed], [])
    director = Director(recording, lambda: None)

    with director.stage(1, "begins"), pytest.raises(DemoFailed, match=r"training B \(job-2\) is failed: it raised"):
        director.wait("anything", lambda seen: False, within_s=5.0)


def test_a_finished_stage_is_marked(recording: Recording) -> None:
    director = Director(recording, lambda: None)

    with director.stage(9, "passes"):
        director.wait("nothing", lambda seen: True, within_s=5.0)

    stage = recording.at(0.0).stages[-1]
    assert (stage.number, stage.ended_at is not None, stage.now_text) == (9, True, "")


def test_a_watching_thread_that_ended_fails_the_demo(recording: Recording) -> None:
    recording.fail(ConnectionError("gone"))

    with pytest.raises(DemoFailed, match="lost sight of the server: gone"):
        recording.at(0.0)


@pytest.mark.parametrize(("num_cpus", "num_epochs"), [(1, 60), (2, 60), (4, 120), (64, 240)])
def test_more_processors_get_more_epochs(num_cpus: int, num_epochs: int) -> None:
    assert num_epochs_for(num_cpus) == num_epochs
