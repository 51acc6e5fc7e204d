"""The routes of queues and resource groups."""

from typing import Final
from urllib.parse import quote

from pydantic import TypeAdapter

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
from pliant.client.connection import Connection, if_match, parse

_QUEUE: Final = TypeAdapter(QueueView)
_QUEUES: Final = TypeAdapter(QueuePage)
_GROUP: Final = TypeAdapter(GroupView)
_GROUPS: Final = TypeAdapter(GroupPage)


class QueueClient:
    """The queues of a server; errors as `Client` says."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> tuple[QueueView, ...]:
        """Return all of them, with how they stand."""
        return self._connection.get(_QUEUES, "/queues").queues

    def get(self, name: str) -> QueueView:
        """Return one."""
        return self._connection.get(_QUEUE, _path("queues", name))

    def add(self, request: QueueRequest) -> QueueView:
        """Make one."""
        return parse(_QUEUE, self._connection.send("POST", "/queues", request))

    def change(self, name: str, patch: QueuePatch, *, revision: int | None = None) -> QueueView:
        """Change one.

        Raises:
            Stale: it is not at this revision any more.
        """
        return parse(_QUEUE, self._connection.send("PATCH", _path("queues", name), patch, revision))

    def remove(self, name: str, *, revision: int | None = None) -> None:
        """Forget one.

        Raises:
            Conflict: it has jobs that have not ended.
        """
        self._connection.call("DELETE", _path("queues", name), headers=if_match(revision))


class GroupClient:
    """The resource groups of a server; errors as `Client` says."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> tuple[GroupView, ...]:
        """Return all of them, with their hosts."""
        return self._connection.get(_GROUPS, "/resource-groups").groups

    def get(self, name: str) -> GroupView:
        """Return one."""
        return self._connection.get(_GROUP, _path("resource-groups", name))

    def add(self, request: GroupRequest) -> GroupView:
        """Make one."""
        return parse(_GROUP, self._connection.send("POST", "/resource-groups", request))

    def change(self, name: str, patch: GroupPatch, *, revision: int | None = None) -> GroupView:
        """Change one.

        Raises:
            Stale: it is not at this revision any more.
        """
        return parse(_GROUP, self._connection.send("PATCH", _path("resource-groups", name), patch, revision))

    def remove(self, name: str, *, revision: int | None = None) -> None:
        """Forget one.

        Raises:
            Conflict: a queue is over it.
        """
        self._connection.call("DELETE", _path("resource-groups", name), headers=if_match(revision))


def _path(what: str, name: str) -> str:
    return f"/{what}/{quote(name, safe='')}"
