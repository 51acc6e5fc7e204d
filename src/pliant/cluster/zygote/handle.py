"""The agent's end of a zygote: starts the process, sends it orders, hears it, and sees it end. Knows no slots."""

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from pliant.cluster import process
from pliant.cluster.settings import Readiness
from pliant.cluster.zygote.messages import Inbox, Launch, Message, Warm, encode
from pliant.cluster.zygote.zygote import ZygoteSettings

_log = logging.getLogger(__name__)

_CHANNEL = 3
_POLL_S = 0.005
_LOG_NAME = "zygote.log"


class ZygoteProcess:
    """One zygote and the socket to it."""

    def __init__(self, settings: ZygoteSettings, env: Mapping[str, str]) -> None:
        self.log_path = settings.state_dir / _LOG_NAME
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.channel.setblocking(False)
            self.pid = _spawn(_command(settings), env, theirs.fileno(), str(self.log_path))
        self.stamp = process.stamp(self.pid)
        self.warm: Warm | None = None
        self._inbox = Inbox(self.channel)
        self._unsent = b""

    def order(self, launch: Launch) -> None:
        """Queue an order; `flush` sends it."""
        self._unsent += encode(launch)

    def flush(self) -> bool:
        """Send what the socket takes; return whether something is left."""
        while self._unsent:
            try:
                sent = self.channel.send(self._unsent)
            except BlockingIOError:
                return True
            except (BrokenPipeError, ConnectionResetError):
                self._unsent = b""  # its end is heard as well
                return False
            self._unsent = self._unsent[sent:]
        return False

    def hear(self) -> list[Message] | None:
        """Return what it has said; None if it has ended."""
        try:
            heard = self._inbox.read()
        except BlockingIOError:
            return []
        if heard is None:
            return None
        messages = list(heard)
        for message in messages:
            if isinstance(message, Warm):
                self.warm = message
                for module, why in message.missing.items():
                    _log.warning("%s could not be imported before the first task, tasks do it: %s", module, why)
        return messages

    def readiness(self) -> Readiness:
        """Return how ready it is."""
        warm = self.warm
        if warm is None:
            return Readiness(pid=self.pid, warm=False)
        return Readiness(
            pid=self.pid, warm=True, warm_up_s=warm.seconds, missing=warm.missing, num_threads=warm.num_threads
        )

    def end(self, timeout_s: float, *, force: bool) -> bool:
        """Hang up and wait for its end, forced by SIGKILL (its children survive that); return whether it ended."""
        self.channel.close()
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
