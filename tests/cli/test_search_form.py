"""The console's form of a new search writes commands and search files: both ask for the search that the form sends.

What it writes is in `same.json`, which the form's own tests compare with what it writes now.
"""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cli.conftest import Run
from tests.tiny_searches import SearchServer, search_server, view

from pliant.api.searches import SearchRequest

_SAME: Final = Path(__file__).parents[2] / "web" / "src" / "pages" / "searches" / "same.json"
_CASES: Final[list[dict[str, Any]]] = json.loads(_SAME.read_text())
ROUTE = "POST /v1/searches"


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as server:
        server.answer(ROUTE, view())
        yield server


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script."""
    (tmp_path / "train.py").write_text("import pliant.train\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", _CASES, ids=[case["name"] for case in _CASES])
def test_what_the_form_writes_asks_for_what_it_sends(
    run: Run, server: SearchServer, folder: Path, case: dict[str, Any]
) -> None:
    program, *command = shlex.split(case["command"])
    assert program == "pliant"
    (folder / "search.yaml").write_text(case["file"])

    done = [run(server, *command), run(server, "tune", "search.yaml")]

    assert [one.code for one in done] == [0, 0], [one.err for one in done]
    sent = [SearchRequest.model_validate(body) for body in server.sent(ROUTE)]
    assert sent == [SearchRequest.model_validate(case["body"])] * 2
