"""Options made from the fields of a noun, so that a field that is added to the noun is an option of its commands.

    @app.command("add")
    @takes(options_of(QueueSettings, QUEUE, but=("name",)))
    def add_queue(context: typer.Context, name: NameArgument, given: Given) -> None: ...

Each option has its field's name, type and default. A table says what is to read otherwise on the command line; a field
that it does not name gets the first sentence of its description. What was given arrives as `given`, by field; bounds
are checked where the request is made, as for everybody.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass
from enum import Enum, EnumType
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from pliant.api.derive import Settable, settable
from pliant.cli.completion import complete_choice, complete_field

Given = dict[str, Any]
"""What was given on the command line, by the names of the fields."""
Command = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How a field is asked for on the command line; what is left open follows from the field."""

    help: str = ""
    names: tuple[str, ...] = ()
    metavar: str = ""
    type: Any = None
    """What is typed, where that is not the field's value itself; the option has no default then."""
    read: Callable[[Any], Any] | None = None
    """Makes the field's value of what was typed."""
    variable: str = ""
    """A variable of the environment that gives it, where the option does not."""
    place: Callable[[str, Path], str] | None = None
    """Makes what stands in a file of some folder what would be typed: a path is one from there."""


Table = Mapping[str, Wording | None]
"""Wordings by field, in the order of the help page; fields that are not named come after them, None has no option.

A name that is no field is an option that the command reads by itself.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOption:
    """An option for typer."""

    parameter: inspect.Parameter
    name: str
    """As it is typed: `--max`."""
    type: Any
    """Of what is typed."""
    wording: Wording

    @property
    def help(self) -> str:
        """What it does."""
        return str(self.parameter.annotation.__metadata__[0].help)


def ask(
    text: str,
    *names: str,
    metavar: str = "",
    type: Any = None,
    read: Callable[[Any], Any] | None = None,
    variable: str = "",
    place: Callable[[str, Path], str] | None = None,
) -> Wording:
    """Return how a field is asked for."""
    return Wording(help=text, names=names, metavar=metavar, type=type, read=read, variable=variable, place=place)


def options_of(
    noun: type, table: Table, *, but: Collection[str] = (), defaults: bool = False
) -> dict[str, FieldOption]:
    """Return the options for the fields of a noun.

    Args:
        noun: a dataclass.
        table: how its fields are asked for.
        but: these have no option.
        defaults: what is left out is given as the noun's default, which the help page shows; else it is not given.
    """
    fields = {one.name: one for one in settable(noun)}
    names = [name for name in (*table, *(name for name in fields if name not in table)) if name not in but]
    return {
        name: _option(name, wording, fields.get(name), defaults=defaults)
        for name in names
        if (wording := table.get(name, Wording())) is not None
    }


def read_typed(options: Mapping[str, FieldOption], typed: Given) -> Given:
    """Return the values of fields for what was typed for their options; what was left out is not among them.

    Raises:
        InvalidInput: something that was typed is none.
    """
    given: Given = {}
    for name, option in options.items():
        if (value := typed.get(name)) is not None:
            given[name] = value if option.wording.read is None else option.wording.read(value)
    return given


def takes(options: Mapping[str, FieldOption], *, as_typed: bool = False) -> Callable[[Command], Command]:
    """Give a command these options in the place of its parameter `given`.

    Args:
        options: by name.
        as_typed: `given` has what was typed, which the command itself reads.
    """

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name == "given":
                parameters += (option.parameter.replace(kind=parameter.kind) for option in options.values())
            else:
                parameters.append(parameter)

        @functools.wraps(command)
        def run(**values: Any) -> None:
            typed = {name: values.pop(name) for name in options}
            command(**values, given=typed if as_typed else read_typed(options, typed))

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorate


def _option(name: str, wording: Wording, field: Settable | None, *, defaults: bool) -> FieldOption:
    kind, metavar = (wording.type, "TEXT") if field is None or wording.type is not None else _type_of(field)
    named_by_type = kind is bool or any(isinstance(one, EnumType) for one in (kind, *get_args(kind)))
    default = None
    if defaults and field is not None and wording.type is None and field.field.default is not MISSING:
        default = field.field.default
    usual = _usual_name(name)
    if kind is bool and default is None:
        usual = f"{usual}/--no-{usual.removeprefix('--')}"
    names = wording.names or (usual,)
    info = typer.Option(
        *names,
        help=wording.help or (field.doc.partition(". ")[0] if field is not None else ""),
        metavar=None if named_by_type else wording.metavar or metavar,
        autocompletion=complete_choice(metavar.split("|")) if "|" in metavar else complete_field(name),
        envvar=wording.variable or None,
    )
    typed: Any = kind if default is not None else kind | None
    parameter = inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=Annotated[typed, info]
    )
    return FieldOption(parameter=parameter, name=names[0].partition("/")[0], type=kind, wording=wording)


def _type_of(field: Settable) -> tuple[Any, str]:
    """Return the type that is typed for a field, and what stands for it in the help page."""
    kind = field.type
    if get_origin(kind) is Literal:
        return str, "|".join(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return str, "|".join(one.value for one in kind)
    if kind in (bool, str):
        return kind, "TEXT"
    if kind in (int, float):
        return kind, "N"
    if get_origin(kind) is tuple:
        return list[str], "TEXT"
    raise TypeError(f"{field.name}: say in the table what is typed for a {kind}")


def _usual_name(field: str) -> str:
    return f"--{field.replace('_', '-')}"
