"""Prints what the console's client is generated from: Pliant's own routes, their bodies and answers.

`python -m pliant.entry.openapi > web/openapi.json` writes the one of this repository. A test says when it is stale. It
is the description that a server gives under `/openapi.json`, without its prose and without its errors, with a line
for every route and every body, so that a change of one is a change of a line.
"""

import json
import sys
from typing import Any, Final

from pliant.server.app import make_routes

_PROSE: Final = frozenset({"description", "title", "summary", "tags", "security", "operationId", "examples"})


def description() -> str:
    """Return the description as JSON text, the same for the same routes."""
    described = make_routes().openapi()
    paths = _lines({path: _without_prose(operations) for path, operations in described["paths"].items()})
    schemas = _lines({name: _without_prose(schema) for name, schema in described["components"]["schemas"].items()})
    head = f'{{\n"openapi": "{described["openapi"]}",\n"info": {{"title": "Pliant", "version": "1"}},\n'
    return f'{head}"paths": {{\n{paths}\n}},\n"components": {{"schemas": {{\n{schemas}\n}}}}\n}}\n'


def _lines(parts: dict[str, Any]) -> str:
    return ",\n".join(
        f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False, sort_keys=True)}"
        for name, part in sorted(parts.items())
    )


def _without_prose(value: Any, *, names: bool = False) -> Any:
    """Return a part without what only people read, and without answers that are errors.

    Args:
        names: the keys of `value` are names of fields, not words of OpenAPI.
    """
    if isinstance(value, list):
        return [_without_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_prose(part, names=key == "properties" and not names)
        for key, part in value.items()
        if names or not (key in _PROSE or (key.isdigit() and int(key) >= 400))
    }


if __name__ == "__main__":
    sys.stdout.write(description())
