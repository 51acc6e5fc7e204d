"""What is read for jobs is read by others than those who ask."""

import threading

import pytest
from tests.catalog.waiting import until

from pliant.catalog.environments.builds import BuildRequest
from pliant.catalog.environments.readings import RequirementsReadings
from pliant.core.environment import EnvironmentKind
from pliant.core.errors import InvalidInput
from pliant.core.job import JobId

JOB = JobId("job-1")
FOUND = BuildRequest(key="k", kind=EnvironmentKind.REQUIREMENTS, source="x", person="ada")


def test_nobody_waits_for_a_disk_that_does_not_answer() -> None:
    answers, noticed = threading.Event(), threading.Event()
    readings = RequirementsReadings(noticed.set)

    def read() -> BuildRequest:
        answers.wait(60)
        return FOUND

    assert readings.ask(JOB, read) is None
    assert readings.ask(JOB, read) is None
    assert not noticed.is_set()
    answers.set()
    assert noticed.wait(20)
    assert readings.ask(JOB, read) == FOUND
    readings.close()


def test_what_is_wrong_is_raised_for_who_asks_and_read_again_the_next_time() -> None:
    readings = RequirementsReadings(lambda: None)

    def refuse() -> BuildRequest:
        raise InvalidInput.at("environment", "it is wrong")

    def ask() -> InvalidInput | None:
        try:
            readings.ask(JOB, refuse)
        except InvalidInput as error:
            return error
        return None

    assert "it is wrong" in str(until(ask))
    assert readings.ask(JOB, lambda: FOUND) is None
    assert until(lambda: readings.ask(JOB, lambda: FOUND)) == FOUND
    readings.close()
    with pytest.raises(RuntimeError):
        readings.ask(JOB, refuse)
