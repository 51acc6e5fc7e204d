"""What is alike in the routes of all nouns that have a name."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from pliant.api.faults import problems_of
from pliant.client.http.connection import Connection, if_match, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.core.errors import InvalidInput, Problem
from pliant.core.near_name import near_name

View = TypeVar("View")
R = TypeVar("R", bound=BaseModel)


def checked(kind: type[R], fields: dict[str, Any]) -> R:
    """Return a body of these fields.

    Raises:
        InvalidInput: with all that is wrong with them.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(*(_with_near(problem, kind.model_fields) for problem in problems_of(error))) from error


def _with_near(problem: Problem, names: Collection[str]) -> Problem:
    """Return a problem with the field that was probably meant, if there is none of its name."""
    near = None if problem.field.partition(".")[0] in names else near_name(problem.field, tuple(names))
    return problem if near is None else replace(problem, message=f"{problem.message}; is {near!r} meant?")


class NounClient(Generic[View]):
    """The nouns of one kind at a server; errors as `Client` says."""

    _root: str
    """The path of their list."""
    _view: LazyAdapter[View]

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
