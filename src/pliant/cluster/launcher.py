"""Starts the agent of the machine it is on, and again when it ends: for a server's own machine, and for nodes of Ray's.

Theory of operation. The agent is no child of the launcher, so that it outlives whoever keeps that: a server that is
killed, an actor of Ray's, which takes its children with it. Whether an agent runs is told by the lock of its folder,
and which process it is by what the launcher wrote that started it; so a launcher that comes anew starts no second one.
A launcher that nobody has asked for hours belongs to a pool that is no more: it ends its agent. It also does if the
machine is let go, and takes the agent's certificate away, not its key: should the machine stay, or come back with its
disk, it joins anew, whether the pool knows it still or not.
"""

import hashlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from pliant.cluster import process
from pliant.files.folder import write_whole
from pliant.files.lock import take_lock

LauncherState = Literal["starting", "running", "waiting", "ended", "released"]
"""Of an agent: begun with, there, waits for a join token, has ended and is started again later, has ended since the
machine is let go."""
AGENT: Final = (sys.executable, "-P", "-m", "pliant.entry.agent")
ABANDONED_S: Final = 6 * 3600.0
_LOG: Final = "agent.log"
_LAUNCHED: Final = "launched"
"""Which process was started last: its number, its stamp, and what its options were."""
_LOOK_S: Final = 0.5
_FIRST_PAUSE_S: Final = 1.0
_LAST_PAUSE_S: Final = 30.0
_START_S: Final = 30.0
_MAX_SAID: Final = 500
_MAX_LOG: Final = 4 << 20
_END_S: Final = 5.0
_DROPPED: Final = ("RAY_", "PLIANT_", "OMP_NUM_THREADS")
"""How variables begin that no agent gets: what is Ray's, which also sets the number of threads to 1, and what is the
server's, such as the password of its database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """What an agent is started with."""

    machine: str
    """Its name in the pool."""
    pool: str
    """What tells this pool from others."""
    server: str
    """HOST:PORT."""
    options: tuple[str, ...] = ()
    """Further ones of the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """What a launcher says of its agent."""

    machine: str
    state: LauncherState
    said: str = ""


class AgentLauncher:
    """Keeps one agent running. Its methods may be called from any thread."""

    def __init__(
        self,
        plan: LaunchPlan,
        folder: Path,
        *,
        program: Sequence[str] = AGENT,
        abandoned_s: float = ABANDONED_S,
    ) -> None:
        """Begin to look for the agent, and to start it if there is none.

        Args:
            plan: what it is started with.
            folder: the agent's own, on this machine.
            program: to which the agent's options are added.
            abandoned_s: so long after the last `look` the agent is ended.
        """
        self._plan = plan
        self._folder = folder
        self._program = tuple(program)
        self._abandoned_s = abandoned_s
        self._changed = threading.Condition()
        self._token = ""
        self._state: LauncherState = "starting"
        self._said = ""
        self._asked_at = time.monotonic()
        self._is_closed = self._ends_agent = False
        self._is_let_go = False
        self._thread = threading.Thread(target=self._keep, name="launcher", daemon=True)
        self._thread.start()

    def look(self, server: str, token: str = "", *, let_go: bool = False) -> Launched:
        """Return what the agent does.

        Args:
            server: where the agents of this pool reach their server now.
            token: with which the agent can join, if it waits for one.
            let_go: the machine is not wanted any more; its agent ends.
        """
        with self._changed:
            self._asked_at = time.monotonic()
            self._plan = replace(self._plan, server=server)
            self._token = token or self._token
            self._is_let_go = let_go
            self._changed.notify_all()
            return Launched(machine=self._plan.machine, state=self._state, said=self._said)

    def close(self, *, end_agent: bool = False) -> None:
        """Start no agent any more; one that runs goes on, unless it is to end: then its end is waited for a while."""
        with self._changed:
            self._is_closed, self._ends_agent = True, end_agent
            self._changed.notify_all()
        self._thread.join()

    def fault(self) -> str:
        """Return why no agent can live here, in words; empty if one can."""
        return ""

    def _keep(self) -> None:
        pause_s = 0.0
        while not self._is_closed:
            if self._is_let_go:
                self._release()
            self._wait(lambda: self._is_wanted)
            began_at = time.monotonic()
            try:
                self._look_after_one()
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                self._note("ended", f"the agent cannot be started: {error}")
            lasted_s = time.monotonic() - began_at
            pause_s = _FIRST_PAUSE_S if lasted_s > _LAST_PAUSE_S else min(2 * pause_s or _FIRST_PAUSE_S, _LAST_PAUSE_S)
            self._wait(lambda: self._is_let_go, pause_s)

    def _release(self) -> None:
        """Make the agent, which has ended, join anew if it is started again."""
        try:
            self._certificate.unlink(missing_ok=True)
        except OSError as error:
            return self._note("ended", f"the agent's certificate cannot be removed: {error}")
        self._token = ""
        return self._note("released", "")

    def _look_after_one(self) -> None:
        """Wait for the end of the agent that runs, or start one and wait for its end."""
        folder = self._folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if fault := self.fault():
            return self._note("ended", fault)
        pidfd = self._find(folder) if _is_held(folder) else self._start(folder)
        if pidfd is None:
            return None
        try:
            self._note("running", "")
            while not self._is_closed and not select.select([pidfd], [], [], _LOOK_S)[0]:
                if not self._is_wanted:
                    process.send_signal(pidfd, signal.SIGTERM)
            if self._ends_agent:
                process.send_signal(pidfd, signal.SIGTERM)
                select.select([pidfd], [], [], _END_S)
        finally:
            os.close(pidfd)
        return self._note("ended", last_line(folder / _LOG))

    def _find(self, folder: Path) -> int | None:
        """Return a pidfd of the agent that another launcher has started."""
        with suppress(OSError, ValueError):
            pid, its_stamp, *options = (folder / _LAUNCHED).read_text().split()
            if (pidfd := process.open_process(int(pid), its_stamp)) is not None:
                if options not in ([], [self._mark]):  # its tasks go on, and the next one adopts them
                    process.send_signal(pidfd, signal.SIGTERM)
                return pidfd
        self._note("ended", f"somebody else has started an agent with the folder {folder}; end that one")
        return None

    def _start(self, folder: Path) -> int | None:
        """Start an agent; return a pidfd of it; None: there is no use for it any more."""
        token = "" if self._certificate.exists() else self._wait_for_token()
        if self._is_closed or not self._is_wanted:
            return None
        log = folder / _LOG
        if log.exists() and log.stat().st_size > _MAX_LOG:
            log.replace(log.with_suffix(".log.1"))
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pliant.entry.detached", str(log), *self._command],
            input=f"{token}\n",
            env=agent_env(os.environ),
            cwd="/",
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=_START_S,
        )
        pid = int(done.stdout)
        its_stamp = process.stamp(pid)
        write_whole(folder / _LAUNCHED, f"{pid} {its_stamp} {self._mark}".encode(), durable=False)
        return process.open_process(pid, its_stamp)

    @property
    def _command(self) -> Sequence[str]:
        return (
            *self._program,
            *("--state-dir", str(self._folder), "--join", self._plan.server, "--name", self._plan.machine),
            *self._plan.options,
        )

    @property
    def _mark(self) -> str:
        """What tells options from others."""
        return hashlib.sha256(repr(self._plan.options).encode()).hexdigest()[:12]

    @property
    def _certificate(self) -> Path:
        return self._folder / "identity" / "certificate.pem"

    @property
    def _is_wanted(self) -> bool:
        return not self._is_let_go and time.monotonic() - self._asked_at < self._abandoned_s

    def _wait_for_token(self) -> str:
        self._note("waiting", "")
        self._wait(lambda: bool(self._token) or self._is_let_go)
        token, self._token = self._token, ""
        return token

    def _wait(self, is_over: Callable[[], bool], timeout_s: float | None = None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or is_over(), timeout_s)

    def _note(self, state: LauncherState, said: str) -> None:
        with self._changed:
            self._state, self._said = state, said


def agent_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an agent: this process's, without what is Ray's or the server's alone."""
    return {name: value for name, value in env.items() if not name.startswith(_DROPPED)}


def last_line(log: Path) -> str:
    """Return the last line that is not empty; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:_MAX_SAID] if lines else ""


def _is_held(folder: Path) -> bool:
    """Tell whether an agent has the folder."""
    lock = take_lock(folder / "agent.lock")
    if lock is None:
        return True
    os.close(lock)
    return False
