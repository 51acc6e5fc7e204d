"""What is shown of a search while somebody waits for it: in a notebook, in a terminal, and into a pipe."""

import functools
import io
import os
import pty
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from tests.tiny_searches import SearchServer, search_server, trial, view

from pliant.api.searches import SearchView
from pliant.client import Client
from pliant.client.nouns.notebook import display_of_kernel, in_kernel
from pliant.client.nouns.search_line import headline
from pliant.client.nouns.search_progress import SearchProgress
from pliant.client.nouns.searches import SearchHandle
from pliant.core.search import SearchState, TrialState

LATER = view(trials={TrialState.RUNNING: 3, TrialState.COMPLETED: 9}, eta_s=731.0)
ENDED = view(state=SearchState.COMPLETED, reason="all of its 40 trials have ended", eta_s=None)
OUTCOME = ["digits completed: all of its 40 trials have ended", "best: trial 4, 0.5 with lr=0.05 act=relu"]


def test_the_line_has_counts_time_left_and_the_best() -> None:
    assert headline(LATER) == (
        "digits is running, 9/40 trials ended, 3 running, about 12 min left, best 0.5 (trial 4: lr=0.05 act=relu)"
    )
    assert headline(view(num_known=5, best=None, eta_s=None, trials={TrialState.COMPLETED: 7})) == (
        "digits is running, 2/40 trials ended"
    )


def test_a_pipe_gets_a_line_for_all_news() -> None:
    out = io.StringIO()
    with SearchProgress(out) as shown:
        for one in (view(), view(eta_s=290.0), LATER, LATER, ENDED):
            shown.show(one)
    assert out.getvalue().splitlines() == [headline(view()), headline(LATER), *OUTCOME]


@pytest.fixture
def terminal() -> Iterator[tuple[int, Any]]:
    """A terminal of 70 columns: what reads what is on it, and a file that writes there."""
    above, below = pty.openpty()
    termios.tcsetwinsize(below, (24, 70))
    with os.fdopen(below, "w", encoding="utf-8") as out:
        yield above, out
    os.close(above)


def read_until(above: int, last: str) -> str:
    """Return what is written to a terminal, up to a text that comes last."""
    written = b""
    while not written.endswith(last.encode()):
        written += os.read(above, 10_000)
    return written.decode()


def test_a_terminal_has_one_line_that_changes_and_is_never_wider(terminal: tuple[int, Any]) -> None:
    above, out = terminal
    wide = view(name="d", trials={}, eta_s=None, best=trial(4, values={"act": "漢字" * 30}))
    with SearchProgress(out) as shown:
        for one in (view(), wide, ENDED):
            shown.show(one)
    lines = read_until(above, f"{OUTCOME[1]}\x1b[K\r\n").split("\r")

    assert [line.strip().removesuffix("\x1b[K") for line in lines if line.strip()] == [
        f"{headline(view())[:67]}…",
        "d is running, 0/40 trials ended, best 0.5 (trial 4: act=漢字漢字…",
        *OUTCOME,
    ]


def test_a_line_that_is_left_open_is_ended_and_changes_nothing_else(terminal: tuple[int, Any]) -> None:
    above, out = terminal
    with SearchProgress(out) as shown:
        shown.show(view(name="d", trials={}, eta_s=None, best=trial(4, values={"act": "a\x1b[2J\u202e"})))
    text = read_until(above, "\r\n")
    assert text == "\rd is running, 0/40 trials ended, best 0.5 (trial 4: act=a\ufffd[2J\ufffd)\x1b[K\r\n"


class Shell(InteractiveShell):
    """A shell of IPython that is a notebook's, and keeps what is shown."""

    kernel = object()

    def init_display_pub(self) -> None:
        self.display_pub = CapturingDisplayPublisher(parent=self)  # type: ignore[no-untyped-call]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    hook = sys.displayhook
    shell = Shell.instance()
    yield shell.display_pub
    Shell.clear_instance()
    sys.displayhook = hook


def test_a_notebook_has_one_output_that_changes_until_it_says_how_it_ended(notebook: Any) -> None:
    assert in_kernel()
    with search_server() as server, Client(server.url, server.token) as client:
        server.answer("GET /v1/searches/digits", view(), LATER, LATER, ENDED)
        polled: list[SearchView] = []
        wait = functools.partial(client.searches.wait, poll_s=0.01)
        client.searches.wait = wait  # type: ignore[method-assign]
        ended = SearchHandle(client.searches, view()).wait(progress=True, on_poll=polled.append)

    assert (ended.state, len(polled)) == (SearchState.COMPLETED, 4)
    shown = [(one["data"]["text/plain"], one["update"]) for one in notebook.outputs]
    assert shown == [(headline(view()), False), (headline(LATER), True), ("\n".join(OUTCOME), True)]
    assert len({one["transient"]["display_id"] for one in notebook.outputs}) == 1


def test_outside_of_a_notebook_there_is_none(server: SearchServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert display_of_kernel() is None
    with Client(server.url, server.token) as client:
        server.answer("GET /v1/searches/digits", ENDED)
        SearchHandle(client.searches, view()).wait(progress=True)
    assert capsys.readouterr().err.splitlines() == OUTCOME


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as server:
        yield server
