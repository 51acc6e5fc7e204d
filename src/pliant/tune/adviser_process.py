"""An adviser in a process of its own (`AdviserProcess`), so that what chooses values is nobody else's trouble.

Optuna's Gaussian processes compute for seconds and load torch; its CMA-ES unpickles what it has noted itself. The
process has no secrets, limits of memory and of time, and is killed at will: its search goes on with another one, from
what is in the store. It can print what it likes: answers come through a socket that only it and this handle have.
"""

import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
_MAX_SAID: Final = 2000
_CHUNK: Final = 1 << 16
_MAX_SENT: Final = 1 << 18
_NUM_LEFT: Final = 32
"""Pieces of what it printed that are read after its end: more than a pipe holds."""
_END_S: Final = 2.0
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class AdviserProcess:
    """An `Adviser` in a process, which is started here and ends with this one. For one caller at a time."""

    def __init__(
        self,
        opening: AdviserInput,
        *,
        env: Mapping[str, str],
        deadline_s: float | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """Start the process; do not wait until it is ready.

        Args:
            opening: what it is made from.
            env: of the server; what is harmless in it is passed on.
            deadline_s: so long a call may take; None: as long as the sampler needs at most.
            command: the program; the number of its socket is the last of its arguments.

        Raises:
            AdviserLost: it cannot be started.
        """
        self._pruner = opening.settings.pruner
        usual = GP_DEADLINE_S if opening.settings.sampler.name == "gp" else DEADLINE_S
        self._deadline_s = usual if deadline_s is None else deadline_s
        self._process, self._channel = _start(command, _environment(env))
        assert self._process.stdout is not None
        self._printed = self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._channel, selectors.EVENT_READ)
        self._selector.register(self._printed, selectors.EVENT_READ)
        self._said = b""
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
        deadline = time.monotonic() + self._deadline_s
        while not self._received.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._lost(f"does not answer for {self._deadline_s:g} s")
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
            elif events & selectors.EVENT_READ:
                self._receive()
            else:
                self._send()

    def _send(self) -> None:
        with suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):  # its end is found by who receives
            del self._unsent[: self._channel.send(self._unsent[:_MAX_SENT])]

    def _receive(self) -> None:
        try:
            chunk = self._channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            raise self._lost("has ended", grace_s=_END_S)
        self._received += chunk
        if len(self._received) > MAX_ANSWER_BYTES:
            raise self._lost(f"answers with more than {MAX_ANSWER_BYTES} bytes")

    def _read_printed(self) -> bool:
        """Keep the end of what it has printed; return whether there was something."""
        chunk = self._printed.read(_CHUNK)
        if chunk == b"":
            self._selector.unregister(self._printed)
        self._said = (self._said + (chunk or b""))[-_MAX_SAID:]
        return bool(chunk)

    def _lost(self, what: str, *, grace_s: float = 0.0) -> AdviserLost:
        """End the process; return the error that it is lost, with the end of what it printed."""
        self._end(grace_s)
        said = self._said.decode(errors="replace").strip()
        code = self._process.returncode
        ended = "" if code is None else f" (exit code {code})"
        return AdviserLost(f"the adviser's process {what}{ended}" + (f"; at last it printed: {said}" if said else ""))

    def _end(self, grace_s: float) -> None:
        """End the process, which may end by itself for so long."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        if self._printed in self._selector.get_map():
            for _ in range(_NUM_LEFT):
                if not self._read_printed():
                    break
        self._selector.close()
        for end in (self._channel, self._printed, self._process.stdin):
            if end is not None:
                end.close()


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an adviser: one thread, since results may depend on how many there are."""
    return {**allowed(env), **dict.fromkeys(_THREADS, "1"), "PYTHONHASHSEED": "0"}


def _start(command: Sequence[str], env: Mapping[str, str]) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:
        try:
            process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                bufsize=0,
                stdin=subprocess.PIPE,  # it notices the end of this process by it, also while it computes
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=dict(env),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise AdviserLost(f"the adviser's process cannot be started: {error.strerror or error}") from error
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    return process, ours
