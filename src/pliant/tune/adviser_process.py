"""An adviser in a process of its own (`AdviserProcess`), so that what chooses values is nobody else's trouble.

Optuna's Gaussian processes compute for seconds and load torch; its CMA-ES unpickles what it has noted itself. The
process has no secrets, limits of memory and of time, and is killed at will: its search goes on with another one, from
what is in the store. It can print what it likes: answers come through a socket that only it and this handle have.

A program may be a stranger's (`AdviserProgram`). What it prints goes where its owner looks, its end is noticed though
what it has started lives on and has its socket, and it ends with its whole process group.
"""

import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.core.search import Trial
from pliant.core.space import Values
from pliant.isolation.variables import allowed
from pliant.tune.advice import AdviserFailure, AdviserInput, AdviserLost, Asked, Exhausted, Judgement
from pliant.tune.adviser_messages import (
    AskImportances,
    AskJudgement,
    AskValues,
    Begin,
    ExhaustedAnswer,
    FailureAnswer,
    FromAdviser,
    ImportancesAnswer,
    JudgementAnswer,
    ToAdviser,
    ValuesAnswer,
    decode_answer,
    encode,
    without_unread,
)

COMMAND: Final = (sys.executable, "-P", "-m", "pliant.entry.adviser")
DEADLINE_S: Final = 60.0
GP_DEADLINE_S: Final = 300.0
"""A Gaussian process is fitted to all trials at every call."""
MAX_ANSWER_BYTES: Final = 64 << 20
_MAX_PRINTED: Final = 2000
_CHUNK: Final = 1 << 16
_MAX_SENT: Final = 1 << 18
_NUM_LEFT: Final = 32
"""Pieces of what it printed that are read after its end: more than a pipe holds."""
_END_S: Final = 2.0
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One thread, since results may depend on how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviserProgram:
    """What is run to choose values, and how."""

    command: Sequence[str]
    """The number of its socket comes after it, as the last of its arguments."""
    env: Mapping[str, str] = field(repr=False)
    """All its variables; but that it has one thread, and that Python hashes as it did before, is said besides."""
    cwd: str = "/"
    deadline_s: float = DEADLINE_S
    """So long a call may take."""
    called: str = "the adviser's process"
    """How errors call it."""
    printed: Callable[[bytes], None] | None = None
    """Gets what it prints, in pieces, while it is asked and when it ends. Keeps of it what it likes; raises nothing."""
    max_answer_bytes: int = MAX_ANSWER_BYTES
    """One that answers with more is lost."""
    end_s: float = 0.0
    """So long it has, when it is to end (SIGTERM), to end what it has started; then, and at 0 at once, its process
    group is killed."""


def own_program(opening: AdviserInput, env: Mapping[str, str]) -> AdviserProgram:
    """Return the program of Pliant's own samplers.

    Args:
        opening: of the search.
        env: of the server; what is harmless in it is passed on.
    """
    deadline_s = GP_DEADLINE_S if opening.settings.sampler.name == "gp" else DEADLINE_S
    return AdviserProgram(command=COMMAND, env=allowed(env), deadline_s=deadline_s)


class AdviserProcess:
    """An `Adviser` in a process, which is started here and ends with this one. For one caller at a time."""

    def __init__(self, opening: AdviserInput, program: AdviserProgram) -> None:
        """Start the process; do not wait until it is ready.

        Raises:
            AdviserLost: it cannot be started.
        """
        self._program = program
        self._pruner = opening.settings.pruner
        self._process, self._channel, self._end_of_process = _start(program)
        assert self._process.stdout is not None
        self._printed = self._process.stdout
        self._selector = selectors.DefaultSelector()
        for readable in (self._channel, self._printed, self._end_of_process):
            self._selector.register(readable, selectors.EVENT_READ)
        self._last_printed = b""
        """The end of what it has printed."""
        self._received = bytearray()
        trials = without_unread(opening.trials, self._pruner)
        self._unsent = bytearray(encode(Begin(opening=replace(opening, trials=trials))))

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        question = AskValues(number=number, changed=without_unread(changed, self._pruner), given=given)
        match self._answer(question):
            case ValuesAnswer(values=values, state=state, attributes=attributes):
                return Asked(values=values, state=state, attributes=attributes)
            case ExhaustedAnswer(reason=reason):
                return Exhausted(reason=reason)
            case other:
                raise self._lost(f"answers a question with another one's answer, {other.kind}")

    def judge(self, number: int, changed: Sequence[Trial]) -> Judgement:
        question = AskJudgement(number=number, changed=without_unread(changed, self._pruner))
        match self._answer(question):
            case JudgementAnswer(prune=prune, reason=reason):
                return Judgement(prune=prune, reason=reason)
            case other:
                raise self._lost(f"answers a question with another one's answer, {other.kind}")

    def importances(self) -> Mapping[str, float]:
        match self._answer(AskImportances()):
            case ImportancesAnswer(importances=importances):
                return importances
            case other:
                raise self._lost(f"answers a question with another one's answer, {other.kind}")

    def close(self) -> None:
        """End the process; does nothing if it has been ended."""
        if self._channel.fileno() >= 0:
            self._end(0.0)

    def _answer(self, question: ToAdviser) -> FromAdviser:
        if self._channel.fileno() < 0:
            raise AdviserLost("the adviser has been ended; start another one")
        self._unsent += encode(question)
        deadline = time.monotonic() + self._program.deadline_s
        while not self._received.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._lost(f"does not answer for {self._program.deadline_s:g} s")
            self._exchange(left)
        line = bytes(self._received)
        self._received.clear()
        try:
            answer = decode_answer(line)
        except ValueError as error:
            raise self._lost(f"answers with no message: {error}") from error
        if isinstance(answer, FailureAnswer):
            raise AdviserFailure(answer.message)
        return answer

    def _exchange(self, timeout_s: float) -> None:
        """Send and read what can be, also what it prints, so that it never waits to be read."""
        self._selector.modify(self._channel, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0))
        for key, events in self._selector.select(timeout_s):
            if key.fileobj is self._printed:
                self._read_printed()
            elif key.fileobj == self._end_of_process:
                self._receive_last()
            elif events & selectors.EVENT_READ:
                self._receive()
            else:
                self._send()

    def _send(self) -> None:
        with suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):  # its end is found by who receives
            del self._unsent[: self._channel.send(self._unsent[:_MAX_SENT])]

    def _receive(self) -> bool:
        """Take what it has answered so far; return whether there was something."""
        try:
            chunk = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            raise self._lost("has ended", grace_s=_END_S)
        self._received += chunk
        if len(self._received) > self._program.max_answer_bytes:
            raise self._lost(f"answers with more than {self._program.max_answer_bytes} bytes")
        return True

    def _receive_last(self) -> None:
        """Take what it has answered before it ended: what it has started may have its socket, and live on."""
        while not self._received.endswith(b"\n"):
            if not self._receive():
                raise self._lost("has ended")

    def _read_printed(self) -> bool:
        """Hand on what it has printed, and keep its end; return whether there was something."""
        chunk = self._printed.read(_CHUNK)
        if chunk == b"":
            self._selector.unregister(self._printed)
        if chunk and self._program.printed is not None:
            self._program.printed(chunk)
        self._last_printed = (self._last_printed + (chunk or b""))[-_MAX_PRINTED:]
        return bool(chunk)

    def _lost(self, what: str, *, grace_s: float = 0.0) -> AdviserLost:
        """End the process; return the error that it is lost, with the end of what it printed."""
        self._end(grace_s)
        printed = self._last_printed.decode(errors="replace").replace("\0", "\ufffd").strip()
        code = self._process.returncode
        ended = "" if code is None else f" (exit code {code})"
        at_last = f"; at last it printed: {printed}" if printed else ""
        return AdviserLost(f"{self._program.called} {what}{ended}{at_last}")

    def _end(self, grace_s: float) -> None:
        """End the process, which may end by itself for so long, and what it has started.

        Nobody waits for it before all signals are sent: as long as nobody has, its number is not given to others.
        """
        if not self._ends_within(grace_s) and self._program.end_s:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self._process.pid, signal.SIGTERM)
            self._ends_within(self._program.end_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        if self._printed in self._selector.get_map():
            for _ in range(_NUM_LEFT):
                if not self._read_printed():
                    break
        self._selector.close()
        os.close(self._end_of_process)
        for end in (self._channel, self._printed, self._process.stdin):
            if end is not None:
                end.close()

    def _ends_within(self, timeout_s: float) -> bool:
        """Wait for the end of the process, and read what it prints, so that this is not what it waits for."""
        deadline = time.monotonic() + timeout_s
        while True:
            poll = select.poll()
            poll.register(self._end_of_process, select.POLLIN)
            if self._printed in self._selector.get_map():
                poll.register(self._printed, select.POLLIN)
            left = deadline - time.monotonic()
            ready = {descriptor for descriptor, _ in poll.poll(max(0.0, left) * 1000)}
            if self._end_of_process in ready:
                return True
            if left <= 0:
                return False
            if ready:
                self._read_printed()


def _start(program: AdviserProgram) -> tuple["subprocess.Popen[bytes]", socket.socket, int]:
    """Return the process, our end of its socket, and a descriptor that can be read when it has ended."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    process = None
    with theirs:
        try:
            process = subprocess.Popen(
                [*program.command, str(theirs.fileno())],
                bufsize=0,
                stdin=subprocess.PIPE,  # it notices the end of this process by it, also while it computes
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=program.cwd,
                env={**program.env, **dict.fromkeys(_THREADS, "1"), "PYTHONHASHSEED": "0"},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
            end_of_process = os.pidfd_open(process.pid)
        except OSError as error:
            ours.close()
            if process is not None:  # there are too many descriptors
                process.kill()
                process.communicate()
            raise AdviserLost(f"{program.called} cannot be started: {error.strerror or error}") from error
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return process, ours, end_of_process
