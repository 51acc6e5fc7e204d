"""The agent's end of a zygote: starts the process, sends it orders, receives what it sends. Knows no slots."""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from pliant.cluster import process
from pliant.cluster.json_lines import LineSocket, decode, encode
from pliant.cluster.zygote.messages import KINDS, Launch, Ping, Warm, ZygoteMessage
from pliant.cluster.zygote.zygote import ZygoteSettings

_log = logging.getLogger(__name__)

_CHANNEL = 3
_POLL_S = 0.005
_LOG_NAME = "zygote.log"


class ZygoteProcess:
    """One zygote and the socket to it."""

    def __init__(self, settings: ZygoteSettings, env: Mapping[str, str]) -> None:
        self.log_path = settings.state_dir / _LOG_NAME
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._channel.setblocking(False)
            self.pid = _spawn(_command(settings), env, theirs.fileno(), str(self.log_path))
        self.stamp = process.stamp(self.pid)
        self.warm: Warm | None = None
        self._asked_at: float | None = None
        self._lines = LineSocket(self._channel)

    def fileno(self) -> int:
        return self._channel.fileno()

    def order(self, launch: Launch) -> None:
        """Queue an order; `flush` sends it.

        Raises:
            ValueError: it is too long.
        """
        self._lines.put(encode(launch))

    def flush(self) -> bool:
        """Send what the socket takes; return whether something is left."""
        return self._lines.flush()

    def flush_all(self, timeout_s: float) -> None:
        """Send all that is queued, unless the socket takes it no sooner than this."""
        deadline = time.monotonic() + timeout_s
        while self.flush() and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def ping(self, now: float) -> None:
        """Queue the question whether it is well, unless one is not answered yet; one that still imports is not asked.

        Whatever it sends is an answer.
        """
        if self._asked_at is None and self.warm is not None:
            self._asked_at = now
            self._lines.put(encode(Ping()))

    def silent_s(self, now: float) -> float:
        """Return how long it has not answered, seconds."""
        return 0.0 if self._asked_at is None else now - self._asked_at

    def receive(self) -> list[ZygoteMessage] | None:
        """Return what it has sent; None if it has ended."""
        if (lines := self._lines.receive()) is None:
            return None
        if lines:
            self._asked_at = None
        messages = [decode(line, KINDS) for line in lines]
        for message in messages:
            if isinstance(message, Warm):
                self.warm = message
                for module, why in message.missing.items():
                    _log.warning("%s could not be imported before the first task, tasks do it: %s", module, why)
        return messages

    def end(self, timeout_s: float, *, force: bool) -> bool:
        """Hang up and wait for its end, forced by SIGKILL (its children survive that); return whether it ended."""
        self._channel.close()
        if force:
            os.kill(self.pid, signal.SIGKILL)  # not waited for yet, so the number is still its own
        deadline = time.monotonic() + timeout_s
        with suppress(ChildProcessError):
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    return False
                time.sleep(_POLL_S)
        return True


def _command(settings: ZygoteSettings) -> list[str]:
    options = {
        "--channel": str(_CHANNEL),
        "--state-dir": str(settings.state_dir),
        "--term": str(settings.term),
        "--entry": settings.entry,
    }
    preload = [f"--preload={name}" for name in settings.preload]
    # -P: a file called torch.py in the folder where the server was started is not what is meant
    return [
        sys.executable,
        "-P",
        "-m",
        "pliant.entry.zygote",
        *(part for pair in options.items() for part in pair),
        *preload,
    ]


def _spawn(command: list[str], env: Mapping[str, str], channel: int, log_path: str) -> int:
    """Start a process in a session of its own, without the signal settings of this one; return its number."""
    log_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawn(
        command[0],
        command,
        env,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, channel, _CHANNEL),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log_path, log_flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
    )
