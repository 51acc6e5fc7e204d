"""Answers made from nouns: a field is declared on the noun, and the answer that shows it follows.

    @view
    class TemplateView(TemplateSettings, Owned):  # every field of the noun, and those below
        revision: int

    fill(TemplateView, kept.noun, kept)

A field that a person may leave out of a request is always there in an answer, so none has a default.
"""

import inspect
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")


@dataclass_transform(kw_only_default=True, frozen_default=True)
def view(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass that has the fields of the nouns among its bases, all of them without default."""
    inherited = {one.name: one.type for base in reversed(cls.__mro__) if is_dataclass(base) for one in fields(base)}
    cls.__annotations__ = inherited | inspect.get_annotations(cls)
    for name in cls.__annotations__:
        setattr(cls, name, field())
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def fill(kind: type[D], *sources: object, **values: Any) -> D:
    """Return a dataclass; what `values` do not say is taken from the first source that has something of its name."""
    for name in (one.name for one in fields(kind) if one.name not in values):
        values[name] = next(getattr(source, name) for source in sources if hasattr(source, name))
    return kind(**values)
