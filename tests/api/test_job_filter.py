"""What people write of the jobs that they ask for."""

import pytest

from pliant.api.job_filter import MAX_WORDS, read_job_filter
from pliant.core.errors import InvalidInput
from pliant.core.job_filter import EVERY_JOB, JobFilter
from pliant.core.lifecycle import ENDED_STATES, JobState


def problems(**asked: list[str]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        read_job_filter(**asked)  # type: ignore[arg-type]
    return [(problem.field, problem.message) for problem in refused.value.problems]


def test_words_stand_between_commas_or_come_one_by_one() -> None:
    assert read_job_filter() == EVERY_JOB
    found = read_job_filter(states=["running, paused", "running"], owners=["ann,bob"], queues=["a", "b"])
    assert found == JobFilter(states=(JobState.RUNNING, JobState.PAUSED), owners=("ann", "bob"), queues=("a", "b"))
    assert read_job_filter(states=["waiting"]).states == (JobState.PENDING, JobState.PAUSED)
    assert read_job_filter(states=["ended,failed"]).states == ENDED_STATES


def test_values_of_one_tag_are_alternatives_and_a_name_takes_any() -> None:
    assert read_job_filter(tags=["lr=0.1,lr=0.2", "best", "note="]).tags == {
        "lr": ("0.1", "0.2"),
        "best": (),
        "note": ("",),
    }
    assert read_job_filter(tags=["lr=0.1,lr"]).tags == read_job_filter(tags=["lr,lr=0.1"]).tags == {"lr": ()}
    assert read_job_filter(tags=["a=b=c"]).tags == {"a": ("b=c",)}


def test_what_asks_for_nothing_is_refused_all_at_once() -> None:
    assert problems(states=[""], owners=[","]) == [
        ("state", "it is empty; give a word, or leave it out"),
        ("owner", "it is empty; give a word, or leave it out"),
    ]
    assert problems(tags=["=1", "x" * 61, "a=" + "y" * 201])[0] == ("tag", "'=1' is no tag; give NAME or NAME=VALUE")
    many = ",".join(f"q{number}" for number in range(MAX_WORDS + 1))
    assert problems(queues=[many]) == [("queue", "101 are asked for; give 100 at most")]
    (told,) = problems(states=["Complete"])
    assert told[1].endswith("; is 'completed' meant?")
