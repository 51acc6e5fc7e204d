"""The room of copies: the process that copies what jobs write to an object store, and what is asked of it.

It is started again when it ends. It alone speaks to the store, and has the server's whole environment for that, where
credentials are; no task and no person gets anything of it.
"""

import logging
import queue
import socket
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pliant.cluster.json_lines import LineSocket, by_kind, decode, encode
from pliant.core.errors import Unavailable
from pliant.entry.server.rooms.companion import companion, hang_up
from pliant.objects.messages import (
    ActiveJobs,
    BeginCopying,
    BringBack,
    BroughtBack,
    CopiesForgotten,
    CopyNews,
    EndCopying,
    ForgetJobCopies,
    FromCopier,
    StoreReached,
    StoreRefused,
    ToCopier,
)

PROGRAM: Final = (sys.executable, "-P", "-m", "pliant.entry.copier")
FROM_COPIER: Final[Mapping[str, type[FromCopier]]] = by_kind(
    (StoreReached, StoreRefused, CopyNews, CopiesForgotten, BroughtBack)
)
_FIRST_PAUSE_S: Final = 1.0
_LAST_PAUSE_S: Final = 30.0
_LOOK_S: Final = 0.5
_ANSWER_S: Final = 120.0
"""So long the store may take to answer at the start, with all tries."""
_FORGET_S: Final = 10.0
_END_S: Final = 15.0
"""So long the last copies may take when the server ends."""

_log = logging.getLogger("pliant.copies")


class CopiesRoom:
    """Has what jobs write copied to a store."""

    def __init__(self, begin: BeginCopying, log: Path, *, program: Sequence[str] = PROGRAM) -> None:
        """Prepare; `open` starts.

        Args:
            begin: what the process is asked for.
            log: where it writes what goes wrong on the disk.
            program: of the process; the number of its socket comes after it.
        """
        self._begin = begin
        self._log = log
        self._program = tuple(program)
        self._active: Callable[[], Collection[str]] | None = None
        self._warn: Callable[[str], None] = _log.warning
        self.stopped = threading.Event()
        """Set when the server ends."""
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._answers: dict[str, queue.Queue[str]] = {}
        self._first: queue.Queue[StoreReached | StoreRefused] = queue.Queue()
        self._news = CopyNews(why_away="", num_waiting=0)
        self._thread = threading.Thread(target=self._keep, name="pliant-copies", daemon=True)

    def open(self) -> StoreReached | StoreRefused:
        """Start the process, and start it again whenever it ends; return what the store has answered first."""
        self._thread.start()
        try:
            return self._first.get(timeout=_ANSWER_S)
        except queue.Empty:
            return StoreRefused(reason=f"{self._begin.url} does not answer within {_ANSWER_S:g} s")

    def start(self, active: Callable[[], Collection[str]], warn: Callable[[str], None]) -> None:
        """Have jobs copied from now on.

        Args:
            active: returns which jobs are not over.
            warn: tells people that the store is away, and that it is not any more.
        """
        self._active, self._warn = active, warn
        if self._news.why_away:
            self._tell_away()

    @property
    def why_away(self) -> str:
        """Why the store takes nothing now; empty: it does."""
        return self._news.why_away

    def words(self) -> str:
        """Return how the copying stands, in words."""
        news = self._news
        if news.why_away:
            return f"nothing is copied to {self._begin.url} now: {news.why_away}"
        waiting = f"; of {news.num_waiting} ended jobs something may be left" if news.num_waiting else ""
        return f"what jobs write is copied to {self._begin.url}{waiting}"

    def bring_back(self, job_id: str) -> str:
        """Bring back what the disk lacks of a job; return what that is, in words.

        Raises:
            Unavailable: that is not possible.
        """
        answer = self._ask(BringBack(job=job_id), f"back {job_id}", None)
        problem, _, what = answer.partition("\n")
        if problem:
            raise Unavailable(problem)
        return what

    def forget(self, job_id: str) -> None:
        """Remove the copies of a job that was deleted.

        Raises:
            OSError: they are still there.
        """
        if problem := self._ask(ForgetJobCopies(job=job_id), f"forget {job_id}", _FORGET_S):
            raise OSError(f"its copies are still there: {problem}")

    def close(self) -> None:
        """Have copied what is there, for a while, and end the process."""
        self.stopped.set()
        self._say(EndCopying())
        self._thread.join(_END_S)
        if (channel := self._channel) is not None:
            hang_up(channel)
        self._thread.join()

    def _ask(self, message: BringBack | ForgetJobCopies, name: str, timeout_s: float | None) -> str:
        """Return what the process answers; a problem if it ends before, or takes longer."""
        if self._news.why_away:
            return self._news.why_away
        answers = self._answers[name] = queue.Queue()
        try:
            if not self._say(message):
                return "the process that copies does not run now"
            return answers.get(timeout=timeout_s)
        except queue.Empty:
            return f"there is no answer within {timeout_s:g} s"
        finally:
            del self._answers[name]

    def _say(self, message: ToCopier) -> bool:
        """Send a message; tell whether there is somebody who reads it."""
        with self._lock, suppress(BrokenPipeError, ConnectionResetError):
            if (channel := self._channel) is not None:
                channel.sendall(encode(message))
                return True
        return False

    def _keep(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self.stopped.is_set():
            reached = self._run()
            for answers in list(self._answers.values()):
                answers.put("the process that copies has ended")
            pause_s = _FIRST_PAUSE_S if reached else min(2 * pause_s, _LAST_PAUSE_S)
            self.stopped.wait(pause_s)

    def _run(self) -> bool:
        """Run the process to its end; return whether it reached the store."""
        with self._log.open("ab") as log, companion(self._program, log, end_s=_FIRST_PAUSE_S) as ours:
            self._channel = ours
            try:
                return self._speak(ours)
            except (OSError, ValueError) as error:
                _log.warning("what the process that copies said cannot be used: %s", error)
                return False
            finally:
                with self._lock:
                    self._channel = None

    def _speak(self, channel: socket.socket) -> bool:
        self._say(self._begin)
        lines, reached, said = LineSocket(channel), False, None
        channel.settimeout(_LOOK_S)
        while True:
            try:
                received = lines.receive()
            except TimeoutError:
                received = []
            if received is None:
                self._first.put(StoreRefused(reason=f"the process that copies has ended; see {self._log}"))
                if reached and not self.stopped.is_set():
                    _log.warning("the process that copies has ended and is started again; see %s", self._log)
                return reached
            for line in received:
                message = decode(line, FROM_COPIER)
                reached = reached or isinstance(message, StoreReached)
                self._take(message)
            active = None if self._active is None else tuple(sorted(self._active()))
            if reached and active is not None and active != said:
                said = active
                self._say(ActiveJobs(jobs=active))

    def _take(self, message: FromCopier) -> None:
        if isinstance(message, StoreReached):
            self._first.put(message)
            self._note(CopyNews(why_away="", num_waiting=self._news.num_waiting))
        elif isinstance(message, StoreRefused):
            self._first.put(message)
            self._note(CopyNews(why_away=message.reason, num_waiting=self._news.num_waiting))
        elif isinstance(message, CopyNews):
            self._note(message)
        elif isinstance(message, CopiesForgotten):
            self._answer(f"forget {message.job}", message.problem)
        else:
            self._answer(f"back {message.job}", f"{' '.join(message.problem.split())}\n{message.what}")

    def _answer(self, name: str, answer: str) -> None:
        if (answers := self._answers.get(name)) is not None:
            answers.put(answer)

    def _note(self, news: CopyNews) -> None:
        """Remember how it stands, and tell people when the store goes away and comes back."""
        was_away, self._news = bool(self._news.why_away), news
        if self._active is None or was_away == bool(news.why_away):
            return
        if news.why_away:
            self._tell_away()
        else:
            self._warn(f"{self._begin.url} answers again: what jobs have written meanwhile is copied there")

    def _tell_away(self) -> None:
        why = self._news.why_away
        self._warn(f"what jobs write is not copied to {self._begin.url} now; they go on, and it is tried again: {why}")
