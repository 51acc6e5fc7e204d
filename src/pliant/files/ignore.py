"""Patterns of names, one a line, as in `.pliantignore`: what is not sent with code, and is no result either.

`*`, `?` and `[…]` are as in a shell. A pattern fits a name, or the whole way to it from the top; with `/` at its end it
fits folders only, with `/` before it the top only. What lies in a folder that fits is left out with it. Example:
`*.pt` fits `a.pt` and `runs/a.pt`; `runs/` fits all in folders of that name; `/data` what is called so at the top.
"""

import re
from collections.abc import Iterable, Iterator
from fnmatch import translate
from typing import Final

IGNORE_FILE: Final = ".pliantignore"
ALWAYS_IGNORED: Final = (".git", "__pycache__", ".venv", "node_modules", ".ipynb_checkpoints", "*.pyc")
MAX_PATTERNS: Final = 500
"""A server reads so many; it does not choose them."""


class Patterns:
    """Some patterns, to be asked about one name after the other."""

    def __init__(self, patterns: Iterable[str]) -> None:
        given = list(patterns)
        self._files = _compile(pattern for pattern in given if not pattern.endswith("/"))
        self._folders = _compile(pattern.rstrip("/") for pattern in given)

    def fit(self, name: str, is_folder: bool) -> bool:
        """Tell whether one fits this name, given by its way from the top; folders above it are not looked at."""
        lasts, wholes = self._folders if is_folder else self._files
        return bool(lasts.match(name.rpartition("/")[2]) or wholes.match(name))

    def fit_way(self, name: str) -> bool:
        """Tell whether one fits this file, or a folder that it lies in."""
        return self.fit(name, False) or any(self.fit(folder, True) for folder in _above(name))


def read_patterns(text: str) -> tuple[str, ...]:
    """Return the patterns of a file such as `.pliantignore`: not its empty lines and its comments."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _compile(patterns: Iterable[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what a last part of a name has to match, or a whole name."""
    given = list(patterns)
    never = "(?!)"
    lasts = "|".join(map(translate, given)) or never
    return re.compile(lasts), re.compile("|".join(translate(one.lstrip("/")) for one in given) or never)


def _above(name: str) -> Iterator[str]:
    at = name.find("/")
    while at >= 0:
        yield name[:at]
        at = name.find("/", at + 1)
