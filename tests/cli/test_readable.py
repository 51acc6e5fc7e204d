"""What hostile code says does nothing to the terminal of whoever reads it."""

import doctest
import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial

import pytest
from rich.text import Text

from pliant.cli import follow, problems, readable, screen
from pliant.cli.follow import LogLine
from pliant.core.errors import InvalidInput

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b2J\x7f\u202egnp\r\b\x00"
"""Another title, an empty screen twice, a deletion, a text from right to left, an overwritten line."""
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


STREAMS = [pytest.param(io.StringIO, id="a pipe"), pytest.param(Terminal, id="a terminal")]


def printed(stream: type[io.StringIO], act: Callable[[], object]) -> str:
    """Return what is printed on a stream."""
    out = stream()
    with redirect_stdout(out), redirect_stderr(out):
        act()
    return out.getvalue()


def test_the_examples_hold() -> None:
    assert doctest.testmod(readable) == doctest.TestResults(failed=0, attempted=3)


@pytest.mark.parametrize("stream", STREAMS)
def test_what_is_shown_to_people_holds_nothing_that_changes_a_terminal(
    stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")  # no colours of our own
    columns = (screen.TableColumn(title="name"), screen.TableColumn(title="why", wrap=True))

    def show() -> None:
        screen.say(f"it said {HOSTILE}")
        screen.show(screen.table(columns, [[HOSTILE, Text(HOSTILE)]]))
        screen.show_facts([("why", HOSTILE)])
        problems.report(InvalidInput.at(HOSTILE, HOSTILE))

    said = printed(stream, show)

    assert HARMFUL.findall(said) == []
    assert said.count("]0;owned") == 6


@pytest.mark.parametrize("stream", STREAMS)
def test_json_is_the_same_value_in_characters_that_are_seen(stream: type[io.StringIO]) -> None:
    for show in (screen.print_json, screen.print_json_line):
        said = printed(stream, partial(show, {"why": HOSTILE}))

        assert HARMFUL.findall(said) == []
        assert json.loads(said) == {"why": HOSTILE}


def test_a_log_keeps_its_colours_on_a_terminal_and_every_byte_in_a_pipe() -> None:
    line = LogLine(task_id="job-1.1", stream="stdout", line=f"\x1b[1;32m60 %\x1b[0m\r70 %{HOSTILE}")

    on_terminal, in_pipe = (printed(stream, partial(follow.write_plain, line)) for stream in (Terminal, io.StringIO))

    assert in_pipe == f"{line.line}\n"
    shown, hostile = on_terminal.split("70 %")
    assert shown == "\x1b[1;32m60 %\x1b[0m\r"
    assert HARMFUL.findall(hostile) == ["\r"]
