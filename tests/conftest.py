"""For all tests: torch does not warn about connections that tests cut on purpose (read when it is imported)."""

import os
import sys
import threading

import pytest

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember the result for `pytest_unconfigure`."""
    session.config.stash[_STATUS] = int(exitstatus)


_STATUS = pytest.StashKey[int]()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End at once if threads are still in gloo, as a task does: they would take the end of Python down with them."""
    if any(thread.name.startswith("pliant-") for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(config.stash.get(_STATUS, 1))
