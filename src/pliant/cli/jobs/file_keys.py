"""Files that say what a command is asked for, as YAML or JSON, with the keys that the command's options are.

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

import typer
import yaml

from pliant.api.rerun import ALTERNATIVES
from pliant.cli.fields import FieldOption, Given
from pliant.cli.jobs.code import FILE_SUFFIXES
from pliant.cli.jobs.document import ValueType, WrongValueError, place_of, read_document, value_of
from pliant.cli.options import beside
from pliant.cli.spelling import SpelledInput, respell
from pliant.core.errors import InvalidInput, Problem
from pliant.core.near_name import near_name
from pliant.core.secret_names import hide_secrets

_TYPES: Final[Mapping[Any, ValueType]] = MappingProxyType(
    {str: "text", int: "integer", float: "number", bool: "flag", list[str]: "texts"}
)
_INSTEAD: Final = (*ALTERNATIVES, ("python", "environment", "requirements"), ("halving", "pruner", "population"))
"""Of what is typed and what is in a file one is meant."""
_REPLACED: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {"fixed": ("min_tasks", "max_tasks"), "objectives": ("metric", "direction"), "metric": ("objectives",)}
)
"""What is typed takes the place of these in a file."""
_WIDTH: Final = 120


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes texts so that they are read again: between single quotation marks Unicode's line breaks become blanks."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    breaks = any(sign in text for sign in "\x85\u2028\u2029\ufeff")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if breaks else None)


_Dumper.add_representer(str, _write_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of such files."""

    name: str
    field: str
    """The parameter of the command that it gives."""
    type: ValueType
    help: str
    option: FieldOption | None = None
    """None: not one that is made from a noun."""


def keys_of(options: Mapping[str, FieldOption]) -> Iterator[Key]:
    """Yield the keys that options make."""
    for field, option in options.items():
        name = option.name.removeprefix("--")
        yield Key(name=name, field=field, type=_TYPES[option.type], help=option.help, option=option)


class FileKeys:
    """The files of one command."""

    def __init__(self, command: str, page: str, keys: Iterator[Key]) -> None:
        """Say which command takes them, which page of the documents has all keys, and which these are."""
        self.command = command
        self.head = f"# `pliant {command} FILE` takes this. docs/{page} has all keys.\n"
        self.by_name = MappingProxyType({key.name: key for key in keys})
        self.by_field = MappingProxyType({key.field: key for key in self.by_name.values()})
        self.names = {key.field: key.name for key in self.by_name.values()}
        self.spelled = {field: f"--{name}" for field, name in self.names.items()} | {"path": "PATH", "args": "ARGS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """What a job file says."""

    path: Path
    typed: Mapping[str, Any]
    """By parameters of the command: what would be typed for them, paths seen from the root."""
    lines: Mapping[str, int]
    """Where each of them stands."""
    keys: FileKeys

    def beside(self, context: typer.Context, given: Given) -> tuple[Given, Sequence[str]]:
        """Return what was typed and what the file says, of which the first wins; and which of it the file says."""
        typed = {name for name in given if _is_typed(context, name)}
        instead = {other for group in _INSTEAD if typed & {*group} for other in group}
        instead |= {other for name in typed for other in _REPLACED.get(name, ())}
        said = {name: value for name, value in self.typed.items() if name not in typed | instead}
        joined = given | said
        if "env" in typed:
            named = {pair.partition("=")[0] for pair in given["env"]}
            kept = [pair for pair in self.typed.get("env", []) if pair.partition("=")[0] not in named]
            joined["env"] = [*kept, *given["env"]]
        return joined, [name for name in said if name in self.lines]

    @contextmanager
    def naming_places(self, fields: Sequence[str]) -> Iterator[None]:
        """Say of what is wrong with these fields in which line they stand; in the spelling of the file."""
        try:
            yield
        except InvalidInput as error:
            raise SpelledInput(*(self._placed(problem, fields) for problem in error.problems)) from error

    def _placed(self, problem: Problem, fields: Sequence[str]) -> Problem:
        top = problem.field.partition(".")[0]
        keys = self.keys.by_name
        key = (
            self.keys.by_field.get(top)
            or keys.get(top.removeprefix("--"))
            or (keys["path"] if top in ("PATH", "code") else None)
        )
        if not problem.field:
            return Problem(field=str(self.path), message=respell(problem, self.keys.names).message)
        if key is None or key.field not in fields:
            return respell(problem, self.keys.spelled)
        within = problem.field.removeprefix(top) if key.type == "parameters" else ""
        place = place_of(self.path, self.lines[key.field], f"{key.name}{within}")
        return Problem(field=place, message=respell(problem, self.keys.names).message)


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def read_file(path: Path, keys: FileKeys) -> JobFile:
    """Return what a file of these keys says.

    Raises:
        InvalidInput: with all keys that are none, and all values that are not what their key takes.
    """
    document, typed = read_document(path), dict[str, Any]()
    folder = path.expanduser().absolute().parent
    for name, node in document.nodes.items():
        line = document.lines[name]
        key = keys.by_name.get(name)
        if key is None:
            document.refuse(line, _unknown(name, keys))
            continue
        try:
            typed[key.field] = _placed(key, value_of(node, key.type), folder)
        except WrongValueError as error:
            document.refuse(line, str(error), name)
    if document.problems:
        raise SpelledInput(*document.problems)
    typed.setdefault("path", str(folder))
    lines = {keys.by_name[name].field: line for name, line in document.lines.items()}
    return JobFile(path=path, typed=typed, lines=lines, keys=keys)


def _unknown(name: str, keys: FileKeys) -> str:
    said = f"there is no key {name!r:.80}"
    names = {field.replace("_", "-"): key for field, key in keys.names.items()} | {key: key for key in keys.by_name}
    near = near_name(name.replace("_", "-"), [*names])
    return (
        f"{said}; is {names[near]!r} meant?"
        if near
        else f"{said}; keys are the options of `pliant {keys.command} --help`"
    )


def _placed(key: Key, value: Any, folder: Path) -> Any:
    if key.field == "path":
        return beside(value, folder)
    place = None if key.option is None else key.option.wording.place
    return value if place is None else place(value, folder)


def write_file(path: Path, typed: Mapping[str, Any], keys: FileKeys) -> tuple[str, ...]:
    """Write what was typed for a command into a new file, without secrets; return notes of what is not in it.

    Raises:
        InvalidInput: the file is there already, or cannot be written, or its name does not end as one's of a job file.
    """
    if path.suffix not in FILE_SUFFIXES:
        raise InvalidInput.at("--save", f"{str(path)!r} does not end in {', '.join(FILE_SUFFIXES)}; give such a name")
    said, notes = _without_secrets(typed, keys)
    content = {key.name: _written(key, said[key.field], path) for key in keys.by_name.values() if key.field in said}
    if path.suffix == ".json":
        text = json.dumps(content, indent=2) + "\n"
    else:
        text = keys.head + yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InvalidInput.at("--save", f"{str(path)!r} is there already; give another name, or remove it") from error
    except OSError as error:
        raise InvalidInput.at("--save", f"{str(path)!r} cannot be written ({error.strerror})") from error
    return notes


def _without_secrets(typed: Mapping[str, Any], keys: FileKeys) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return what may be written: of variables that are secrets the names, and no webhook, whose address may be one."""
    said = {
        field: value
        for field, value in typed.items()
        if value not in (None, [], {}) and not _is_default(keys, field, value)
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


def _is_default(keys: FileKeys, field: str, value: object) -> bool:
    option = keys.by_field[field].option if field in keys.by_field else None
    return option is not None and bool(option.parameter.default == value)


def _written(key: Key, value: Any, file: Path) -> Any:
    """Return a value as it stands in a file: the code by its place seen from there, if it lies below."""
    if key.type == "parameters":
        pairs = (text.partition("=") for text in value)
        return {name: json.loads(body) if body.startswith("{") else body for name, _, body in pairs}
    placed = _placed(key, value, Path.cwd())
    folder = file.expanduser().absolute().parent
    if key.field not in ("path", "requirements") or not Path(placed).is_relative_to(folder):
        return placed
    return os.path.relpath(placed, folder)
