"""For all tests: no thread of a training outlives its test, no example has a deadline, torch is silent about cuts.

Each process computes in one thread: two workers share the machine, and threads that wait for each other spin.
"""

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Generator, Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("pliant", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # timings: bench/
settings.load_profile("pliant")

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # read when torch is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")  # so is this
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # seconds, in every worker, for formats no schema here has

_PATIENCE_S: Final = 30.0
"""For a busy machine, and for what gloo ends by a time-out; it takes milliseconds."""
_TEARDOWN_S: Final = 60.0
_OF_TRAININGS: Final = (
    "pliant-form-",
    "pliant-close-",
    "pliant-stage-",
    "pliant-abort-",
    "pliant-rendezvous-",
    "pliant-transfer-",
    "job-",
)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while files are imported: next to nothing of what modules and tests are made of is any."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the collector of garbage from walking over a million objects of modules and tests again and again.

    A library that collects at every step of a training took four times as long.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def no_thread_outlives_its_test() -> Iterator[None]:
    """A thread inside gloo when Python ends would take the process down with it, and hide how the tests went."""
    yield
    world = sys.modules.get("tests.train.world")
    if world is not None:
        for one in world.WORLDS:
            one.end()
        world.WORLDS.clear()
    deadline = time.monotonic() + _PATIENCE_S
    for thread in threading.enumerate():
        if thread.name.startswith(_OF_TRAININGS):
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"{thread.name} is still there {_PATIENCE_S:g} s after the test"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Give what comes after a test that failed a time limit again: pytest-timeout gives its own up at a failure.

    It takes this one back at the end of the test.
    """
    if signal.getitimer(signal.ITIMER_REAL)[0] == 0.0:
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, _TEARDOWN_S)


def _give_up(*_: object) -> None:
    pytest.fail(f"what comes after the test took more than {_TEARDOWN_S:g} s")
