"""pydantic's TypeAdapter, made at its first use: a command reads two or three kinds of answers of forty."""

from functools import cached_property
from typing import Generic, TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


class LazyAdapter(Generic[T]):
    """Reads and writes one type as JSON. To make the adapters of all types takes longer than most commands."""

    def __init__(self, of: type[T]) -> None:
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
        return TypeAdapter(self._of)
