"""Options and arguments that several commands share, so that they read alike everywhere; what those of a job say."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pliant.cli.completion import complete, complete_states
from pliant.cli.fields import Table, Wording, ask
from pliant.core.duration import seconds_of
from pliant.core.errors import InvalidInput, Problem
from pliant.core.lifecycle import STATE_WORDS
from pliant.core.size import num_bytes_of

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB", help="Id (job-3), number (3) or unique name.", autocompletion=complete("job"), show_default=False
    ),
]
JobOrArrayArgument = Annotated[
    str,
    typer.Argument(
        metavar="JOB|ARRAY",
        help="Id (job-3, array-1), number (3) or unique name.",
        autocompletion=complete("job or array"),
        show_default=False,
    ),
]
OptionalJobArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="JOB", help="Only this job: id, number or name.", autocompletion=complete("job"), show_default=False
    ),
]
AfterOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JOB|ARRAY",
        help="Start when this has completed; repeatable.",
        autocompletion=complete("job or array"),
        show_default=False,
    ),
]
AfterAnyOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JOB|ARRAY",
        help="Start when this has ended, however; repeatable.",
        autocompletion=complete("job or array"),
        show_default=False,
    ),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="NAME[=VALUE]",
        help="Give it this tag, or this value of it; repeatable.",
        autocompletion=complete("tag"),
        show_default=False,
    ),
]
UntagOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Take this tag away; repeatable.", autocompletion=complete("tag name"), show_default=False
    ),
]
StateFilter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STATE",
        help=f"Only in this state: {', '.join(STATE_WORDS)}. Several: with commas, or repeated.",
        autocompletion=complete_states,
        show_default=False,
    ),
]
OwnerFilter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="USER",
        help="Only jobs of this user, or of several.",
        autocompletion=complete("job owner"),
        show_default=False,
    ),
]
QueueFilter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", help="Only in this queue, or several.", autocompletion=complete("queue"), show_default=False
    ),
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[=VALUE]",
        help="Only with this tag; of several names with all, of several values of a name with one.",
        autocompletion=complete("tag"),
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Print its output until it has ended.")]
ArgsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ARGS", help="What comes after -- is passed to the script.", show_default=False),
]
WaitOption = Annotated[bool, typer.Option("--wait", help="Return when it has ended; code 1 unless it completed.")]


def name_argument(kind: str, text: str = "", *, metavar: str = "NAME") -> Any:
    """Return an argument that names something of a kind that the shell can complete."""
    return typer.Argument(metavar=metavar, help=text or None, autocompletion=complete(kind), show_default=False)


def option(text: str, *names: str, metavar: str = "TEXT") -> Any:
    """Return an option that shows no default."""
    return typer.Option(*names, help=text, metavar=metavar, show_default=False)


def leave_out_none(given: Mapping[str, object]) -> dict[str, object]:
    """Return what was given; an option that was left out is None."""
    return {name: value for name, value in given.items() if value is not None}


def whole_path(given: str | None) -> str | None:
    """Return the path seen from the root, links kept: a virtual environment's Python is one."""
    return None if given is None else os.path.abspath(os.path.expanduser(given))


def beside(text: str, folder: Path) -> str:
    """Return a path that was given in a folder's file as one from the root."""
    return os.path.abspath(folder / os.path.expanduser(text))


def names_file(text: str, folder: Path) -> bool:
    """Tell whether what says where a training starts is a path, and not a job."""
    return os.sep in text or text.endswith(".pt") or (folder / text).is_file()


def names_folder(environment: str) -> bool:
    """Tell whether what says in which environment a job runs is a path."""
    return ":" not in environment and environment.startswith(("~", ".", os.sep))


def _weights_beside(text: str, folder: Path) -> str:
    return beside(text, folder) if names_file(text, folder) else text


def _environment_beside(text: str, folder: Path) -> str:
    return beside(text, folder) if names_folder(text) else text


def variables_of(given: Sequence[str]) -> dict[str, str]:
    """Return environment variables given as NAME=VALUE, or as NAME: then with the value that it has here.

    So a key stands neither in the list of processes nor in the history of a shell.

    Raises:
        InvalidInput: some have no `=` and no value here.
    """
    wrong = [pair for pair in given if "=" not in pair and pair not in os.environ]
    if wrong:
        message = "has no '=' and is not set here; give it as NAME=VALUE, or export it and give its NAME"
        raise InvalidInput(*(Problem(field="--env", message=f"{pair!r} {message}") for pair in wrong))
    split = (pair.partition("=") for pair in given)
    return {name: value if equals else os.environ[name] for name, equals, value in split}


def given_tags(given: Sequence[str]) -> dict[str, str]:
    """Return tags given as NAME or NAME=VALUE.

    Raises:
        InvalidInput: a name is given twice.
    """
    tags: dict[str, str] = {}
    for text in given:
        name, _, value = text.partition("=")
        if tags.setdefault(name, value) != value:
            message = f"{name!r} is given as {tags[name]!r} and as {value!r}; a tag has one value"
            raise InvalidInput.at("--tag", message)
    return tags


def _limit(text: str, *, read: Callable[[str, str], float], option: str, off: float | None) -> float | None:
    """Return the limit that a text says.

    Raises:
        InvalidInput: it says none.
    """
    if text.strip().lower() == "off":
        return off
    try:
        return read(text, option)
    except InvalidInput as error:
        raise InvalidInput.at(option, f"{error.problems[0].message}, or off") from error


def ask_time(text: str, option: str) -> Wording:
    """Return how a field of seconds is asked for."""
    return ask(text, option, metavar="TIME", type=str, read=partial(seconds_of, field=option))


def ask_limit(text: str, option: str, metavar: str, read: Any, *, off: float | None = None) -> Wording:
    """Return how a field is asked for that `off` stands for, too, or that need not have a value."""
    return ask(text, option, metavar=metavar, type=str, read=partial(_limit, read=read, option=option, off=off))


JOB: Final[Table] = {
    "script": ask("The file to run, relative to PATH, if it is not clear."),
    "args": None,
    "name": ask("For people; default: the script's name."),
    "max_tasks": ask("Grow up to this many tasks.", "--max"),
    "min_tasks": ask("Start with, and pause below, this many tasks.", "--min"),
    "priority": ask("1 to 10000; twice the priority gets twice the slots."),
    "queue": ask("Where it waits; `pliant queues` lists them.", metavar="NAME"),
    "tags": ask(
        "To find it again: a name, or with a value. Repeatable.",
        "--tag",
        metavar="NAME[=VALUE]",
        type=list[str],
        read=given_tags,
    ),
    "after": ask("Start when this has completed; repeatable.", metavar="JOB|ARRAY", type=list[str]),
    "after_any": ask("Start when this has ended, however; repeatable.", metavar="JOB|ARRAY", type=list[str]),
    "slots_per_task": ask("GPUs (or CPU slots) that every task holds."),
    "virtual_workers": ask("Parts of the batch; default: by --max and its size."),
    "balance": ask("Parts of each task: even; or speed: faster tasks compute more."),
    "python": ask("Another Python interpreter, with Pliant installed.", read=whole_path, place=beside),
    "environment": ask(
        "Run in this: a name, a path, or conda:NAME.", metavar="NAME|DIR|conda:NAME", place=_environment_beside
    ),
    "requirements": ask("Run with these; the server builds it once.", metavar="FILE", type=str, place=beside),
    "env": ask(
        "Environment variable; K alone: its value here. Repeatable.", metavar="K[=V]", type=list[str], read=variables_of
    ),
    "data_dir": ask("A folder of the server's, given as DATA_DIR.", metavar="DIR", read=whole_path, place=beside),
    "dataset": ask("A data set, given as DATA_DIR and kin.", metavar="NAME"),
    "mode": ask("exact: the same bits for any number of workers; fast: stock sums."),
    "weights": ask(
        "Start from these weights: a state_dict's path, or a job.", metavar="PATH|JOB", place=_weights_beside
    ),
    "resume_from": ask("Start from a job's newest checkpoint.", metavar="JOB"),
    "checkpoint_freq": ask("Epochs between checkpoints; 0: only when paused."),
    "checkpoint_every_s": ask(
        "Seconds between them inside an epoch; 0: none.", "--checkpoint-every", metavar="SECONDS"
    ),
    "fixed": ask("A torchrun-style script of N processes; never resized.", metavar="N", type=int),
    "max_restarts": ask("With --fixed: start again so often after a failure; default: 3.", metavar="N", type=int),
    "memory_bytes": ask_limit(
        "End a task that uses more memory, such as 4GB; or off.", "--memory", "SIZE", num_bytes_of
    ),
    "time_limit_s": ask_limit(
        "Stop it when it has held slots for so long, such as 8h; or off.", "--time-limit", "TIME", seconds_of
    ),
    "start_timeout_s": ask_time("Fail if it has not built its Run after so long; default: 10m.", "--start-timeout"),
    "stall_after_s": ask_limit(
        "Without a step for so long it is stuck; off: never.", "--stall-after", "TIME", seconds_of, off=0.0
    ),
    "on_stall": ask("What becomes of it then: say so; replace what is stuck; or end."),
    "metrics_every": ask("Record every N-th step as it is; default: means, four times a second.", metavar="N"),
    "histograms_every": ask("Log histograms of weights and gradients every N steps; default: none.", metavar="N"),
    "tracking": ask(
        "Log to W&B and MLflow if its variables name them; or leave that to the script.",
        "--tracking/--no-tracking",
    ),
    "audit": ask("Record which samples every step used."),
}
"""How `submit` asks for the fields of a training."""

NOTICE: Final[Table] = {
    "webhook": ask("POST a JSON document there when it is over.", metavar="URL", variable="PLIANT_WEBHOOK"),
    "webhook_secret": None,
    "mail": ask("Send an e-mail when it is over.", metavar="ADDRESS", variable="PLIANT_MAIL"),
    "notify_on": ask("When to send them: whenever it is over, or only if it has failed."),
}
"""How it asks who is sent a message at the end; no secret is given on a command line."""
