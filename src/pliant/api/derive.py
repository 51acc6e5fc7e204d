"""The fields of a noun as those who take values in see them: request bodies (`api.request`) and the command line.

A noun's annotations hold `Input` rules, which nobody heeds by themselves; `with_checks` makes checks of pydantic's of
them. Its fields' descriptions are the strings under them, read from its source when somebody asks for them: pages of
help and of REST do, commands that ask a server do not.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import Field as NounField
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import AfterValidator, AllowInfNan, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, Strict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from pliant.api.faults import NO_MATCH
from pliant.core.errors import InvalidInput
from pliant.core.input import Check, Finite, Input, Number, Pattern


class Settable:
    """A field of a noun that a person may set."""

    def __init__(self, noun: type, field: NounField[Any], hint: Any) -> None:
        self._noun = noun
        self.field = field
        self.name = field.name
        self.hint = hint
        """Its type, with the rules in it."""

    @property
    def doc(self) -> str:
        """The string under it; empty if there is none."""
        return next((doc for base in self._noun.__mro__ if (doc := docs_of(base).get(self.name))), "")

    @property
    def type(self) -> Any:
        """Its type without rules, and without None."""
        return next((one for one in self._types() if one is not NoneType), NoneType)

    @property
    def none(self) -> str:
        """What None means to who changes it; empty if it means nothing."""
        return next((one.none for one in getattr(self.hint, "__metadata__", ()) if isinstance(one, Input)), "")

    def _types(self) -> tuple[Any, ...]:
        bare = _bare(self.hint)
        return tuple(map(_bare, get_args(bare))) if get_origin(bare) in (Union, UnionType) else (bare,)


def settable(noun: type) -> tuple[Settable, ...]:
    """Return the fields of a noun in their order; none of a class that is no dataclass."""
    if not is_dataclass(noun):
        return ()
    hints = get_type_hints(noun, include_extras=True)
    return tuple(Settable(noun, field, hints[field.name]) for field in fields(noun))


@cache
def docs_of(noun: type) -> Mapping[str, str]:
    """Return the strings under the fields that a class itself declares; none of a class that has no source."""
    try:
        source = textwrap.dedent(inspect.getsource(noun))
    except (OSError, TypeError):
        return {}
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    return {
        line.target.id: inspect.cleandoc(after.value.value)
        for line, after in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
    }


def with_checks(hint: Any) -> Any:
    """Return a type whose rules in `Input`, wherever they stand in it, are checks that pydantic knows."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in (int, bool):
        return Annotated[hint, Strict()]
    if origin is Annotated:
        known = [check for one in args[1:] for check in (_checks(one) if isinstance(one, Input) else (one,))]
        inner = with_checks(args[0])
        return Annotated[(inner, *known)] if known else inner
    if origin in (Union, UnionType):
        return reduce(or_, map(with_checks, args))
    if origin in (tuple, dict, frozenset, Mapping):
        return origin[tuple(map(with_checks, args))]
    return hint


def _checks(given: Input) -> Iterator[Any]:
    for rule in given.rules:
        match rule:
            case Pattern():
                yield _PatternCheck(rule)
            case Check():
                yield AfterValidator(_value_check(rule))
            case Finite():
                yield AllowInfNan(False)
            case Number():
                yield Strict()
            case _:
                yield rule
    if given.doc:
        yield Field(description=given.doc)


@dataclass(frozen=True, slots=True)
class _PatternCheck:
    """A pattern for pydantic, which has only the expression to say of what does not match: it gets the words."""

    pattern: Pattern

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        matching = core_schema.custom_error_schema(
            core_schema.str_schema(pattern=self.pattern.regex),
            custom_error_type=NO_MATCH,
            custom_error_message=self.pattern.words,
        )
        return core_schema.chain_schema([handler(source), matching])

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | {"pattern": self.pattern.regex}


def _value_check(rule: Check) -> Any:
    def check(value: Any) -> Any:
        try:
            rule.read(value)
        except InvalidInput as error:
            raise ValueError("; ".join(problem.message for problem in error.problems)) from error
        return value

    return check


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
