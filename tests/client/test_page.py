"""The page about the client is true: its table has every method, and all that it names can be imported.

That its example runs is shown by tests/e2e/test_client_page.py.
"""

import builtins
import re
from pathlib import Path

import pliant.client
from pliant.client.methods import PARTS, rows
from pliant.client.nouns.late_noun import LateNoun

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


def test_the_table_has_every_method_with_its_first_sentence() -> None:
    (table,) = re.findall(r"client\.methods -->\n\n(.*)\n<!-- until here -->", PAGE.read_text(), re.DOTALL)

    assert table.strip().splitlines() == list(rows()), "run: python -m pliant.client.methods"


def test_every_method_says_what_it_does() -> None:
    assert [row for row in rows() if row.endswith("|  |")] == []
    assert len(list(rows())) > 90


def test_the_parts_of_a_client_are_all_in_the_table() -> None:
    with pliant.client.Client("http://127.0.0.1:9", "t") as client:
        names = [name for name, part in vars(type(client)).items() if isinstance(part, LateNoun)]
        parts = {f"client.{name}": type(getattr(client, name)) for name in names}
    assert parts == {name: kind for name, kind in PARTS.items() if name.startswith("client.")}


def test_every_name_of_the_client_is_found_when_it_is_asked_for_and_no_other_one() -> None:
    assert {name for name in pliant.client.__all__ if not hasattr(pliant.client, name)} == set()
    assert set(pliant.client.__all__) <= set(dir(pliant.client))
    assert not hasattr(pliant.client, "Clients")


def test_all_that_the_page_names_is_there_to_import() -> None:
    assert sorted(pliant.client.__all__) == pliant.client.__all__
    for name in re.findall(r"`([A-Z][A-Za-z]+)`", PAGE.read_text()):
        assert name in pliant.client.__all__ or isinstance(getattr(builtins, name), type), name
