"""What job files may say, for editors (JSON Schema) and for people (a table), made from the keys themselves.

`python -m pliant.cli.jobs.job_schema` prints the table that `docs/job-files.md` holds. A test says when it is stale.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import typer
from pydantic import TypeAdapter

from pliant.api.derive import settable, with_checks
from pliant.cli.jobs.document import ValueType
from pliant.cli.jobs.file_keys import FileKeys, Key
from pliant.cli.jobs.job_file import JOB_KEYS
from pliant.core.array import ArraySettings
from pliant.core.job import JobSettings
from pliant.core.notice import NoticeSettings
from pliant.core.search import SearchSettings

_SCALARS: Final = {"type": ["string", "number", "boolean"]}
_LIST: Final = {"type": "array", "items": _SCALARS}
_SCHEMAS: Final[Mapping[ValueType, Mapping[str, Any]]] = MappingProxyType(
    {
        "text": {"type": ["string", "number", "boolean"]},
        "integer": {"type": "integer"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "texts": _LIST,
        "values": {"type": "object", "additionalProperties": _LIST},
        "parameters": {"type": "object", "additionalProperties": {"type": ["string", "object"]}},
    }
)
_WORDS: Final[Mapping[ValueType, str]] = MappingProxyType(
    {
        "text": "text",
        "integer": "whole number",
        "number": "number",
        "flag": "`true` or `false`",
        "texts": "list of texts",
        "values": "lists of texts by name",
        "parameters": "texts or fields by name",
    }
)
_HINTS: Final = {
    one.name: with_checks(one.hint)
    for noun in (JobSettings, NoticeSettings, ArraySettings, SearchSettings)
    for one in settable(noun)
}
_BOUNDS: Final = ("enum", "minimum", "maximum", "exclusiveMinimum")


def schema(keys: FileKeys = JOB_KEYS, title: str = "Job of Pliant") -> dict[str, Any]:
    """Return the JSON Schema of job files, or of those of another command."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "properties": {key.name: _property(key) for key in keys.by_name.values()},
    }


def _property(key: Key) -> dict[str, Any]:
    return {**_SCHEMAS[key.type], **_bounds(key), "description": key.help}


def _bounds(key: Key) -> dict[str, Any]:
    """Return what the field of the request says of its values, if what is typed is the field's value itself."""
    if key.option is not None and key.option.wording.type is not None:
        return {}
    shown = TypeAdapter(_HINTS[key.field]).json_schema() if key.field in _HINTS else {}
    return {name: value for one in (shown, *shown.get("anyOf", ())) for name, value in one.items() if name in _BOUNDS}


def rows(keys: FileKeys = JOB_KEYS) -> Iterator[str]:
    """Yield a row of a Markdown table for every key."""
    yield "| key | value | |"
    yield "|---|---|---|"
    for key in keys.by_name.values():
        bounds = _bounds(key)
        value = ", ".join(f"`{one}`" for one in bounds["enum"]) if "enum" in bounds else _WORDS[key.type]
        yield f"| `{key.name}` | {value} | {key.help} |"


def schema_printer(keys: FileKeys, title: str) -> Callable[[bool], None]:
    """Return what prints a schema and ends, if that is asked for."""

    def print_it(value: bool) -> None:
        if value:
            sys.stdout.write(json.dumps(schema(keys, title), indent=2) + "\n")
            raise typer.Exit

    return print_it


print_schema: Final = schema_printer(JOB_KEYS, "Job of Pliant")


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
