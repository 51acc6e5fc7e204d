import threading
import time
from collections.abc import Iterator

import pytest

_PATIENCE_S = 2.0


@pytest.fixture(autouse=True)
def threads_get_a_moment_to_end() -> Iterator[None]:
    """Let threads that connect or close connections end, so that tests do not disturb each other."""
    yield
    deadline = time.monotonic() + _PATIENCE_S
    for thread in threading.enumerate():
        if thread.name.startswith(("pliant-form", "pliant-bury", "job-")):
            thread.join(max(0.0, deadline - time.monotonic()))
