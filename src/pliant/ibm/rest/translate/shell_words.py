"""Splits a command line into words as a POSIX shell quotes them. Pure; runs nothing, expands nothing.

Single quotes keep everything, double quotes all but a backslash before `"`, `\\`, `$`, a backquote or a line's end;
elsewhere a backslash keeps the next character. A backslash at a line's end joins the lines. `_QUOTE_` stands for a
double quote, for clients that cannot send one.
"""

import re

from pliant.core.errors import InvalidInput, Problem

MAX_CHARACTERS = 100_000
QUOTE = "_QUOTE_"
_PIECE = re.compile(
    r"""(?P<joined>\\\r?\n)
      | (?P<space>[ \t\r\n]+)
      | '(?P<single>[^']*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>.)
      | (?P<plain>[^ \t\r\n'"\\]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED_IN_DOUBLE = re.compile(r'\\(\r?\n|["\\$`])')


def split(text: str, *, field: str = "args") -> tuple[str, ...]:
    """Return the words of a command line.

    Raises:
        InvalidInput: a quote is not closed, a backslash is the last character, or it is too long or holds a NUL.
    """
    if len(text) > MAX_CHARACTERS:
        raise _wrong(field, f"it has {len(text)} characters; {MAX_CHARACTERS} are the most")
    if "\0" in text:
        raise _wrong(field, "it holds a NUL character, which no program can be given; remove it")
    text = text.replace(QUOTE, '"')
    words: list[str] = []
    word: str | None = None
    place = 0
    while place < len(text):
        piece = _PIECE.match(text, place)
        if piece is None:
            raise _unclosed(text, place, field)
        place = piece.end()
        if piece.lastgroup == "space":
            if word is not None:
                words.append(word)
            word = None
        elif piece.lastgroup != "joined":
            word = (word or "") + _kept(piece)
    return (*words, word) if word is not None else tuple(words)


def _kept(piece: re.Match[str]) -> str:
    if piece.lastgroup == "double":
        return _ESCAPED_IN_DOUBLE.sub(lambda found: "" if found[1].endswith("\n") else found[1], piece["double"])
    assert piece.lastgroup is not None
    return piece[piece.lastgroup]


def _unclosed(text: str, place: int, field: str) -> InvalidInput:
    if text[place] == "\\":
        return _wrong(field, "it ends with a backslash, which keeps nothing; remove it, or write two")
    near = text[place : place + 40]
    return _wrong(
        field, f"the quote at character {place + 1} is not closed ({near!r}); close it, or put a \\ before it"
    )


def _wrong(field: str, message: str) -> InvalidInput:
    return InvalidInput(Problem(field=field, message=message))
