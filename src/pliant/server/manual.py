"""The page `/docs`: all routes of the OpenAPI document and the shapes of their bodies, as one HTML page.

It is made here, of text alone: it runs no script and fetches nothing, so it is the same where there is no way to the
Internet, and its policy forbids both. Pure: a document in, a page out.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --dim: #888; --ink: #14532d; }
@media (prefers-color-scheme: dark) { :root { --ink: #86efac; } }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 19rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; box-sizing: border-box;
  border-right: 1px solid var(--line); font-size: 13px; }
nav h2 { font-size: 13px; margin: 1rem 0 .2rem; text-transform: capitalize; }
nav a { display: block; color: inherit; text-decoration: none; padding: .1rem 0; }
nav a:hover { text-decoration: underline; }
main { padding: 1.5rem 2.5rem 6rem; max-width: 62rem; }
h1 small { color: var(--dim); font-size: 1rem; font-weight: normal; }
h2.tag { text-transform: capitalize; border-bottom: 1px solid var(--line); margin: 3rem 0 .5rem; }
section { border-top: 1px solid var(--line); padding: .8rem 0 1.2rem; scroll-margin-top: 1rem; }
h3 { margin: 0 0 .3rem; font-size: 1rem; }
h4 { margin: 1rem 0 .2rem; font-size: 13px; color: var(--dim); }
b.method { display: inline-block; min-width: 4rem; color: var(--ink); font-family: ui-monospace, monospace; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
td { border-top: 1px solid var(--line); padding: .25rem .8rem .25rem 0; vertical-align: top; }
td:first-child { width: 14rem; }
td table { margin: .2rem 0 .4rem; }
.dim { color: var(--dim); }
@media (max-width: 60rem) { body { display: block; } nav { position: static; height: auto; } main { padding: 1rem; } }
"""
STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
"""By which a policy lets in this style and no other."""

_CODE: Final = re.compile(r"`([^`]+)`")
_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "{} or more characters",
    "maxLength": "{} characters at most",
    "minItems": "{} or more",
    "maxItems": "{} at most",
    "pattern": "matches {}",
}


Route = tuple[str, str, Mapping[str, Any]]
"""Method, path and operation."""


def manual(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    info, shapes = document["info"], document["components"]["schemas"]
    tags: dict[str, tuple[str, list[Route]]] = {
        tag["name"]: (tag.get("description", ""), []) for tag in document["tags"]
    }
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tags[operation["tags"][0]][1].append((method.upper(), path, operation))
    menu = "".join(_menu(tag, routes) for tag, (_, routes) in tags.items())
    body = "".join(_tag(tag, text, routes) for tag, (text, routes) in tags.items())
    named = "".join(_shape(name, schema) for name, schema in sorted(shapes.items()))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}: REST API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f'<nav><a href="#top"><b>{escape(info["title"])}</b></a>{menu}<h2><a href="#shapes">Shapes</a></h2></nav>'
        f'<main id="top"><h1>{escape(info["title"])} <small>{escape(info["version"])}</small></h1>'
        f'{_prose(info["description"])}<p class="dim">The same for programs: <a href="openapi.json">openapi.json</a> '
        f'(OpenAPI {escape(document["openapi"])}).</p>{body}<h2 class="tag" id="shapes">Shapes</h2>{named}'
        f"</main></body></html>\n"
    )


def _menu(tag: str, routes: list[Route]) -> str:
    links = "".join(
        f'<a href="#{escape(operation["operationId"])}">{escape(operation.get("summary", path))}</a>'
        for _, path, operation in routes
    )
    return f"<h2>{escape(tag)}</h2>{links}"


def _tag(tag: str, text: str, routes: list[Route]) -> str:
    sections = "".join(_route(*route) for route in routes)
    return f'<h2 class="tag">{escape(tag)}</h2>{_prose(text)}{sections}'


def _route(method: str, path: str, operation: Mapping[str, Any]) -> str:
    parts = [
        f'<section id="{escape(operation["operationId"])}"><h3>{escape(operation.get("summary", ""))}</h3>'
        f'<p><b class="method">{method}</b> <code>{escape(path)}</code>'
        f"{'' if 'security' in operation else ' <span class=dim>needs no credentials</span>'}</p>",
        _prose(operation.get("description", "")),
    ]
    if parameters := operation.get("parameters"):
        rows = [(f"{one['name']} ({one['in']})", one["schema"], one) for one in parameters]
        parts.append(f"<h4>Parameters</h4>{_table(rows)}")
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h4>Body, {escape(media)}</h4>{_content(content.get('schema', {}))}")
    for status, answer in operation["responses"].items():
        parts.append(_answer(status, answer))
    return "".join([*parts, "</section>"])


def _answer(status: str, answer: Mapping[str, Any]) -> str:
    if int(status) >= 400:
        return f'<p class="dim">{status} {escape(answer["description"])}</p>'
    shapes = [
        f"{escape(media)}: {_type(content.get('schema', {}))}" for media, content in answer.get("content", {}).items()
    ]
    return f"<h4>Answer {status}</h4><p>{'<br>'.join(shapes) or 'nothing'}</p>"


def _shape(name: str, schema: Mapping[str, Any]) -> str:
    return (
        f'<section id="shape-{escape(name)}"><h3>{escape(name)}</h3>{_prose(schema.get("description", ""))}'
        f"{_content(schema)}</section>"
    )


def _content(schema: Mapping[str, Any]) -> str:
    """Return a shape: its fields in a table, or else its type."""
    if not schema.get("properties"):
        return f"<p>{_type(schema)}</p>"
    needed = schema.get("required", ())
    rows = [(name, one, {**one, "required": name in needed}) for name, one in schema["properties"].items()]
    return _table(rows)


def _table(rows: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> str:
    return f"<table>{''.join(_row(*row) for row in rows)}</table>"


def _row(name: str, schema: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    facts = [_type(schema), *_bounds(schema)]
    if said.get("required"):
        facts.append("needed")
    if "default" in schema:
        facts.append(f"default <code>{escape(json.dumps(schema['default'], ensure_ascii=False))}</code>")
    within = _content(schema) if schema.get("properties") else ""
    text = said.get("description") or schema.get("description", "")
    return (
        f'<tr><td><code>{escape(name)}</code></td><td>{_prose(text)}<div class="dim">{", ".join(facts)}</div>'
        f"{within}</td></tr>"
    )


def _type(schema: Mapping[str, Any]) -> str:
    """Return of which type a value is, in words and links."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#shape-{name}">{name}</a>'
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "const" in schema:
        return f"<code>{escape(json.dumps(schema['const']))}</code>"
    if "enum" in schema:
        return " or ".join(f"<code>{escape(json.dumps(one))}</code>" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    return escape(str(schema.get("format") or schema.get("type", "anything")))


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    for one in (schema, *schema.get("anyOf", ())):
        for name, words in _BOUNDS.items():
            if name in one:
                yield words.format(f"<code>{escape(str(one[name]))}</code>")


def _prose(text: str) -> str:
    """Return a text with its paragraphs, and what stands in backticks as code."""
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip())
    return "".join("<p>" + _CODE.sub(r"<code>\1</code>", escape(part)) + "</p>" for part in paragraphs)
