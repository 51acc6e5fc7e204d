"""A Pliant server of a benchmark's own: started by the command line, driven by the client, ended with its tasks."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.peers.processes import Processes
from pliant.api.jobs import JobRequest
from pliant.client import Client
from pliant.core.job import DEFAULT_CHECKPOINT_EVERY_S, Task
from pliant.core.virtual_workers import choose

START_S = 60.0
SCRIPTS = Path(__file__).parent / "scripts"
PARTS: Final = choose(4, 64)
"""V of a job of up to four tasks with a batch of 64 that asks for none; these begin with fewer tasks and grow later."""


OPEN: Final = ("--isolation", "off", "--uids", "off")
"""Tasks write files of the benchmark, as peers do, which stand behind no walls either."""


def until(condition: Callable[[], bool], what: str, limit_s: float, *, look_s: float = 0.02) -> None:
    """Wait for something, and look for it every `look_s` seconds.

    Raises:
        TimeoutError: it did not come to be.
    """
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {limit_s:.0f} s for: {what}")
        time.sleep(look_s)


class Server:
    """`pliant up` on a free port of the loopback interface, with its state in `folder`.

    Args:
        slots: None for this machine's GPUs.
    """

    def __init__(self, folder: Path, processes: Processes, *, slots: int | None, options: tuple[str, ...] = ()) -> None:
        self.home = folder / "home"
        up = ("up", "--port", "0", *(() if slots is None else ("--slots", str(slots))), *options)
        process = processes.start([sys.executable, "-m", "pliant.cli.app", "--home", self.home, *up])
        record = self.home / "server.json"
        until(lambda: record.exists() or process.poll() is not None, "the server listens", START_S)
        if process.poll() is not None:
            raise RuntimeError(f"the server ended at once:\n{processes.tail()}")
        self._process = process
        self.client = Client.from_home(self.home)

    def submit(self, script: str, *args: str, max_tasks: int, min_tasks: int = 1, saves: bool = True) -> str:
        """Submit one of the scripts; return the job's id. What it imports is found through PYTHONPATH.

        Without `saves` it takes no checkpoints by time.
        """
        request = JobRequest(
            script=script,
            args=args,
            max_tasks=max_tasks,
            min_tasks=min_tasks,
            virtual_workers=PARTS,
            checkpoint_freq=0,
            checkpoint_every_s=DEFAULT_CHECKPOINT_EVERY_S if saves else 0.0,
        )
        return str(self.client.submit(SCRIPTS / script, request).id)

    def training(self, job_id: str) -> list[Task]:
        """Return the tasks of a job that train."""
        return [task for task in self.client.job(job_id).tasks if task.state == "training"]

    def close(self) -> None:
        """Stop the jobs and end the server."""
        self.client.shutdown()
        self.client.close()
        self._process.wait(30)
