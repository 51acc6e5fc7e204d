"""pydantic's TypeAdapter, made at its first use: a command reads two or three kinds of answers of forty."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


class LazyAdapter(Generic[T]):
    """Reads and writes one type as JSON. To make the adapters of all types takes longer than most commands.

    Args:
        of: the type, or where it is: its module, which is imported then, and its name (`pliant.api.rerun:RerunJob`).
    """

    def __init__(self, of: type[T] | str) -> None:
        self._of = of

    def validate_json(self, document: str | bytes) -> T:
        """Return what a document says.

        Raises:
            pydantic.ValidationError: it is not of this type.
        """
        return self._adapter.validate_json(document)

    def dump_json(self, value: T, *, indent: int | None = None) -> bytes:
        """Return the document that says this."""
        return self._adapter.dump_json(value, indent=indent)

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        with _holding_interrupts():
            return TypeAdapter(_found(self._of) if isinstance(self._of, str) else self._of)


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block: where pydantic calls Python, it prints an exception and goes on."""
    came: list[int] = []
    try:
        usual = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    except ValueError:  # only the main thread may, and only it is interrupted
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if came:
            signal.raise_signal(signal.SIGINT)
