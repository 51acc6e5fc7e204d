"""The server's end of the gateway's process: starts it with the first endpoint, and again when it dies.

A gateway outlives a killed server, and the next one takes it over: it is known by the record in its state folder, whose
stamp no other process can have. Only one of them can run, since it holds a lock. It runs no person's code, so it is the
server's own user. Knows no link: what they say to each other is `pliant.server.gateways`.
"""

import json
import logging
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
"""Folder of the gateway in the state folder of the server."""
END_S: Final = 30.0
"""So long it may take to finish what it has; it takes a little less."""
_RETRY_FIRST_S: Final = 0.2
_RETRY_MOST_S: Final = 10.0
_STABLE_S: Final = 60.0
"""One that has run for so long is started again at once."""
_PROGRAM: Final = (sys.executable, "-P", "-m", "pliant.entry.gateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """How the gateway of a server is started."""

    home: Path
    """The server's state folder."""
    server_file: Path
    """Says where the server is; the socket for kernels is made beside it."""
    key: str = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    """What of the server's variables it gets."""
    host: str
    port: int
    """0 takes any free one."""
    grpc_port: int = 0
    """The same for gRPC."""
    num_processes: int = 1
    """That answer side by side; more than one are kept by another one, which is the process that is meant here."""
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
    program: tuple[str, ...] = _PROGRAM

    @property
    def state(self) -> Path:
        return self.home / STATE

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
    """Of this process; else an earlier server has started it."""
    since: float
    url: str = ""
    """Where it said that it listens, if an earlier server has started it."""
    arguments: tuple[str, ...] | None = None
    """With which that server has started it; None if it does not say."""


class GatewayProcess:
    """The one gateway of a server. Safe to use from any thread."""

    def __init__(self, options: GatewayOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._is_closed = False
        self._stop = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._watcher: threading.Thread | None = None
        self._left: _Running | None = None
        """The one that ran when the watcher was stopped."""

    def ensure(self) -> None:
        """See to it that a gateway runs from now on; returns at once."""
        with self._lock:
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
        if self._watcher is not None:
            self._watcher.join()
        left = self._left or self._find()
        if left is not None and retire:
            self._end(left)
        if left is not None:
            os.close(left.pidfd)
        os.close(self._stop)

    @property
    def pid(self) -> int | None:
        """The process that is the gateway now; None if none is."""
        running = self._find()
        if running is None:
            return None
        os.close(running.pidfd)
        return running.pid

    def _watch(self) -> None:
        delay_s = _RETRY_FIRST_S
        while True:
            running = self._find() or self._start()
            if running is not None:
                if running.arguments is not None and running.arguments != self._options.arguments():
                    if not self._replace(running):
                        return
                    continue
                if not running.is_child:
                    log.info("a gateway of an earlier server serves on at %s (pid %d)", running.url, running.pid)
                ready = _wait_for(None, self._stop, running.pidfd)
                if running.pidfd not in ready:
                    self._left = running
                    return
                os.close(running.pidfd)
                self._note_end(running)
                if time.monotonic() - running.since >= _STABLE_S:
                    delay_s = _RETRY_FIRST_S
            if _wait_for(delay_s, self._stop):
                return
            delay_s = min(2 * delay_s, _RETRY_MOST_S)

    def _replace(self, running: _Running) -> bool:
        """Have a gateway finish what it has and end, since other settings hold now; tell whether to start another."""
        message = "the gateway of an earlier server at %s (pid %d) has other settings than this one: it is replaced"
        log.warning(message, running.url, running.pid)
        send_signal(running.pidfd, signal.SIGTERM)
        ready = _wait_for(END_S, self._stop, running.pidfd)
        if self._stop in ready and running.pidfd not in ready:
            self._left = running
            return False
        if running.pidfd not in ready:
            self._end(running)
        os.close(running.pidfd)
        return True

    def _find(self) -> _Running | None:
        """Return the gateway that its record names, if it lives."""
        try:
            record = json.loads((self._options.state / RECORD).read_text())
            pid, its_stamp, url = int(record["pid"]), str(record["stamp"]), str(record["url"])
            given = record.get("arguments")
            arguments = None if given is None else tuple(map(str, given))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        pidfd = open_process(pid, its_stamp)
        if pidfd is None:
            return None
        return _Running(pid=pid, pidfd=pidfd, is_child=False, since=time.monotonic(), url=url, arguments=arguments)

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

    def _note_end(self, ended: _Running) -> None:
        how = ""
        if ended.is_child:
            code = os.waitstatus_to_exitcode(os.waitpid(ended.pid, 0)[1])
            how = f" with code {code}; its words are in {self._options.state / LOG}"
        log.warning("the gateway (pid %d) has ended%s; it is started again", ended.pid, how)

    def _end(self, running: _Running) -> None:
        """Have a gateway finish what it has and end, and see that it does."""
        send_signal(running.pidfd, signal.SIGTERM)
        if not _wait_for(END_S, running.pidfd):
            log.warning("the gateway (pid %d) has not ended within %g s: it is killed", running.pid, END_S)
            send_signal(running.pidfd, signal.SIGKILL)
            _wait_for(END_S, running.pidfd)
        if running.is_child:
            os.waitpid(running.pid, os.WNOHANG)


def _wait_for(seconds: float | None, *files: int) -> tuple[int, ...]:
    """Wait until some of these files can be read, or for so long; return which."""
    watched = select.poll()
    for file in files:
        watched.register(file, select.POLLIN)
    return tuple(file for file, _ in watched.poll(None if seconds is None else 1000 * seconds))
