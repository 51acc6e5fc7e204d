"""Request bodies made from nouns: a field is declared on the noun, and the bodies that give it follow.

    class QueueRequest(Request, QueueSettings):                # every field, with the noun's defaults and rules
    class QueuePatch(Patch, of=QueueSettings, but=("name",)):  # the same fields, none of them needed

For every field of the noun that it inherits, `Request` takes over name, type and default. The rules in `Input` become
checks, and the string under the field becomes its description in the OpenAPI document. The type checker sees ordinary
inheritance from a dataclass. What is declared in the body itself comes before what the noun says.

A body refuses unknown fields, and says all that is wrong with it at once. Whole numbers and truth values are taken as
such only: neither "1" nor 1.0 is 1.
"""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from typing import Any, ClassVar, Final, Literal, Self, TypeVar, dataclass_transform

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails

from pliant.api.derive import Settable, docs_of, settable, with_checks
from pliant.core.errors import Problem

B = TypeVar("B")

_MAX_NAMED: Final = 12
"""A patch that has more fields does not name them all to who gives none."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field,))
class Request(BaseModel, frozen=True):
    """Base of all request bodies."""

    model_config = ConfigDict(extra="forbid")
    inherited: ClassVar[Mapping[str, Settable]] = {}
    """The fields that were taken over, by name."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Take over the fields of the nouns among the bases."""
        super().__init_subclass__(**options)
        own = inspect.get_annotations(cls)
        taken = [one for base in cls.__bases__ if not issubclass(base, BaseModel) for one in settable(base)]
        hints: dict[str, Any] = {}
        cls.inherited = {**cls.inherited, **{one.name: one for one in taken if one.name not in own}}
        for one in taken:
            hints[one.name] = own.get(one.name, one.hint)
            if one.name not in own and one.field.default_factory is not MISSING:
                setattr(cls, one.name, Field(default_factory=one.field.default_factory))
        cls.__annotations__ = {name: with_checks(hint) for name, hint in (hints | own).items()}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema with what describes each field: what the noun says of it, or the string under it."""
        document = handler(schema)
        properties = handler.resolve_ref_schema(document).get("properties", {})
        for name, shown in properties.items():
            if doc := cls.describe(name):
                shown["description"] = doc
        return document

    @classmethod
    def describe(cls, name: str) -> str:
        """Return what describes a field; empty if nothing does."""
        if name in cls.inherited:
            return cls.inherited[name].doc
        return next((doc for base in cls.__mro__ if (doc := docs_of(base).get(name))), "")

    def given(self) -> dict[str, Any]:
        """Return the value of every field."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class Changes(Request):
    """Base of bodies that say something else for fields of a noun; what is left out stays as it is."""

    can_be_none: ClassVar[frozenset[str]] = frozenset()
    """Fields that have None as a value; for all others null changes nothing."""
    described_by: ClassVar[Literal["doc", "none"] | None] = None
    """What describes a field of the noun: its own description, or what null means."""

    def __init_subclass__(cls, of: type | None = None, but: Iterable[str] = (), **options: Any) -> None:
        """Declare the fields of a noun, but for some, as ones that may be left out."""
        own = inspect.get_annotations(cls)
        noun = [one for one in settable(of) if one.name not in {*but, *own}] if of is not None else []
        cls.can_be_none = cls.can_be_none | {one.name for one in noun if one.none}
        for one in noun:
            own[one.name] = one.hint | None
            setattr(cls, one.name, None)
        cls.__annotations__ = own
        super().__init_subclass__(**options)
        cls.inherited = {**cls.inherited, **{one.name: one for one in noun}}

    @classmethod
    def describe(cls, name: str) -> str:
        """Return what describes a field, as `described_by` says."""
        if name not in cls.inherited:
            return super().describe(name)
        return str(getattr(cls.inherited[name], cls.described_by)) if cls.described_by else ""

    def changes(self) -> Mapping[str, Any]:
        """Return the fields that change, with their new values; of a body within this one its changes."""
        given = {name: value for name, value in self.given().items() if name in self.model_fields_set}
        return {
            name: value.changes() if isinstance(value, Changes) else value
            for name, value in given.items()
            if value is not None or name in self.can_be_none
        }


class Patch(Changes):
    """Base of bodies that change something that is kept: at least one field is given."""

    described_by: ClassVar[Literal["doc", "none"] | None] = "none"

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            names = list(type(self).model_fields)
            which = f"one of {', '.join(names)}" if len(names) <= _MAX_NAMED else "at least one field"
            raise ValueError(f"nothing to change: give {which}")
        return self


def refuse(body: B, faults: Iterable[str]) -> B:
    """Return a body whose fields fit each other.

    Raises:
        ValueError: they do not; with all of the faults.
    """
    if found := "; ".join(faults):
        raise ValueError(found)
    return body


def refuse_fields(body: B, problems: Iterable[Problem]) -> B:
    """Return a body whose fields fit each other.

    Raises:
        ValidationError: they do not; with all of the problems, each at its field.
    """
    found = [
        InitErrorDetails(type="value_error", loc=(one.field,), input=None, ctx={"error": ValueError(one.message)})
        for one in problems
    ]
    if found:
        raise ValidationError.from_exception_data(type(body).__name__, found)
    return body
