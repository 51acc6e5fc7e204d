"""The agent's end of a process that looks at tasks' files. No call waits for it.

Questions are answered in their order. If the oldest has no answer when its deadline is over, a file system does not
answer: the process is killed and replaced, that question is answered by nothing, and the others are asked anew. If the
process ends by itself, it is replaced, too; only a question that two of them ended at gets no answer. A process that
not even SIGKILL ends stays behind, and holds up nobody.
"""

import logging
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from pliant.cluster.agent.inspection import ANSWERS, Answer, Question
from pliant.cluster.json_lines import LineSocket, decode, encode

_log = logging.getLogger(__name__)

DEADLINE_S: Final = 10.0
"""So long a question may wait after the one before it was answered."""
COMMAND: Final = (sys.executable, "-P", "-m", "pliant.entry.inspector")
_END_S: Final = 2.0

Answers = list[tuple[Question, Answer | None]]


@dataclass(slots=True)
class _Running:
    """The process, and the socket to it."""

    process: "subprocess.Popen[bytes]"
    channel: socket.socket
    lines: LineSocket


class Inspector:
    """One process that looks, and the questions to it. It is started at the first question, or before."""

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        command: Sequence[str] = COMMAND,
        deadline_s: float = DEADLINE_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what the process is started with; the number of its socket is the last of its arguments."""
        self._env = env
        self._command = command
        self._deadline_s = deadline_s
        self._monotonic = monotonic
        self._selector = selectors.EpollSelector()
        self._running: _Running | None = None
        self._has_begun = False
        """A process was started, or tried to be."""
        self._ending: list[subprocess.Popen[bytes]] = []
        self._questions: dict[int, Question] = {}
        self._num_questions = 0
        self._since = 0.0
        self._suspect = 0
        """The question that was the oldest when a process ended by itself."""

    def fileno(self) -> int:
        """Return a file that can be read when there is something to receive; it stays the same."""
        return self._selector.fileno()

    def prepare(self) -> None:
        """Start the process before the first question, so that it is there by then; once."""
        if not self._has_begun:
            self._start()

    @property
    def is_asked(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._questions)

    def ask(self, question: Question) -> None:
        """Ask; `receive` has the answer, with the question as it is here."""
        if not self._questions:
            self._since = self._monotonic()
        self._num_questions += 1
        self._questions[self._num_questions] = question
        if self._running is None:
            self._start()
        else:
            self._put(self._running, self._num_questions)

    def receive(self) -> Answers:
        """Return what has been answered, and None for a question that waited too long."""
        answers = self._answered()
        if self._questions and self._monotonic() - self._since > self._deadline_s:
            answers.append(self._give_up(f"does not answer for {self._deadline_s:g} s"))
        self._ending = [process for process in self._ending if process.poll() is None]
        return answers

    def wait_s(self) -> float | None:
        """Return after how many seconds `receive` is to be called though nothing has come; None: whenever."""
        if not self._questions:
            return None
        return max(0.0, self._since + self._deadline_s - self._monotonic())

    def close(self) -> None:
        """End the process; what was asked is not answered any more."""
        self._questions.clear()
        self._stop()
        for process in self._ending:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
        self._selector.close()

    def _answered(self) -> Answers:
        if (running := self._running) is None:
            return []
        self._flush(running)
        try:
            lines = running.lines.receive()
            found = None if lines is None else [decode(line, ANSWERS) for line in lines]
        except ValueError as error:
            _log.error("what looks at tasks' files answers with no message: %s", error)
            found = None
        if found is None:
            return self._replace()
        answers: Answers = []
        for answer in found:
            if (question := self._questions.pop(answer.number, None)) is not None:
                self._since = self._monotonic()
                answers.append((question, answer))
        return answers

    def _give_up(self, why: str) -> tuple[Question, None]:
        """Answer the oldest question with nothing, and ask a new process the others."""
        question = self._questions.pop(next(iter(self._questions)))
        _log.warning("what looks at tasks' files %s; it is unknown %s", why, question)
        self._stop()
        self._since = self._monotonic()
        if self._questions:
            self._start()
        return question, None

    def _replace(self) -> Answers:
        """Go on without the process, which has ended."""
        oldest = next(iter(self._questions), None)
        if oldest is not None and oldest == self._suspect:
            return [self._give_up("has ended twice")]
        self._stop()
        if oldest is not None:
            self._suspect, self._since = oldest, self._monotonic()
            self._start()
        return []

    def _start(self) -> None:
        """Start a process and ask it everything; if that is impossible, the questions wait for their deadlines."""
        self._has_begun = True
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                process = subprocess.Popen(
                    [*self._command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    env=dict(self._env),
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except OSError as error:
            _log.error("what looks at tasks' files cannot be started: %s", error)
            ours.close()
            return
        self._running = _Running(process, ours, LineSocket(ours))
        self._selector.register(ours, selectors.EVENT_READ)
        for number in self._questions:
            self._put(self._running, number)

    def _put(self, running: _Running, number: int) -> None:
        running.lines.put(encode(replace(self._questions[number], number=number)))
        self._flush(running)

    def _flush(self, running: _Running) -> None:
        more = selectors.EVENT_WRITE if running.lines.flush() else 0
        self._selector.modify(running.channel, selectors.EVENT_READ | more)

    def _stop(self) -> None:
        if (running := self._running) is None:
            return
        self._running = None
        self._selector.unregister(running.channel)
        running.channel.close()
        running.process.kill()
        self._ending.append(running.process)
