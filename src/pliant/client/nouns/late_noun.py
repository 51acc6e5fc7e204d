"""A part of the client that is imported and made when it is asked for first.

The bodies of all nouns take most of a second to make; a command needs those of one or two.
"""

from importlib import import_module
from typing import Any, Generic, TypeVar, overload

N = TypeVar("N")


class LateNoun(Generic[N]):
    """An attribute of the client: `arrays: "LateNoun[ArrayClient]" = LateNoun("arrays:ArrayClient")`.

    Args:
        place: its file in this folder, and its class there. It is made of the client's connection.
    """

    def __init__(self, place: str) -> None:
        self._file, _, self._class = place.partition(":")

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, client: None, _owner: type) -> "LateNoun[N]": ...

    @overload
    def __get__(self, client: Any, _owner: type) -> N: ...

    def __get__(self, client: Any, _owner: type) -> "LateNoun[N] | N":
        if client is None:
            return self
        kind = getattr(import_module(f"pliant.client.nouns.{self._file}"), self._class)
        made: N = vars(client).setdefault(self._name, kind(client._connection))  # found there from now on
        return made
