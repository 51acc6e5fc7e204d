"""The task's part of logging to trackers: it writes down what the leader reports, and keeps the processes that log it.

Training never waits for it: what is to be written goes through a bounded queue to a thread, and what is to be logged is
the business of one process for each tracker (`pliant.entry.tracker`), which a slow tracker may hold up.
"""

import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.core.job_params import ParamValue
from pliant.tracking import mlflow, wandb
from pliant.tracking.journal import JournalWriter, TrackedPoint
from pliant.tracking.tracker import Outcome

FOLDER: Final = "tracking"
JOURNAL: Final = "journal.jsonl"
_MAX_WAITING: Final = 10_000
_MAX_WARNINGS: Final = 20
_MAX_LINE: Final = 2000
_KILLED_S: Final = 2.0


def trackers_of(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the trackers that a job's variables ask for."""
    asked = {"mlflow": bool(env.get(mlflow.URI)), "wandb": wandb.is_asked_for(env)}
    return tuple(name for name, is_asked in asked.items() if is_asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    """What a recorder needs to know."""

    trackers: tuple[str, ...]
    folder: Path
    """Where the job's processes keep what is to be logged."""
    command: Callable[[str], Sequence[str]]
    """The program that logs to a tracker."""
    env: Mapping[str, str]
    """Its variables; those of the script may be others."""
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    """Hyperparameters that are known before the script runs."""


@dataclass(frozen=True, slots=True)
class _End:
    outcome: Outcome
    deadline: float


_Work = tuple[TrackedPoint, ...] | Mapping[str, ParamValue] | bool | _End
"""Points; hyperparameters; whether this task leads; the end."""


class Recorder:
    """Takes what a task reports. All methods but `end` return at once.

    Args:
        warn: tells the person something; called in threads of the recorder.
    """

    def __init__(self, settings: RecorderSettings, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._warn = warn
        self._work: queue.Queue[_Work] = queue.Queue(_MAX_WAITING)
        self._leads = False
        self._has_dropped = False
        self._num_warnings = 0
        self._writer: JournalWriter | None = None
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._listeners: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._run, name="pliant-tracking", daemon=True)

    def lead(self, leads: bool) -> None:
        """Say whether this task leads: the one that does logs."""
        if leads != self._leads:
            self._leads = leads
            if not self._thread.ident:
                self._thread.start()
            self._put(leads)

    def record(self, points: Sequence[TrackedPoint]) -> None:
        """Write points down; only the leader's count."""
        if self._leads and points:
            self._put(tuple(points))

    def record_params(self, params: Mapping[str, ParamValue]) -> None:
        """Write hyperparameters down; only the leader's count."""
        if self._leads and params:
            self._put(dict(params))

    def end(self, outcome: Outcome, timeout_s: float) -> None:
        """Log what is left and say how it ended, for so many seconds at most. Others than the leader say a failure."""
        if not self._leads and outcome is not Outcome.FAILED:
            return
        if not self._thread.ident:
            self._thread.start()
        deadline = time.monotonic() + timeout_s
        try:
            self._work.put(_End(outcome, deadline), timeout=timeout_s)
        except queue.Full:
            return
        self._thread.join(timeout_s + _KILLED_S)
        self._leads = False

    def _put(self, work: _Work) -> None:
        try:
            self._work.put_nowait(work)
        except queue.Full:
            if not self._has_dropped:
                self._has_dropped = True
                self._say("the disk takes what is to be logged too slowly: some points are not logged to trackers")

    # -- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            work = self._work.get()
            try:
                if isinstance(work, _End):
                    self._end(work)
                    return
                self._do(work)
            except OSError as error:
                self._say(f"what is to be logged to trackers cannot be written ({error.strerror or error})")

    def _do(self, work: tuple[TrackedPoint, ...] | Mapping[str, ParamValue] | bool) -> None:
        if isinstance(work, bool):
            if work:
                self._begin()
            else:
                self._finish(Outcome.HANDED_OVER)
        elif self._writer is not None:
            if isinstance(work, tuple):
                self._writer.add_points(work)
            else:
                self._writer.add_params(work)

    def _begin(self) -> None:
        """Open the journal and start the processes."""
        self._writer = JournalWriter(self._settings.folder / JOURNAL)
        if self._settings.params:
            self._writer.add_params(self._settings.params)
        self._start()

    def _start(self) -> None:
        for name in self._settings.trackers:
            process = subprocess.Popen(
                self._settings.command(name),
                env=dict(self._settings.env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
            )
            self._processes[name] = process
            listener = threading.Thread(target=self._listen, args=(name, process), daemon=True)
            listener.start()
            self._listeners.append(listener)

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        """Pass on what a process says, until it ends."""
        assert process.stdout is not None
        with process.stdout as said:
            while line := said.readline(_MAX_LINE):
                self._say(line.strip())
        code = process.wait()
        if self._processes.get(name) is process and code != 0:
            self._say(f"the process that logs to {name} has ended (code {code}); the next leader starts another one")

    def _finish(self, outcome: Outcome) -> list[subprocess.Popen[str]]:
        """Tell the processes to end; return them."""
        ended = list(self._processes.values())
        self._processes.clear()
        for process in ended:
            assert process.stdin is not None
            with suppress(OSError), process.stdin as pipe:  # it may have ended
                pipe.write(f"{outcome.value}\n")
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        return ended

    def _end(self, end: _End) -> None:
        if not self._processes and end.outcome is Outcome.FAILED:
            self._start()
        for process in self._finish(end.outcome):
            try:
                process.wait(max(0.0, end.deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        for listener in self._listeners:
            listener.join(_KILLED_S / 2)

    def _say(self, text: str) -> None:
        self._num_warnings += 1
        if text and self._num_warnings <= _MAX_WARNINGS:
            self._warn(text[:_MAX_LINE])
