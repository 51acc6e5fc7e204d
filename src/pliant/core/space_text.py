"""A parameter of a space as a line of text, for command lines and files: `NAME=KIND:BODY[:MODIFIER][@CONDITION]`.

    lr=log:1e-5..1e-1       momentum=float:0..0.99:0.01@opt=sgd     hidden=int:16..256:16       width=int:8..1024:log
    act=choice:relu,gelu    layers=choice:[[64],[64,64]]            seed=fixed:7                beta=float:-1..1

Both ends are inclusive, and the kind is never guessed. Numbers are those of JSON, so that `0..1` can be read in one way
alone. `choice` splits at commas, or is one list of JSON if it begins with `[`. An item is a number, true, false, null,
else a text; `"7"` is the text 7. A condition names an earlier parameter and its values: `@opt=sgd|adam@layers=2`.
Whether what is read makes sense is not looked at here (`problems_of_space`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from pliant.core.errors import InvalidInput
from pliant.core.near_name import near_name
from pliant.core.space import Scalar, SearchParameter, Value

EXAMPLES: Final[Mapping[str, str]] = {
    "log": "lr=log:1e-5..1e-1",
    "float": "momentum=float:0..0.99:0.01",
    "int": "hidden=int:16..256:16",
    "choice": "act=choice:relu,gelu",
    "fixed": "seed=fixed:7",
}
"""One of each kind."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,59}")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_WORDS: Final[Mapping[str, Scalar]] = {"true": True, "false": False, "null": None}
_SPECIAL: Final = frozenset(',@|"')
_MAX_SHOWN: Final = 120
_DEPTH: Final = 2
"""A value is a list of lists at most."""


def read_parameter(text: str) -> tuple[str, SearchParameter]:
    """Return the name and the parameter that a text says.

    Raises:
        InvalidInput: it says none; with what stands where, and an example.
    """
    name, equals, _ = text.partition("=")
    if not equals:
        _Reader(text).refuse(f"there is no '='; give it as NAME=KIND:BODY, such as {EXAMPLES['log']}")
    if not _NAME.fullmatch(name.strip()):
        allowed = "letters, digits, '_', '-' and '.', 60 at most, which begins with a letter or '_'"
        _Reader(text).refuse(f"{name!r:.80} is no name; give one of {allowed}")
    return name.strip(), _Reader(text, len(name) + 1).parameter()


def read_domain(text: str) -> SearchParameter:
    """Return the parameter that a text without its name says: `log:1e-5..1e-1`.

    Raises:
        InvalidInput: as for `read_parameter`.
    """
    return _Reader(text).parameter()


def read_value(text: str) -> Value:
    """Return the value that a text says: `0.1`, `true`, `relu`, `[64,64]`.

    Raises:
        InvalidInput: it says none.
    """
    reader = _Reader(text, example="lr=0.1")
    value = reader.whole_value("")
    reader.expect_end()
    return value


def write_parameter(name: str, parameter: SearchParameter) -> str:
    """Return the text that says a sound parameter."""
    return f"{name}={write_domain(parameter)}"


def write_domain(parameter: SearchParameter) -> str:
    """Return the text, without a name, that says a sound parameter."""
    conditions = (f"@{name}={'|'.join(map(_item, values))}" for name, values in parameter.when.items())
    return "".join((_domain(parameter), *conditions))


def write_value(value: Value) -> str:
    """Return the text that `read_value` takes for a value."""
    return _json(value) if isinstance(value, tuple) else _item(value)


def _domain(parameter: SearchParameter) -> str:
    match parameter.kind:
        case "choice":
            items = parameter.choices
            listed = any(isinstance(one, tuple) for one in items)
            return f"choice:{_json(items) if listed else ','.join(map(_item, items))}"
        case "fixed":
            return f"fixed:{write_value(parameter.value)}"
        case kind:
            write = _whole if kind == "int" else repr
            head = "log" if kind == "float" and parameter.log else kind
            log = ":log" if kind == "int" and parameter.log else ""
            step = "" if parameter.step is None else f":{write(parameter.step)}"
            assert parameter.low is not None
            assert parameter.high is not None
            return f"{head}:{write(parameter.low)}..{write(parameter.high)}{step}{log}"


def _whole(value: float) -> str:
    return str(int(value))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _item(value: Value) -> str:
    """Return a value that stands beside others, as it is written there: a text plainly, if it is read as one."""
    if not isinstance(value, str):
        return _json(value)
    plain = value and value == value.strip() and not _SPECIAL & {*value} and not value.startswith("[")
    return value if plain and not _looks_like_more(value) else _json(value)


def _looks_like_more(text: str) -> bool:
    """Tell whether a text might be meant as something else."""
    try:
        float(text)
    except ValueError:
        return text in _WORDS
    return True


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def _value_of(document: object, depth: int) -> Value:
    """Return what a document of JSON says as a value.

    Raises:
        ValueError: it has objects in it, or lists too deep in each other.
    """
    if isinstance(document, list) and depth:
        items: Any = tuple(_value_of(one, depth - 1) for one in document)
        values: Value = items
        return values
    if document is None or isinstance(document, bool | int | float | str):
        return document
    raise ValueError("only texts, numbers, true, false, null and lists of those, or of such lists, can be values")


class _Reader:
    """A text, and how far it has been read."""

    def __init__(self, text: str, position: int = 0, *, example: str = EXAMPLES["log"]) -> None:
        self._text = text
        self._at = position
        self._example = example

    def refuse(self, message: str) -> NoReturn:
        shown = self._text if len(self._text) <= _MAX_SHOWN else f"{self._text[:_MAX_SHOWN]}…"
        raise InvalidInput.at("", f"{shown!r}: {message}")

    def refuse_here(self, expected: str) -> NoReturn:
        rest = self._text[self._at :]
        there = f"{rest[:20]!r} stands" if rest else "nothing stands"
        self.refuse(f"{expected} where {there} (character {self._at + 1}); an example is {self._example}")

    def parameter(self) -> SearchParameter:
        kind = re.compile(r"[^:@]*").match(self._text, self._at)
        assert kind is not None
        word = kind[0].strip()
        if word not in EXAMPLES:
            near = near_name(word, tuple(EXAMPLES))
            meant = f"is {near!r} meant?" if near else f"give one of {', '.join(EXAMPLES)}, such as {self._example}"
            self.refuse(f"{word!r:.80} is no kind of parameter; {meant}")
        self._example = EXAMPLES[word]
        self._at = kind.end()
        if not self._take(":"):
            self.refuse_here("a ':' is due")
        fields = self._fields(word)
        when = dict(self._conditions())
        self.expect_end()
        return SearchParameter(**fields, when=when)

    def expect_end(self) -> None:
        self._skip_blanks()
        if self._at < len(self._text):
            self.refuse_here("the end is due")

    def _fields(self, word: str) -> dict[str, Any]:
        match word:
            case "choice":
                return {"kind": "choice", "choices": self._choices()}
            case "fixed":
                return {"kind": "fixed", "value": self.whole_value("@")}
        fields: dict[str, Any] = {"kind": "float" if word == "log" else word, "log": word == "log"}
        fields["low"] = self._number()
        if not self._take(".."):
            self.refuse_here("'..' and the highest value are due")
        fields["high"] = self._number()
        if self._take(":"):
            if self._take("log"):
                fields["log"] = True
            else:
                fields["step"] = self._number("a step, or 'log',")
        return fields

    def _choices(self) -> tuple[Value, ...]:
        self._skip_blanks()
        if self._text.startswith("[", self._at):
            values = self._read_json(_DEPTH + 1)
            assert isinstance(values, tuple)
            return values
        return tuple(self._items(",", ",@"))

    def _conditions(self) -> Iterator[tuple[str, tuple[Scalar, ...]]]:
        seen = set()
        while self._take("@"):
            found = _NAME.match(self._text, self._at)
            if found is None:
                self.refuse_here("the name of an earlier parameter is due")
            if found[0] in seen:
                self.refuse(f"{found[0]!r} stands in two conditions; name it once, with its values: @opt=sgd|adam")
            seen.add(found[0])
            self._at = found.end()
            if not self._take("="):
                self.refuse_here("'=' and a value are due, as in @opt=sgd|adam,")
            yield found[0], tuple(self._items("|", "|@"))

    def _items(self, separator: str, end: str) -> Iterator[Scalar]:
        yield self._scalar(end)
        while self._take(separator):
            yield self._scalar(end)

    def whole_value(self, end: str) -> Value:
        """Read a value, which may be a list, to the first of these characters."""
        self._skip_blanks()
        return self._read_json() if self._text.startswith("[", self._at) else self._scalar(end)

    def _scalar(self, end: str) -> Scalar:
        self._skip_blanks()
        if self._text.startswith('"', self._at):
            text = self._read_json()
            assert isinstance(text, str)
            return text
        last = next((i for i in range(self._at, len(self._text)) if self._text[i] in end), len(self._text))
        word = self._text[self._at : last].strip()
        if not word:
            self.refuse_here('a value is due ("" is the empty text)')
        if word in _WORDS:
            value = _WORDS[word]
        elif _NUMBER.fullmatch(word):
            value = self._as_number(word)
        elif _looks_like_more(word):
            self.refuse_here(f'a number as 0.5 or 1e-5, or "{word[:20]}" if a text is meant, is due')
        else:
            value = word
        self._at = last
        return value

    def _as_number(self, word: str) -> int | float:
        if not _INTEGER.fullmatch(word):
            return float(word)
        if len(word) > _MAX_SHOWN:
            self.refuse_here("a number of fewer digits is due")
        return int(word)

    def _number(self, what: str = "a number") -> float:
        self._skip_blanks()
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            self.refuse_here(f"{what} such as 16, 0.5 or 1e-5 is due")
        self._at = found.end()
        return float(found[0])

    def _read_json(self, depth: int = _DEPTH) -> Value:
        try:
            document, end = _DECODER.raw_decode(self._text, self._at)
            value = _value_of(document, depth)
        except (ValueError, RecursionError) as error:
            self.refuse_here(f"JSON is due ({getattr(error, 'msg', error)})")
        self._at = end
        return value

    def _take(self, token: str) -> bool:
        self._skip_blanks()
        found = self._text.startswith(token, self._at)
        self._at += len(token) * found
        return found

    def _skip_blanks(self) -> None:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1
