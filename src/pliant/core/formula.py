"""Slots per host as a formula over what a host has: numbers, `+ - * //`, brackets, `min`, `max`, `ngpus`, `ncpus`.

A formula is read once, by a parser of its own (nothing is evaluated as Python), and everything that is wrong with it is
told with its position. Laws: a value never raises (a division by 0 gives 0); the same text gives the same value.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pliant.core.errors import InvalidInput, Problem

MAX_LENGTH: Final = 200
MAX_DEPTH: Final = 20
MAX_NUMBER: Final = 1_000_000
NAMES: Final = ("ngpus", "ncpus")
FUNCTIONS: Final = ("min", "max")

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>[0-9]+)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>//|[-+*(),])|(?P<other>\S))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """A formula that was read, in postfix order."""

    text: str
    steps: tuple[int | str, ...]
    """Numbers, names, and operations on what is before them; the name of a function tells how many (`min/3`)."""

    def value(self, *, ngpus: int, ncpus: int) -> int:
        """Return what the formula comes to on a host with so many GPUs and CPUs."""
        known: Mapping[str, int] = {"ngpus": ngpus, "ncpus": ncpus}
        stack: list[int] = []
        for step in self.steps:
            if isinstance(step, int):
                stack.append(step)
            elif step in known:
                stack.append(known[step])
            else:
                name, _, count = step.partition("/") if step[0] in "mn" else (step, "", "2")
                num = int(count)
                arguments = stack[-num:]
                del stack[-num:]
                stack.append(_apply(name, arguments))
        return stack.pop()


def _apply(name: str, arguments: list[int]) -> int:
    match name:
        case "min":
            return min(arguments)
        case "max":
            return max(arguments)
        case "neg":
            return -arguments[0]
    left, right = arguments
    match name:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left // right if right else 0


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int
    """Its first character's number, from 1."""


class _Wrong(Exception):
    """Reading cannot go on."""


def read_formula(text: str, *, field: str = "slots_per_host") -> Formula:
    """Read a formula.

    Raises:
        InvalidInput: with everything that is wrong with it, each with the position in the text, from 1.
    """
    if len(text) > MAX_LENGTH:
        message = f"the formula has {len(text)} characters; write it with {MAX_LENGTH} at most"
        raise InvalidInput.at(field, message)
    tokens = _tokens(text)
    problems = [message for token in tokens if (message := _problem_of(token))]
    if not problems:
        reader = _Reader(tokens, len(text) + 1)
        try:
            reader.whole()
        except _Wrong as wrong:
            problems.append(str(wrong))
        else:
            return Formula(text=text, steps=tuple(reader.steps))
    raise InvalidInput(*(Problem(field=field, message=f"{text!r}: {message}") for message in problems))


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
    return found


def _problem_of(token: _Token) -> str:
    if token.kind == "other":
        return f"position {token.at}: {token.text!r} means nothing here; use numbers, + - * //, brackets and commas"
    if token.kind == "word" and token.text not in (*NAMES, *FUNCTIONS):
        known = ", ".join((*NAMES, *FUNCTIONS))
        return f"position {token.at}: {token.text!r} is not known; there are {known}"
    if token.kind == "number" and (len(token.text) > 7 or int(token.text) > MAX_NUMBER):
        return f"position {token.at}: {token.text[:20]} is too large; the largest number is {MAX_NUMBER}"
    return ""


class _Reader:
    """Recursive descent: sum, product, sign, atom."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self.steps: list[int | str] = []
        self._tokens = tokens
        self._end = end
        self._next = 0
        self._depth = 0

    def whole(self) -> None:
        self._sum()
        if self._next < len(self._tokens):
            token = self._tokens[self._next]
            raise _Wrong(f"position {token.at}: {token.text!r} is not expected here; an operator or the end is")

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _take(self, *signs: str) -> str:
        """Return the next sign if it is one of these, and go on; else nothing."""
        if self._peek() in signs and self._peek():
            self._next += 1
            return self._tokens[self._next - 1].text
        return ""

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise _Wrong(f"position {self._at()}: {sign!r} is missing")

    def _at(self) -> int:
        return self._tokens[self._next].at if self._next < len(self._tokens) else self._end

    def _sum(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Wrong(f"position {self._at()}: more than {MAX_DEPTH} brackets inside each other; write it flatter")
        self._product()
        while sign := self._take("+", "-"):
            self._product()
            self.steps.append(sign)
        self._depth -= 1

    def _product(self) -> None:
        self._read_signed()
        while sign := self._take("*", "//"):
            self._read_signed()
            self.steps.append(sign)

    def _read_signed(self) -> None:
        negative = False
        while self._take("-"):
            negative = not negative
        self._atom()
        if negative:
            self.steps.append("neg/1")

    def _atom(self) -> None:
        if self._next == len(self._tokens):
            raise _Wrong(f"position {self._end}: it ends where a number, {', '.join(NAMES)} or a bracket should be")
        token = self._tokens[self._next]
        self._next += 1
        if token.kind == "number":
            self.steps.append(int(token.text))
        elif token.text in NAMES:
            self.steps.append(token.text)
        elif token.text in FUNCTIONS:
            self._call(token.text)
        elif token.text == "(":
            self._sum()
            self._need(")")
        else:
            raise _Wrong(f"position {token.at}: {token.text!r} stands where a number, a name or a bracket should be")

    def _call(self, name: str) -> None:
        self._need("(")
        self._sum()
        num = 1
        while self._take(","):
            self._sum()
            num += 1
        self._need(")")
        self.steps.append(f"{name}/{num}")
