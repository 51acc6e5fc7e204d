"""The routes of queues and resource groups."""

from typing import Final

from pliant.api.queues import (
    GroupPage,
    GroupPatch,
    GroupRequest,
    GroupView,
    QueuePage,
    QueuePatch,
    QueueRequest,
    QueueView,
)
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.nouns.noun import NounClient

_QUEUES: Final = LazyAdapter(QueuePage)
_GROUPS: Final = LazyAdapter(GroupPage)


class QueueClient(NounClient[QueueView]):
    """The queues of a server; errors as `Client` says. One whose jobs have not all ended cannot be removed."""

    _root = "/queues"
    _view = LazyAdapter(QueueView)

    def list(self) -> tuple[QueueView, ...]:
        """Return all of them, with how they stand."""
        return self._connection.get(_QUEUES, self._root).queues

    def add(self, request: QueueRequest) -> QueueView:
        """Make one."""
        return self._send("POST", self._root, request)

    def change(self, name: str, patch: QueuePatch, *, revision: int | None = None) -> QueueView:
        """Change one.

        Raises:
            Stale: it is not at this revision any more.
        """
        return self._send("PATCH", self._path(name), patch, revision)


class GroupClient(NounClient[GroupView]):
    """The resource groups of a server; errors as `Client` says. One that a queue is over cannot be removed."""

    _root = "/resource-groups"
    _view = LazyAdapter(GroupView)

    def list(self) -> tuple[GroupView, ...]:
        """Return all of them, with their hosts."""
        return self._connection.get(_GROUPS, self._root).groups

    def add(self, request: GroupRequest) -> GroupView:
        """Make one."""
        return self._send("POST", self._root, request)

    def change(self, name: str, patch: GroupPatch, *, revision: int | None = None) -> GroupView:
        """Change one.

        Raises:
            Stale: it is not at this revision any more.
        """
        return self._send("PATCH", self._path(name), patch, revision)
