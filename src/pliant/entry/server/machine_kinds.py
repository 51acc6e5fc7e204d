"""The kinds of machines that Ray's autoscaler may be asked for, as options give them.

    --ray-machines 0..8                                             one kind, without a name
    --ray-machines cpu=0..20 --ray-machines gpu=0..8,slots=8,gpus=8,idle=10m,label=gpu=a100

What is not said of a kind is as `--ray-slots` and `--ray-idle` say. Machines of a named kind carry the label `kind`.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pliant.core.duration import seconds_of
from pliant.core.errors import InvalidInput, Problem
from pliant.core.joining import MAX_SLOTS
from pliant.entry.labels import label_problems, read_labels
from pliant.policy.autoscale.machines import MachineKind

DEFAULT_IDLE: Final = "5m"
MAX_MACHINES: Final = 1000
KIND_LABEL: Final = "kind"
_IDLE_S: Final = (1.0, 30 * 86_400.0)
_FORM: Final = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9_-]{0,29})=)?([0-9]{1,6})\.\.([0-9]{1,6})(?:,(.*))?", re.DOTALL)
_FIELD: Final = "--ray-machines"
_NUMBERS: Final = {"slots": 1, "gpus": 0, "cpus": 0}
"""What is said of a machine in numbers, and the least that each may be."""


def add_machine_kinds(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    machines_help = (
        "ask Ray's autoscaler for so many machines, as jobs need them; more than once for several kinds, those first "
        "that are asked for first, such as gpu=0..8,slots=8,gpus=8,cpus=96,idle=10m,label=gpu=a100; left out: for none"
    )
    metavar = "[NAME=]MIN..MAX[,…]"
    parser.add_argument(_FIELD, action="append", default=[], metavar=metavar, help=machines_help)
    slots_help = "slots of a new one; left out: one is asked for, to see"
    parser.add_argument("--ray-slots", type=int, metavar="N", help=slots_help)
    idle_help = f"give one back that has had no task for so long, such as 90s or 10m ({DEFAULT_IDLE})"
    parser.add_argument("--ray-idle", metavar="TIME", help=idle_help)


def machine_kinds(given: argparse.Namespace) -> tuple[MachineKind, ...]:
    """Return the kinds that the options say.

    Raises:
        InvalidInput: an option says nothing that can be understood.
    """
    idle_s = _idle_s(given.ray_idle or DEFAULT_IDLE, "--ray-idle")
    return tuple(_kind(text, given.ray_slots or 0, idle_s) for text in given.ray_machines)


def machine_kind_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the options, but for the cluster that they need."""
    if not given.ray_machines:
        for name, value in (("--ray-slots", given.ray_slots), ("--ray-idle", given.ray_idle)):
            if value is not None:
                yield Problem(field=name, message="it is for machines of Ray's autoscaler; give --ray-machines as well")
        return
    if given.ray_slots is not None and not 1 <= given.ray_slots <= MAX_SLOTS:
        yield Problem(field="--ray-slots", message=f"{given.ray_slots} is out of range; give 1 to {MAX_SLOTS}")
    try:
        _idle_s(given.ray_idle or DEFAULT_IDLE, "--ray-idle")
    except InvalidInput as error:
        yield from error.problems
    names = []
    for text in given.ray_machines:
        try:
            names.append(_kind(text, 0, 0.0).name)
        except InvalidInput as error:
            yield from error.problems
    for name in sorted({name for name in names if names.count(name) > 1}):
        message = f"{f'{name!r} is given twice' if name else 'two kinds have no name'}; give each a name of its own"
        yield Problem(field=_FIELD, message=message)


def _kind(text: str, num_slots: int, idle_s: float) -> MachineKind:
    """Return a kind; `num_slots` and `idle_s` are those of kinds that say none."""
    found = _FORM.fullmatch(text)
    if found is None or not int(found[2]) <= int(found[3]) <= MAX_MACHINES:
        message = (
            f"{text!r:.80} says no numbers of machines; give the least and the most, such as 0..8 or gpu=0..8, "
            f"{MAX_MACHINES} at most"
        )
        raise InvalidInput.at(_FIELD, message)
    pairs = [word.partition("=")[::2] for word in found[4].split(",")] if found[4] is not None else []
    labels = [value for name, value in pairs if name == "label"]
    others = [(name, value) for name, value in pairs if name != "label"]
    problems = [*_problems(others), *label_problems(labels)]
    if problems:
        raise InvalidInput(*(replace(one, field=_FIELD, message=f"{text!r:.80}: {one.message}") for one in problems))
    said = dict(others)
    name = found[1] or ""
    return MachineKind(
        name=name,
        least=int(found[2]),
        most=int(found[3]),
        idle_s=_idle_s(said["idle"], _FIELD) if "idle" in said else idle_s,
        num_slots=int(said.get("slots", num_slots)),
        labels=({KIND_LABEL: name} if name else {}) | read_labels(labels),
        num_gpus=int(said.get("gpus", 0)),
        num_cpus=int(said.get("cpus", 0)),
    )


def _problems(said: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    """Yield what is wrong with what is said of a kind, but for its labels; how long its idle time is comes later."""
    for name, value in said:
        if name in _NUMBERS:
            least = _NUMBERS[name]
            if not (re.fullmatch("[0-9]{1,6}", value) and least <= int(value) <= MAX_SLOTS):
                message = f"{name}={value!r:.40} is out of range; give {least} to {MAX_SLOTS}"
                yield Problem(field=_FIELD, message=message)
        elif name != "idle":
            known = "slots=N, gpus=N, cpus=N, idle=TIME or label=NAME=VALUE"
            yield Problem(field=_FIELD, message=f"{name!r:.40} is not known of machines; give {known}")
    if len(dict(said)) < len(said):
        yield Problem(field=_FIELD, message="something is given twice; give it once")


def _idle_s(text: str, field: str) -> float:
    """Return how long a machine has no task before it is let go.

    Raises:
        InvalidInput: it is no length of time, or out of range; names the field.
    """
    seconds = seconds_of(text, field)
    least, most = _IDLE_S
    if not least <= seconds <= most:
        raise InvalidInput.at(field, f"{text!r:.80} is out of range; give 1s to 30d")
    return seconds
