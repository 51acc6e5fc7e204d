"""What a process could not do because others had the processors; Linux only."""

from contextlib import suppress
from pathlib import Path


def starved_s(pid: int) -> float:
    """Return how long the living threads of a process have waited for a processor, seconds."""
    waited_ns = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            waited_ns += int(path.read_text().split()[1])
    return waited_ns / 1e9
