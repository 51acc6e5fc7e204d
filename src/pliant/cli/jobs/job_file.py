"""Job files: a submission as YAML or JSON, with the keys that the options of `submit` are.

A key is an option without its dashes (`virtual-workers`), and its value what would be typed for it; nothing is declared
here a second time. So a file becomes what was typed (`JobFile.typed`), and takes the way that it takes from there.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from pliant.cli.fields import FieldOption
from pliant.cli.jobs.asked import OPTIONS
from pliant.cli.jobs.document import ValueType, WrongValueError, place_of, read_document, value_of
from pliant.cli.options import beside
from pliant.cli.spelling import SpelledInput, respell
from pliant.core.errors import InvalidInput, Problem
from pliant.core.near_name import near_name
from pliant.core.secret_names import hide_secrets

SUFFIXES: Final = (".yaml", ".yml", ".json")
_TYPES: Final[Mapping[Any, ValueType]] = MappingProxyType(
    {str: "text", int: "integer", float: "number", bool: "flag", list[str]: "texts"}
)
_HEAD: Final = "# `pliant submit FILE` submits this. docs/job-files.md has all keys.\n"
_WIDTH: Final = 120


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes texts so that they are read again: between single quotation marks Unicode's line breaks become blanks."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    breaks = any(sign in text for sign in "\x85\u2028\u2029\ufeff")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if breaks else None)


_Dumper.add_representer(str, _write_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of job files."""

    name: str
    field: str
    """The parameter of `submit` that it gives."""
    type: ValueType
    help: str
    option: FieldOption | None = None
    """None: not one that is made from a noun."""


def _keys() -> Iterator[Key]:
    yield Key(
        name="path",
        field="path",
        type="text",
        help="A folder of code, or one Python file; if left out: the folder of the file.",
    )
    for field, option in OPTIONS.items():
        name = option.name.removeprefix("--")
        yield Key(name=name, field=field, type=_TYPES[option.type], help=option.help, option=option)
    yield Key(name="args", field="args", type="texts", help="Passed to the script.")
    yield Key(name="array", field="array", type="values", help="A job for every combination of these.")
    yield Key(name="array-max", field="array_max", type="integer", help="Run so many of them at once at most.")


KEYS: Final[Mapping[str, Key]] = MappingProxyType({key.name: key for key in _keys()})
_NAMES: Final = {key.field: key.name for key in KEYS.values()}
_OPTIONS: Final = {field: f"--{name}" for field, name in _NAMES.items()} | {"path": "PATH", "args": "ARGS"}
_BY_FIELD: Final = MappingProxyType({key.field: key for key in KEYS.values()})


def is_job_file(path: Path) -> bool:
    """Tell whether what is submitted is a job file, and not code."""
    return path.suffix in SUFFIXES and not path.is_dir()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """What a job file says."""

    path: Path
    typed: Mapping[str, Any]
    """By parameters of `submit`: what would be typed for them, paths seen from the root."""
    lines: Mapping[str, int]
    """Where each of them stands."""

    @contextmanager
    def naming_places(self, fields: Sequence[str]) -> Iterator[None]:
        """Say of what is wrong with these fields in which line they stand; in the spelling of the file."""
        try:
            yield
        except InvalidInput as error:
            raise SpelledInput(*(self._placed(problem, fields) for problem in error.problems)) from error

    def _placed(self, problem: Problem, fields: Sequence[str]) -> Problem:
        top = problem.field.partition(".")[0]
        key = (
            _BY_FIELD.get(top)
            or KEYS.get(top.removeprefix("--"))
            or (KEYS["path"] if top in ("PATH", "code") else None)
        )
        if not problem.field:
            return Problem(field=str(self.path), message=respell(problem, _NAMES).message)
        if key is None or key.field not in fields:
            return respell(problem, _OPTIONS)
        place = place_of(self.path, self.lines[key.field], key.name)
        return Problem(field=place, message=respell(problem, _NAMES).message)


def read_job_file(path: Path) -> JobFile:
    """Return what a job file says.

    Raises:
        InvalidInput: with all keys that are none, and all values that are not what their key takes.
    """
    document, typed = read_document(path), dict[str, Any]()
    folder = path.expanduser().absolute().parent
    for name, node in document.nodes.items():
        line = document.lines[name]
        key = KEYS.get(name)
        if key is None:
            document.refuse(line, _unknown(name))
            continue
        try:
            typed[key.field] = _placed(key, value_of(node, key.type), folder)
        except WrongValueError as error:
            document.refuse(line, str(error), name)
    if document.problems:
        raise SpelledInput(*document.problems)
    typed.setdefault("path", str(folder))
    return JobFile(path=path, typed=typed, lines={KEYS[name].field: line for name, line in document.lines.items()})


def _unknown(name: str) -> str:
    said = f"there is no key {name!r:.80}"
    names = {field.replace("_", "-"): key for field, key in _NAMES.items()} | {key: key for key in KEYS}
    near = near_name(name.replace("_", "-"), [*names])
    return f"{said}; is {names[near]!r} meant?" if near else f"{said}; keys are the options of `pliant submit --help`"


def _placed(key: Key, value: Any, folder: Path) -> Any:
    if key.field == "path":
        return beside(value, folder)
    place = None if key.option is None else key.option.wording.place
    return value if place is None else place(value, folder)


def write_job_file(path: Path, typed: Mapping[str, Any]) -> tuple[str, ...]:
    """Write what was typed for a submission into a new file, without secrets; return notes of what is not in it.

    Raises:
        InvalidInput: the file is there already, or cannot be written, or its name does not end as one's of a job file.
    """
    if path.suffix not in SUFFIXES:
        raise InvalidInput.at("--save", f"{str(path)!r} does not end in {', '.join(SUFFIXES)}; give such a name")
    said, notes = _without_secrets(typed)
    content = {key.name: _written(key, said[key.field], path) for key in KEYS.values() if key.field in said}
    if path.suffix == ".json":
        text = json.dumps(content, indent=2) + "\n"
    else:
        text = _HEAD + yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InvalidInput.at("--save", f"{str(path)!r} is there already; give another name, or remove it") from error
    except OSError as error:
        raise InvalidInput.at("--save", f"{str(path)!r} cannot be written ({error.strerror})") from error
    return notes


def _without_secrets(typed: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what may be written: of variables that are secrets the names, and no webhook, whose address may be one."""
    said = {
        field: value for field, value in typed.items() if value not in (None, [], {}) and not _is_default(field, value)
    }
    notes = []
    if said.pop("webhook", None) is not None:
        notes.append("the address of the webhook may be a secret and is not written; PLIANT_WEBHOOK gives it")
    pairs = [pair.partition("=") for pair in said.get("env", [])]
    secret = {name for name, equals, value in pairs if equals and hide_secrets({name: value}) != {name: value}}
    if secret:
        said["env"] = [name if name in secret else f"{name}{equals}{value}" for name, equals, value in pairs]
        names = ", ".join(sorted(secret))
        notes.append(f"the value of {names} is not written; export it where the file is submitted")
    return said, tuple(notes)


def _is_default(field: str, value: object) -> bool:
    option = OPTIONS.get(field)
    return option is not None and bool(option.parameter.default == value)


def _written(key: Key, value: Any, file: Path) -> Any:
    """Return a value as it stands in a file: the code by its place seen from there, if it lies below."""
    placed = _placed(key, value, Path.cwd())
    folder = file.expanduser().absolute().parent
    if key.field not in ("path", "requirements") or not Path(placed).is_relative_to(folder):
        return placed
    return os.path.relpath(placed, folder)
