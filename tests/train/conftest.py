import threading
import time
from collections.abc import Iterator

import pytest

from pliant.train import collectives

_PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def no_thread_outlives_a_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for threads that connect or close connections: one that is in gloo when Python ends takes it down."""
    monkeypatch.setattr(collectives, "CONNECT_TIMEOUT_S", 5.0)
    yield
    deadline = time.monotonic() + _PATIENCE_S
    for thread in threading.enumerate():
        if thread.name.startswith(("pliant-form", "pliant-bury", "job-")):
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), f"the thread {thread.name} is still there {_PATIENCE_S} s after its test"
