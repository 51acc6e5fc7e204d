"""The description of the routes from which the console's client is generated."""

from pathlib import Path

from pliant.entry.openapi import description

WRITTEN = Path(__file__).parents[2] / "web/openapi.json"


def test_the_description_in_the_repository_is_that_of_the_routes() -> None:
    assert WRITTEN.read_text() == description(), "run `python -m pliant.entry.openapi > web/openapi.json`"
