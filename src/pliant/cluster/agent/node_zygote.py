"""The zygote of a node: started when a task needs it, and another one when it has ended."""

import logging
import selectors
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pliant.cluster.agent.devices import thread_limits
from pliant.cluster.agent.messages import Readiness
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.zygote.handle import ZygoteProcess
from pliant.cluster.zygote.messages import Ended, Launch, Started, Warm, ZygoteMessage
from pliant.cluster.zygote.zygote import ZygoteSettings
from pliant.core.job import TaskId

_log = logging.getLogger(__name__)

_BEGIN_S: Final = 2.0
"""So long after it was started a task begins: its first step comes within that, or soon after."""
_FLUSH_S: Final = 2.0
_ZYGOTE_END_S: Final = 8.0


class NodeZygote:
    """The zygote that there is, or none.

    Args:
        settings: of the agent.
        selector: gets its socket.
        term: the agent's.
        base_env: what its environment starts from.
        send: called with how ready it is.
    """

    def __init__(
        self,
        settings: AgentSettings,
        selector: selectors.BaseSelector,
        *,
        term: int,
        base_env: Mapping[str, str],
        send: Callable[[Readiness], None],
    ) -> None:
        self.take: Callable[[ZygoteMessage, ZygoteProcess], None] = lambda _message, _zygote: None
        """Called with what it says of tasks."""
        self.lost: Callable[[ZygoteProcess], None] = lambda _zygote: None
        """Called when it has ended: its children live on."""
        self._settings = ZygoteSettings(
            state_dir=settings.state_dir.absolute(), term=term, entry=settings.entry, preload=settings.preload
        )
        self._selector = selector
        self._env = {**base_env, **thread_limits(1)}
        self._send = send
        self._process: ZygoteProcess | None = None
        self._ordered: set[TaskId] = set()
        """Those that it has not started yet."""
        self._started_at = float("-inf")
        """When it started the newest one."""

    def get(self) -> ZygoteProcess:
        """Return it; it is started if there is none."""
        if self._process is None:
            zygote = self._process = ZygoteProcess(self._settings, self._env)
            self._selector.register(zygote, selectors.EVENT_READ, partial(self._receive_from, zygote))
            self.tell()
        return self._process

    @property
    def is_calm(self) -> bool:
        """Whether it has imported what tasks need, and started all that it was told to, the last one a while ago."""
        is_warm = self._process is not None and self._process.warm is not None
        return is_warm and not self._ordered and time.monotonic() > self._started_at + _BEGIN_S

    def tell(self) -> None:
        """Say how ready it is."""
        self._send(_readiness(self._process))

    def ask(self, now: float) -> float:
        """Ask it whether it is well; return how long it has not answered, seconds."""
        if self._process is None:
            return 0.0
        self._process.ping(now)
        return self._process.silent_s(now)

    def order(self, launch: Launch) -> None:
        """Have a child forked, when this is flushed."""
        self.get().order(launch)
        self._ordered.add(launch.task_id)

    def flush(self) -> None:
        """Send what it takes; the rest goes when it takes more."""
        if (zygote := self._process) is not None:
            more = selectors.EVENT_WRITE if zygote.flush() else 0
            self._selector.modify(zygote, selectors.EVENT_READ | more, partial(self._receive_from, zygote))

    def close(self, has_children: Callable[[ZygoteProcess], bool]) -> None:
        """Let go of it; it goes on as long as it has children."""
        if (zygote := self._process) is not None:
            self._selector.unregister(zygote)
            zygote.flush_all(_FLUSH_S)
            idle = not has_children(zygote)
            zygote.end(_FLUSH_S if idle else 0.0, force=idle and zygote.warm is None)

    def _receive_from(self, zygote: ZygoteProcess) -> None:
        messages = zygote.receive()
        if messages is None:
            self._lose(zygote)
            return
        for message in messages:
            if isinstance(message, Warm):
                self.tell()
                continue
            if isinstance(message, Started | Ended):
                self._ordered.discard(message.task_id)
            if isinstance(message, Started):
                self._started_at = time.monotonic()
            self.take(message, zygote)

    def _lose(self, zygote: ZygoteProcess) -> None:
        """Let the next start bring up a zygote."""
        self._selector.unregister(zygote)
        zygote.end(_ZYGOTE_END_S, force=True)
        self._process = None
        self._ordered.clear()
        self.tell()
        _log.warning(
            "the zygote %s has ended; the next start brings up a new one (log: %s)", zygote.pid, zygote.log_path
        )
        self.lost(zygote)


def _readiness(zygote: ZygoteProcess | None) -> Readiness:
    if zygote is None or (warm := zygote.warm) is None:
        return Readiness(pid=None if zygote is None else zygote.pid, warm=False)
    return Readiness(
        pid=zygote.pid, warm=True, warm_up_s=warm.seconds, missing=warm.missing, num_threads=warm.num_threads
    )
