"""Shows how far a search is while somebody waits for it: in a notebook below the cell, in a terminal, or into a pipe.

A notebook and a terminal have one line that changes, without a widget; a pipe gets a line whenever there is news.
"""

import os
import sys
import unicodedata
from types import TracebackType
from typing import Any, Final, Self, TextIO

from pliant.api.searches import SearchView
from pliant.client.nouns.notebook import Put, display_of_kernel
from pliant.client.nouns.search_line import headline, news_of, outcome
from pliant.core.search import SearchState

_REPLACED: Final = "\N{REPLACEMENT CHARACTER}"
_TO_END: Final = "\x1b[K"
_WIDTH: Final = 80


class SearchProgress:
    """How far one search is, as long as its block runs.

    Args:
        out: where it is shown unless this is a notebook; None: stderr.
        display: what shows things in a notebook; None: this is none.
    """

    def __init__(self, out: TextIO | None = None, display: Put | None = None) -> None:
        self._out = sys.stderr if out is None else out
        self._display = display
        self._handle: Any = None
        self._said: object = None
        self._is_open = False

    @classmethod
    def here(cls) -> Self:
        """Return one for the notebook, the terminal or the pipe that this process writes to."""
        return cls(display=display_of_kernel())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            self._write("\n")

    def show(self, view: SearchView) -> None:
        """Show how it stands; once it does not run any more, how it has come to rest."""
        lines = [headline(view)] if view.state is SearchState.RUNNING else [*outcome(view)]
        lines = [_plain(line) for line in lines]
        if self._display is not None:
            self._put("\n".join(lines))
        elif not self._out.isatty():
            self._tell(lines, news_of(view))
        elif view.state is SearchState.RUNNING:
            self._write(f"\r{_cut(lines[0], self._width() - 1)}{_TO_END}")
            self._is_open = True
        else:
            self._write("".join(f"\r{line}{_TO_END}\n" for line in lines))
            self._is_open = False

    def _put(self, text: str) -> None:
        if text == self._said:
            return
        self._said, shown = text, {"text/plain": text}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
        elif self._display is not None:
            self._handle = self._display(shown, raw=True)

    def _tell(self, lines: list[str], news: object) -> None:
        if news != self._said:
            self._said = news
            self._write("".join(f"{line}\n" for line in lines))

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or _WIDTH
        except (OSError, ValueError):
            return _WIDTH


def _plain(text: str) -> str:
    """Return one line that does no more than to be read: values of parameters are somebody's texts."""
    return "".join(one if one.isprintable() else _REPLACED for one in text)


def _cut(text: str, width: int) -> str:
    """Return as much of a line as a terminal has columns for; some characters take two, and some none."""
    columns = 0
    for place, one in enumerate(text):
        columns += 0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        if columns > width:
            return f"{text[: max(0, place - 2)]}…"
    return text
