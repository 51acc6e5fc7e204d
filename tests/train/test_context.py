"""What a script has that runs without a server."""

from dataclasses import replace

import pytest

from pliant.api.jobs import JobRequest
from pliant.train import TrainingError
from pliant.train.context import standalone_context


@pytest.fixture(autouse=True)
def _nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PLIANT_VIRTUAL_WORKERS", "PLIANT_MODE"):
        monkeypatch.delenv(name, raising=False)


def test_alone_a_batch_is_cut_as_that_of_a_job_of_one_task_is() -> None:
    context, spec = standalone_context(), JobRequest(script="train.py").spec()

    assert (context.virtual_workers, context.max_tasks) == (spec.virtual_workers, spec.max_tasks) == (None, 1)
    assert context.mode == spec.mode
    assert [context.parts_of(batch_size) for batch_size in (1, 64, 4096)] == [1, 1, 1]


@pytest.mark.parametrize(("given", "batch_size", "parts"), [(None, 64, 4), (None, 3, 3), (16, 64, 16), (16, 8, 8)])
def test_parts_are_those_of_the_job_or_chosen_by_its_maximum(given: int | None, batch_size: int, parts: int) -> None:
    context = replace(standalone_context(), virtual_workers=given, max_tasks=4)

    assert context.parts_of(batch_size) == parts


def test_the_environment_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIANT_VIRTUAL_WORKERS", "1")
    monkeypatch.setenv("PLIANT_MODE", "fast")
    context = standalone_context()

    assert (context.virtual_workers, context.mode) == (1, "fast")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PLIANT_VIRTUAL_WORKERS", "many", "PLIANT_VIRTUAL_WORKERS is 'many'; give a whole number from 1 to 4096"),
        ("PLIANT_VIRTUAL_WORKERS", "0", "PLIANT_VIRTUAL_WORKERS is '0'; give a whole number from 1 to 4096"),
        ("PLIANT_MODE", "quick", "PLIANT_MODE is 'quick'; give exact or fast"),
    ],
)
def test_nonsense_in_the_environment_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(TrainingError) as caught:
        standalone_context()

    assert str(caught.value) == f"{message}, or unset it"
