"""What walls a machine has is found out by a process that knows nothing."""

import sys
from collections.abc import Iterator

import pytest

from pliant.core.confinement import Confinement
from pliant.isolation import report


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    report.report.cache_clear()
    yield
    report.report.cache_clear()


def test_the_process_that_tries_the_walls_has_none_of_the_server_s_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    def say_variables(_: Confinement) -> list[str]:
        return [sys.executable, "-c", "import os, sys; sys.exit(','.join(os.environ))"]

    monkeypatch.setenv("SERVERS_CLOUD_KEY", "x")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setattr(report, "probing", say_variables)

    (said,) = report.report(None).missing

    assert "LANG" in said
    assert "SERVERS_CLOUD_KEY" not in said
