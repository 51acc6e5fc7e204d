"""The page `/docs` shows every route, parameter and field, and needs nothing but itself."""

import html
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from pliant.ibm.rest.api import IBM
from pliant.server.app import make_routes
from pliant.server.manual import manual

VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Collects what a page holds; raises if it is not well formed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return make_routes(IBM).openapi()


def test_it_is_well_formed_runs_nothing_and_fetches_nothing(document: dict[str, Any]) -> None:
    read = Reader(manual(document))

    assert read.tags & {"script", "img", "link", "iframe", "form", "object"} == set()
    assert len(read.ids) == len(set(read.ids))
    elsewhere = [link for link in read.links if not (link.startswith("#") and link[1:] in read.ids)]
    assert elsewhere == ["openapi.json"], "every link leads somewhere"


def test_it_shows_every_route_parameter_and_field(document: dict[str, Any]) -> None:
    text = html.unescape(re.sub(r"<[^>]+>", " ", manual(document)))

    for path, operations in document["paths"].items():
        assert path in text
        for operation in operations.values():
            assert operation["summary"] in text
            assert all(f"{one['name']} ({one['in']})" in text for one in operation.get("parameters", ()))
    for name, schema in document["components"]["schemas"].items():
        assert name in text
        assert all(f" {field} " in text for field in schema.get("properties", {})), name
    assert "The Python file to run, relative to the code folder." in text, "also the fields of a part of an upload"


def test_what_a_description_holds_is_text() -> None:
    said = "Not <script>alert(1)</script> but `a < b`."
    page = manual(
        {
            "openapi": "3.1.0",
            "info": {"title": "<b>", "version": "1", "description": said},
            "tags": [{"name": "x"}],
            "paths": {"/<p>": {"get": {"tags": ["x"], "operationId": "a", "responses": {}, "description": said}}},
            "components": {"schemas": {"S": {"type": "object", "properties": {"f": {"default": "<i>"}}}}},
        }
    )

    Reader(page)
    assert page.count("Not &lt;script&gt;alert(1)&lt;/script&gt; but <code>a &lt; b</code>.") == 2
    assert "<i>" not in page
