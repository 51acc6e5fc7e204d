"""Environments that this machine builds itself, since those of its server do not work here: each once, for all tasks.

What an environment is built from is brought, and it is built at the path that it has on the server, so that nothing
else has to know. It counts as built when that is written down, which is done at the end. Knows no packages.
"""

import os
import threading
import time
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from pliant.cluster.mirror.bringing import Bringer
from pliant.cluster.mirror.brought import Brought
from pliant.cluster.mirror.connections import FileConnections
from pliant.cluster.mirror.grants import BUILD_LOG, VENV, environments_in, paths_of
from pliant.cluster.mirror.messages import Claim, IndexOptions
from pliant.core.confinement import RunAs
from pliant.core.errors import Conflict
from pliant.core.ports import StartOrder
from pliant.files.untrusted.removal import remove

_OWN: Final = (VENV, BUILD_LOG)


class UnfitMachineError(Conflict):
    """A task cannot be started for a reason of its machine's; says which."""


class EnvironmentMaker(Protocol):
    """Builds an environment where what it is built from lies. Safe to use from any thread."""

    @property
    def key(self) -> str:
        """All that decides here what comes out; another one: what was built is built again."""
        ...

    def make(self, folder: Path, options: IndexOptions, user: RunAs | None) -> str:
        """Build; return why it cannot be done, in words; empty: it is done.

        Args:
            folder: of the environment.
            options: of the server.
            user: whom the task runs as that needs it; None: as whoever runs the agent.

        Raises:
            Unavailable: the agent ends.
        """
        ...

    def close(self) -> None:
        """End what is being built, and build nothing more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvironments:
    """What was built here, and what is being built. Safe to use from any thread."""

    connections: FileConnections
    bringer: Bringer
    brought: Brought
    maker: EnvironmentMaker
    _under_way: dict[Path, Future[None]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def folders(self, order: StartOrder) -> Collection[Path]:
        """Return the folders of the environments that a task needs."""
        return environments_in(paths_of(order), self.bringer.home)

    def provide(self, order: StartOrder, folder: Path) -> None:
        """Build an environment, unless that is done; whoever else needs it meanwhile waits for the same build.

        Raises:
            UnfitMachineError: it cannot be built here.
            NotFound, Conflict: what it is built from cannot be had.
            Unavailable: there is no connection to the server, or the agent ends.
            OSError: the disk does not take it.
        """
        with self._lock:
            known = self._under_way.get(folder)
            mine = self._under_way.setdefault(folder, Future())
        if known is not None:
            known.result()
            return
        try:
            self._provide(order, folder)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(None)
        finally:
            with self._lock:
                del self._under_way[folder]

    def _provide(self, order: StartOrder, folder: Path) -> None:
        path, prefix = str(folder), f"{self.maker.key}:"
        if (tree := self.bringer.tree(path, job_id="")) is None:
            return  # all machines see it
        before = self.brought.digest(path)
        is_here = before.startswith(prefix) and os.path.lexists(folder / VENV / "bin" / "python")
        known = before.removeprefix(prefix) if is_here else ""
        with self.connections.borrow() as connection:
            connection.claim(Claim(task_id=order.task_id, paths=paths_of(order), ticket=order.ticket))
            digest, _ = self.bringer.bring(connection, tree, known=known, but=_OWN)
            if digest != known:
                options = connection.ask_index()
        if digest != known:
            self.brought.forget(str(folder / VENV))  # it was a copy, when this machine was of the server's kind
            self.brought.note(path, "", time.time())
            if trouble := self.maker.make(folder, options, order.confinement.user):
                raise UnfitMachineError(trouble)
        self.brought.note(path, prefix + digest, time.time())


def remove_built(bringer: Bringer, brought: Brought, path: str) -> None:
    """Remove an environment that was built here, of which a part is brought now: this machine is of the server's kind.

    Raises:
        OSError: something of it cannot be removed.
    """
    for folder in environments_in((path,), bringer.home):
        if brought.digest(str(folder)) and (tree := bringer.tree(str(folder), job_id="")) is not None:
            remove(tree.place)
            brought.forget(str(folder))
