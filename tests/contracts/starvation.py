"""What a process could not do because others had the processors; Linux only."""

import os
from contextlib import suppress


def starved_s(pid: int) -> float:
    """Return how long the living threads of a process have waited for a processor, seconds; 0 if it has ended."""
    waited_ns = 0
    with suppress(FileNotFoundError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with (
                suppress(FileNotFoundError, ProcessLookupError),  # a thread that has just ended
                open(f"/proc/{pid}/task/{thread}/schedstat", "rb", buffering=0) as file,
            ):
                waited_ns += int(file.read().split()[1])
    return waited_ns / 1e9
