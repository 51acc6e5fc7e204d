"""Who keeps the process of a gateway: the server on its own machine, from the first endpoint on, the agent on another.

A gateway outlives a killed server or agent, and the next one takes it over: it is known by the record in its state
folder, whose stamp no other process can have. Only one of them can run, since it holds a lock. It runs no person's
code, so it is the user that its keeper is. Knows no link: what they say to each other is `pliant.server.gateways`.
"""

import json
import logging
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pliant.cluster.process import open_process, send_signal
from pliant.serve.gateway.gateway_files import KEY_VARIABLE, LOG, RECORD

log = logging.getLogger("pliant")

STATE: Final = "gateway"
"""Folder of the gateway in the state folder of the server, or of the agent."""
END_S: Final = 30.0
"""So long it may take to finish what it has; it takes a little less."""
_RETRY_FIRST_S: Final = 0.2
_RETRY_MOST_S: Final = 10.0
_STABLE_S: Final = 60.0
"""One that has run for so long is started again at once."""
_PROGRAM: Final = (sys.executable, "-P", "-m", "pliant.entry.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """How the gateway of a machine is started."""

    state: Path
    """Folder of its own files."""
    server_file: Path
    """Says where the server is; the socket for kernels is made beside it."""
    key: str = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    """What of its keeper's variables it gets."""
    host: str
    port: int
    """0 takes any free one."""
    grpc_port: int = 0
    """The same for gRPC."""
    num_processes: int = 1
    """That answer side by side; more than one are kept by another one, which is the process that is meant here."""
    first: int = 0
    """The number of the first of them among all of the server."""
    of: int | None = None
    """So many gateways the server has, on whichever machine; None: these."""
    machine: str = ""
    """On which it runs; empty: on the server's own."""
    public_host: str | None = None
    """How others name this machine."""
    kernel_host: str | None = None
    """Where kernels of other machines reach it, over TLS with its certificate; None: no machine may join."""
    kernel_port: int = 0
    """There, of the first process, and the ports after it of others; 0 takes any free ones."""
    kernel_name: str | None = None
    """The name that they check the certificate by; None: `kernel_host`."""
    certificate: Path | None = None
    key_file: Path | None = None
    restarts_after_end: bool = True
    """If not, one that ends well by itself stays ended until `ensure` is called again."""
    asked_for_s: float = END_S
    """One that was asked for so shortly before such an end is started again: the server that it obeyed is another."""
    program: tuple[str, ...] = _PROGRAM

    def command(self) -> list[str]:
        """Return its command line, in which no secret is."""
        return [*self.program, *self.arguments()]

    def arguments(self) -> tuple[str, ...]:
        """Return what it is told."""
        given = {
            "--server-file": self.server_file,
            "--state": self.state,
            "--host": self.host,
            "--port": self.port,
            "--grpc-port": self.grpc_port,
            "--processes": self.num_processes,
            "--first": self.first or None,
            "--of": self.of,
            "--machine": self.machine or None,
            "--public-host": self.public_host,
            "--kernel-host": self.kernel_host,
            "--kernel-port": self.kernel_port or None,
            "--kernel-name": self.kernel_name,
            "--certificate": self.certificate,
            "--key": self.key_file,
        }
        return tuple(f"{name}={value}" for name, value in given.items() if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A gateway that runs."""

    pid: int
    pidfd: int
    is_child: bool
    """This keeper has started it; else an earlier one has."""
    since: float
    url: str = ""
    """Where it said that it listens, if an earlier keeper has started it."""
    arguments: tuple[str, ...] | None = None
    """With which that one has started it; None if it does not say."""


class GatewayProcess:
    """The one gateway of a server, or of an agent. Safe to use from any thread."""

    def __init__(self, options: GatewayOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._is_closed = False
        self._stop = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watcher: threading.Thread | None = None
        """None: nobody wants a gateway, or the last one has ended well."""
        self._asked_at = -math.inf
        """When `ensure` was called last."""
        self._left: _Running | None = None
        """The one that ran when the watcher was stopped."""

    def ensure(self) -> None:
        """See to it that a gateway runs from now on; returns at once."""
        with self._lock:
            self._asked_at = time.monotonic()
            if self._watcher is None and not self._is_closed:
                self._watcher = threading.Thread(target=self._watch, name="pliant-gateway", daemon=True)
                self._watcher.start()

    def close(self, *, retire: bool = True) -> None:
        """Start it no more; if it retires, have it finish and wait until it has ended, else leave it running."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            os.eventfd_write(self._stop, 1)
            watcher = self._watcher
        if watcher is not None:
            watcher.join()
        left = self._left or _find(self._options.state)
        if left is not None and retire:
            _end(left)
        if left is not None:
            os.close(left.pidfd)
        os.close(self._stop)

    @property
    def pid(self) -> int | None:
        """The process that is the gateway now; None if none is."""
        running = _find(self._options.state)
        if running is None:
            return None
        os.close(running.pidfd)
        return running.pid

    def _watch(self) -> None:
        delay_s = _RETRY_FIRST_S
        while True:
            running = _find(self._options.state) or self._start()
            if running is not None:
                if running.arguments is not None and running.arguments != self._options.arguments():
                    if not self._replace(running):
                        return
                    continue
                if not running.is_child:
                    log.info("a gateway that was started before serves on at %s (pid %d)", running.url, running.pid)
                ready = _wait_for(None, self._stop, running.pidfd)
                if running.pidfd not in ready:
                    self._left = running
                    return
                has_ended_well = self._note_end(running)
                os.close(running.pidfd)
                if has_ended_well and not self._goes_on():
                    return
                if time.monotonic() - running.since >= _STABLE_S:
                    delay_s = _RETRY_FIRST_S
            if _wait_for(delay_s, self._stop):
                return
            delay_s = min(2 * delay_s, _RETRY_MOST_S)

    def _replace(self, running: _Running) -> bool:
        """Have a gateway finish what it has and end, since other settings hold now; tell whether to start another."""
        message = "the gateway at %s (pid %d) has other settings than now: it was started before, and is replaced"
        log.warning(message, running.url, running.pid)
        send_signal(running.pidfd, signal.SIGTERM)
        ready = _wait_for(END_S, self._stop, running.pidfd)
        if self._stop in ready and running.pidfd not in ready:
            self._left = running
            return False
        if running.pidfd not in ready:
            _end(running)
        _reap(running)
        os.close(running.pidfd)
        return True

    def _goes_on(self) -> bool:
        """Tell whether a gateway is started again after one that has ended well."""
        with self._lock:
            if self._options.restarts_after_end or time.monotonic() - self._asked_at < self._options.asked_for_s:
                return True
            log.info("the gateway has nothing more to serve; it is started again for the next server")
            self._watcher = None
            return False

    def _start(self) -> _Running | None:
        """Start a gateway; None if that is impossible now."""
        options = self._options
        env = {**options.env, KEY_VARIABLE: options.key}
        try:
            options.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Not by `subprocess`, which takes it ill that a child outlives its parent.
            pid = os.posix_spawn(
                options.program[0],
                options.command(),
                env,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, str(options.state / LOG), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
            )
        except OSError as error:
            log.error("the gateway cannot be started: %s", error)  # noqa: TRY400 (nothing of the trace helps)
            return None
        return _Running(pid=pid, pidfd=os.pidfd_open(pid), is_child=True, since=time.monotonic())

    def _note_end(self, ended: _Running) -> bool:
        """Take note of an end; tell whether it was a good one."""
        code, how = _reap(ended), ""
        if code is not None:
            how = f" with code {code}; its words are in {self._options.state / LOG}"
        is_well = code == 0 or (code is None and not (self._options.state / RECORD).exists())
        if is_well and not self._options.restarts_after_end:
            log.info("the gateway (pid %d) has ended%s", ended.pid, how)
        else:
            log.warning("the gateway (pid %d) has ended%s; it is started again", ended.pid, how)
        return is_well


def retire_left(state: Path) -> bool:
    """Have a gateway that runs with this folder finish what it has, and wait until it has ended; tell whether one did.

    Args:
        state: the folder of its own files.
    """
    running = _find(state)
    if running is None:
        return False
    log.info("the gateway at %s (pid %d) is not wanted any more", running.url, running.pid)
    _end(running)
    os.close(running.pidfd)
    return True


def _find(state: Path) -> _Running | None:
    """Return the gateway that the record in a folder names, if it lives."""
    try:
        record = json.loads((state / RECORD).read_text())
        pid, its_stamp, url = int(record["pid"]), str(record["stamp"]), str(record["url"])
        given = record.get("arguments")
        arguments = None if given is None else tuple(map(str, given))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    pidfd = open_process(pid, its_stamp)
    if pidfd is None:
        return None
    return _Running(pid=pid, pidfd=pidfd, is_child=False, since=time.monotonic(), url=url, arguments=arguments)


def _end(running: _Running) -> None:
    """Have a gateway finish what it has and end, and see that it does."""
    send_signal(running.pidfd, signal.SIGTERM)
    if not _wait_for(END_S, running.pidfd):
        log.warning("the gateway (pid %d) has not ended within %g s: it is killed", running.pid, END_S)
        send_signal(running.pidfd, signal.SIGKILL)
        _wait_for(END_S, running.pidfd)
    _reap(running)


def _reap(ended: _Running) -> int | None:
    """Return the exit code of one that has ended; None if it was no child of this process, or was reaped before.

    One that was found may be a child all the same: an agent that begins again is the same process.
    """
    try:
        found = os.waitid(os.P_PIDFD, ended.pidfd, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return None
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _wait_for(seconds: float | None, *files: int) -> tuple[int, ...]:
    """Wait until some of these files can be read, or for so long; return which."""
    watched = select.poll()
    for file in files:
        watched.register(file, select.POLLIN)
    return tuple(file for file, _ in watched.poll(None if seconds is None else 1000 * seconds))
