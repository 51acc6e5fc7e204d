"""What is alike in the routes of all nouns that have a name."""

from typing import Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter

from pliant.client.http.connection import Connection, if_match, parse

View = TypeVar("View")


class NounClient(Generic[View]):
    """The nouns of one kind at a server; errors as `Client` says."""

    _root: str
    """The path of their list."""
    _view: TypeAdapter[View]

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, name: str) -> View:
        """Return one."""
        return self._connection.get(self._view, self._path(name))

    def remove(self, name: str, *, revision: int | None = None) -> None:
        """Forget one.

        Raises:
            Conflict: something uses it.
            Stale: it is not at this revision any more.
        """
        self._connection.call("DELETE", self._path(name), headers=if_match(revision))

    def _send(self, method: str, path: str, body: BaseModel, revision: int | None = None) -> View:
        return parse(self._view, self._connection.send(method, path, body, revision))

    def _path(self, name: str) -> str:
        return f"{self._root}/{quote(name, safe='')}"
