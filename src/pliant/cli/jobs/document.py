"""YAML and JSON documents of people, read by what is expected: every value as it is written, with its line.

    name: 1.10      # a text is expected: '1.10'
    max: 8          # a whole number is expected: 8
    max: "8"        # no whole number: what is quoted is a text

YAML itself would make the number 1.1 of the first and the truth value False of a `no`. Nothing is made of tags: the
document is taken apart and no object is constructed. JSON is read in the same way, and is nearly YAML.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import yaml

from pliant.core.errors import InvalidInput, Problem

ValueType = Literal["text", "integer", "number", "flag", "texts", "values", "parameters"]
"""What is expected: `values` is a mapping of names to lists of texts, `parameters` one to texts or to fields."""

MAX_BYTES: Final = 1 << 20
_NULL: Final = "tag:yaml.org,2002:null"
_PLAIN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "timestamp", "value", "merge")
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""JSON writes one character beyond the first 65,536 as two."""
_MAX_SHOWN: Final = 80
_EXAMPLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "texts": "give a list, such as [a, b]",
        "values": "give lists by name, such as {lr: [0.1, 0.01]}",
        "parameters": "give what may be chosen by name, such as {lr: log:1e-5..1e-1}",
    }
)


class WrongValueError(Exception):
    """A value is not what is expected; says what is wrong."""


@dataclass(slots=True)
class Document:
    """The keys of a document, in their order, and what is wrong with it."""

    path: Path
    nodes: dict[str, yaml.Node] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """In which each key stands; the first is 1."""
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, line: int, message: str, key: str = "") -> None:
        """Note that something is wrong."""
        self.problems.append(Problem(field=place_of(self.path, line, key), message=message))


def place_of(path: Path, line: int, key: str = "") -> str:
    """Return a place in a file, for people."""
    return f"{path}, line {line}" + (f": {key}" if key else "")


def read_document(path: Path) -> Document:
    """Return a file of YAML, or of JSON if its name ends so; keys that stand in it twice are among its problems.

    Raises:
        InvalidInput: it cannot be read, or is no mapping.
    """
    root = _compose(path, _text_of(path))
    document = Document(path)
    if root is None:
        raise InvalidInput.at(str(path), "there is nothing in it; give at least one key, such as `script: train.py`")
    if not isinstance(root, yaml.MappingNode):
        raise InvalidInput.at(place_of(path, _line(root)), "it is no mapping; give lines such as `max: 8`")
    for key_node, value in root.value:
        line = _line(key_node)
        try:
            key = _text(key_node)
        except WrongValueError as error:
            document.refuse(line, str(error))
            continue
        if key in document.nodes:
            document.refuse(line, f"it stands in line {document.lines[key]} already; give it once", key)
            continue
        document.nodes[key], document.lines[key] = value, line
    return document


def value_of(node: yaml.Node, expected: ValueType) -> Any:
    """Return what is expected.

    Raises:
        WrongValueError: it is something else.
    """
    match expected:
        case "texts":
            return [_text(one) for one in _sequence(node, expected)]
        case "values":
            return dict(_values(node))
        case "parameters":
            return [f"{name}={text}" for name, text in _parameters(node)]
        case "text":
            return _text(node)
    text = _text(node)
    if isinstance(node, yaml.ScalarNode) and node.style in ("'", '"', "|", ">"):
        raise WrongValueError(f"{_shown(text)} is a text; write it without quotation marks")
    if expected == "flag":
        if text not in ("true", "false"):
            raise WrongValueError(f"{_shown(text)} is neither true nor false")
        return text == "true"
    if not (_INTEGER if expected == "integer" else _NUMBER).fullmatch(text):
        raise WrongValueError(f"{_shown(text)} is no {'whole ' if expected == 'integer' else ''}number")
    return int(text) if expected == "integer" else float(text)


def _values(node: yaml.Node) -> Iterator[tuple[str, list[str]]]:
    for name, values in _named(node, "values"):
        yield name, [_text(one) for one in _sequence(values, "values")]


def _parameters(node: yaml.Node) -> Iterator[tuple[str, str]]:
    for name, one in _named(node, "parameters"):
        yield name, json.dumps(_plain(one)) if isinstance(one, yaml.MappingNode) else _text(one)


def _named(node: yaml.Node, expected: ValueType) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise WrongValueError(f"it is {_kind(node)}; {_EXAMPLES[expected]}")
    seen = set()
    for key_node, value in node.value:
        name = _text(key_node)
        if name in seen:
            raise WrongValueError(f"{_shown(name)} is given twice; give all its values at once")
        seen.add(name)
        yield name, value


def _plain(node: yaml.Node) -> Any:
    """Return what JSON would say: of what is not quoted a number, true, false or null where it is written as one."""
    if isinstance(node, yaml.MappingNode):
        return {name: _plain(one) for name, one in _named(node, "parameters")}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one) for one in node.value]
    if node.tag == _NULL:
        return None
    text = _text(node)
    if node.style in ("'", '"', "|", ">"):
        return text
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _sequence(node: yaml.Node, expected: ValueType) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        raise WrongValueError(f"it is {_kind(node)}; {_EXAMPLES[expected]}")
    return list(node.value)


def _text(node: yaml.Node) -> str:
    """Return the text of a scalar as it is written, whatever YAML would make of it."""
    if not isinstance(node, yaml.ScalarNode):
        raise WrongValueError(f"it is {_kind(node)}; give one value")
    if node.tag == _NULL:
        raise WrongValueError("it has no value; give one, in quotation marks if a text is meant, or leave it out")
    if node.tag not in _PLAIN_TAGS:
        raise WrongValueError(f"it has the tag {_shown(node.tag)}, and tags are not read; leave the tag out")
    return str(node.value)


def _kind(node: yaml.Node) -> str:
    return {"sequence": "a list", "mapping": "a mapping"}.get(node.id, "one value")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]!r}…"


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput.at(str(path), f"it cannot be read ({error.strerror}); check the path") from error
    if len(content) > MAX_BYTES:
        raise InvalidInput.at(str(path), f"it is longer than {MAX_BYTES >> 20} MiB; a job file is not that long")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput.at(place_of(path, line), "it is not UTF-8; save the file as that") from error


def _compose(path: Path, text: str) -> yaml.Node | None:
    """Return the root of a document as nodes."""
    is_json = path.suffix == ".json"
    try:
        if is_json:
            json.loads(text)
            text = text.replace("\t", " ")  # no string of JSON holds one, and YAML takes none between values
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except json.JSONDecodeError as error:
        raise InvalidInput.at(place_of(path, error.lineno), f"it is no JSON ({error.msg}); mend it there") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise InvalidInput.at(place_of(path, line), f"it is no YAML ({error.problem}); mend it there") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidInput.at(
            place_of(path, line), f"it holds {chr(error.character)!r}, which has no place in YAML"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InvalidInput.at(str(path), "lists in it lie too deep in each other, or a number is too long") from error
    if is_json and node is not None:
        _join_pairs(node)
    return node


def _join_pairs(node: Any) -> None:
    if isinstance(node, yaml.ScalarNode):
        node.value = _PAIR.sub(lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), node.value)
    elif isinstance(node, yaml.CollectionNode):
        for one in node.value:
            for part in one if isinstance(one, tuple) else (one,):
                _join_pairs(part)
