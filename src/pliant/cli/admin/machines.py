"""The commands `machines …`: what each is and does, who sits where; drain, exclude, label and remove it."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from pliant.api.machines import LabelsRequest, MachineFactsView, MachineSlot, MachineView
from pliant.cli import formatting
from pliant.cli.admin.join_tokens import list_tokens, make_token, revoke_token
from pliant.cli.options import JsonOption, name_argument, option
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, print_json, print_outcome, say, show, show_list, table
from pliant.cli.session import open_client
from pliant.core.errors import InvalidInput, Problem
from pliant.core.machine import DeviceFacts

machines = typer.Typer(
    name="machines",
    invoke_without_command=True,
    rich_markup_mode=None,
)

MachineArgument = Annotated[str, name_argument("machine")]
SlotsOption = Annotated[
    str | None, option("Slots, such as 3 or 0,4-7; left out: the whole machine.", "--slots", metavar="NUMBERS")
]
_MAX_SLOTS: Final = 4096
_COLUMNS: Final = (
    TableColumn(title="MACHINE"),
    TableColumn(title="STATE"),
    TableColumn(title="TAKEN", right=True),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="HARDWARE", cut=True),
    TableColumn(title="LOAD", right=True),
    TableColumn(title="MEMORY", right=True),
    TableColumn(title="GPU", right=True),
    TableColumn(title="HOTTEST", right=True, optional=True),
    TableColumn(title="FILES", optional=True),
    TableColumn(title="LABELS", cut=True, optional=True),
    TableColumn(title="JOBS", cut=True),
)
_SLOT_COLUMNS: Final = (
    TableColumn(title="SLOT", right=True),
    TableColumn(title="DEVICE", cut=True),
    TableColumn(title="MEMORY", right=True),
    TableColumn(title="BUSY", right=True),
    TableColumn(title="TEMPERATURE", right=True, optional=True),
    TableColumn(title="JOB", cut=True),
    TableColumn(title="EXCLUDED", wrap=True),
)


@machines.callback()
def list_machines(context: typer.Context, as_json: JsonOption = False) -> None:
    """Machines: who sits where; let them join, drain, label them.

    \b
    pliant machines                         what they are and do, and the jobs there
    pliant machines token                   let another machine join: what to type there
    pliant machines drain gpu3              empty one for maintenance
    pliant machines label gpu3 rack=7       groups choose machines by labels

    Alone it lists them. `pliant nodes` is the same.
    """
    if context.invoked_subcommand is None:
        list_all(context, as_json)


@machines.command("list")
def list_all(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the machines, and the jobs there that you see."""
    with open_client(context) as client:
        page = client.machines.page()
    show_list(page, _COLUMNS, map(_row, page.machines), as_json=as_json)
    if not as_json:
        for sentence in (sentence for view in page.machines for sentence in _exclusions(view)):
            say(sentence)


@machines.command("show")
def show_machine(context: typer.Context, name: MachineArgument, as_json: JsonOption = False) -> None:
    """Show a machine, slot by slot."""
    with open_client(context) as client:
        view = client.machines.get(name)
    if as_json:
        print_json(view)
        return
    show(table(_COLUMNS, [_row(view)]))
    if view.files == "copied":
        say("it does not see the server's state folder: files are copied there and back")
    if view.facts is not None:
        say(f"as it was {formatting.duration(view.facts.age_s)} ago")
        if view.facts.trouble:
            say(view.facts.trouble)
    if view.slots:
        show(table(_SLOT_COLUMNS, list(_slot_rows(view))))


@machines.command("drain")
def drain(context: typer.Context, name: MachineArgument, as_json: JsonOption = False) -> None:
    """Let tasks leave a machine, and start none there, for maintenance.

    Elastic jobs leave at their next step boundary; fixed jobs stay until they end.
    """
    with open_client(context) as client:
        _print(client.machines.drain(name), as_json=as_json)


@machines.command("undrain", hidden=True)
@machines.command("return")
def put_back(context: typer.Context, name: MachineArgument, as_json: JsonOption = False) -> None:
    """Let tasks be started on a machine again."""
    with open_client(context) as client:
        _print(client.machines.put_back(name), as_json=as_json)


@machines.command("exclude")
def exclude(
    context: typer.Context,
    name: MachineArgument,
    because: Annotated[str, option("Why, in one line; jobs that lack slots are told.", "--because")],
    slots: SlotsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take slots, or a whole machine, out of use: a GPU that cannot be trusted.

    Jobs leave them as they leave a machine that is drained; groups and queues count them no longer.
    """
    with open_client(context) as client:
        _print(client.machines.exclude(name, because, _numbers(slots)), as_json=as_json)


@machines.command("include")
def include(
    context: typer.Context, name: MachineArgument, slots: SlotsOption = None, as_json: JsonOption = False
) -> None:
    """Let tasks be started again on slots, or on all of a machine."""
    with open_client(context) as client:
        _print(client.machines.include(name, _numbers(slots)), as_json=as_json)


@machines.command("label")
def label(
    context: typer.Context,
    name: MachineArgument,
    labels: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="NAME= takes a label away.", show_default=False),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Take away all labels that people gave it, before these.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Give a machine labels, by which groups choose, or take some away.

    \b
    pliant machines label gpu3 rack=7 zone=b
    pliant machines label gpu3 zone=
    pliant machines label gpu3 --clear        it carries what its agent declares, again

    They lie over those that its agent declares, and are kept until they are taken away.
    """
    given = _labels(labels or [])
    if not given and not clear:
        raise InvalidInput.at("NAME=VALUE", "no label is given, such as rack=7; --clear takes all of them away")
    with open_client(context) as client:
        before = {} if clear else client.machines.get(name).given_labels
        request = validate(LabelsRequest, {"labels": {**before, **given}})
        _print(client.machines.label(name, request.labels), as_json=as_json)


def _labels(texts: list[str]) -> dict[str, str]:
    """Return labels by name.

    Raises:
        InvalidInput: with everything that is wrong.
    """
    problems = [
        Problem(field="NAME=VALUE", message=f"{text!r:.60} is no label; give it as NAME=VALUE, such as rack=7")
        for text in texts
        if not text.partition("=")[0] or "=" not in text
    ]
    if problems:
        raise InvalidInput(*problems)
    return dict(text.split("=", 1) for text in texts)


@machines.command("remove")
def remove(context: typer.Context, name: MachineArgument, as_json: JsonOption = False) -> None:
    """Forget a machine that has joined; it must be away or drained.

    What is out of use of it, and its labels, are forgotten, too. To come back it joins again, with a new token.
    """
    with open_client(context) as client:
        client.machines.remove(name)
    print_outcome({"name": name, "removed": True}, f"{name} is in the pool no more.", as_json=as_json)


machines.command("token")(make_token)
machines.command("tokens")(list_tokens)
machines.command("revoke")(revoke_token)


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """Return the slots that `0,4-7` names; None if nothing is given.

    Raises:
        InvalidInput: it names none.
    """
    if text is None:
        return None
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        ends = (first, last if dash else first)
        if not all(end.isdecimal() and int(end) < _MAX_SLOTS for end in ends) or int(ends[0]) > int(ends[1]):
            raise InvalidInput.at("--slots", f"{part.strip()!r:.40} names no slots; give numbers such as 3 or 0,4-7")
        found |= set(range(int(ends[0]), int(ends[1]) + 1))
    return tuple(sorted(found))


def _print(view: MachineView, *, as_json: bool) -> None:
    show_list(view, _COLUMNS, [_row(view)], as_json=as_json)
    if not as_json:
        for sentence in _exclusions(view):
            say(sentence)


def _row(view: MachineView) -> list[str]:
    jobs = dict.fromkeys(slot.job_id for slot in view.slots if slot.job_id is not None)
    return [
        view.name,
        view.state,
        str(view.num_taken),
        str(sum(slot.taken or slot.excluded is None for slot in view.slots)),
        _hardware(view),
        *_now(view.facts),
        view.files,
        ", ".join(f"{name}={value}" for name, value in view.labels.items()) or formatting.NOTHING,
        ", ".join(jobs) or formatting.NOTHING,
    ]


def _hardware(view: MachineView) -> str:
    """Return what a machine has: `8 × NVIDIA H200`, or its processors."""
    devices = () if view.facts is None else view.facts.devices
    models = dict.fromkeys(device.model for device in devices)
    if models:
        return ", ".join(f"{sum(device.model == model for device in devices)} × {model}" for model in models)
    if view.num_gpus:
        return formatting.count_of(view.num_gpus, "GPU")
    return formatting.count_of(view.num_cpus, "CPU")


def _now(facts: MachineFactsView | None) -> Iterator[str]:
    """Yield load, memory, GPU and temperature."""
    if facts is None:
        yield from (formatting.NOTHING,) * 4
        return
    yield formatting.NOTHING if facts.load is None else f"{facts.load:.1f}"
    yield _memory(facts.memory_used_bytes, facts.memory_bytes)
    busy = [device.utilisation for device in facts.devices if device.utilisation is not None]
    yield f"{100 * sum(busy) / len(busy):.0f}%" if busy else formatting.NOTHING
    yield _celsius(max((one.temperature_c for one in facts.devices if one.temperature_c is not None), default=None))


def _memory(used: int | None, total: int | None) -> str:
    if used is None or total is None:
        return formatting.NOTHING
    return f"{formatting.size(used)} of {formatting.size(total)}"


def _celsius(degrees: float | None) -> str:
    return formatting.NOTHING if degrees is None else f"{degrees:.0f} °C"


def _slot_rows(view: MachineView) -> Iterator[list[str]]:
    devices = {} if view.facts is None else {device.slot: device for device in view.facts.devices}
    for slot in view.slots:
        device = devices.get(slot.slot, DeviceFacts(slot=slot.slot, model=formatting.NOTHING))
        yield [
            str(slot.slot),
            device.model,
            _memory(device.memory_used_bytes, device.memory_bytes),
            formatting.NOTHING if device.utilisation is None else f"{100 * device.utilisation:.0f}%",
            _celsius(device.temperature_c),
            _holder(slot),
            formatting.NOTHING if slot.excluded is None else f"{slot.excluded.because} ({slot.excluded.by})",
        ]


def _holder(slot: MachineSlot) -> str:
    if slot.holders:
        return ", ".join(f"{holder.job_id} {holder.job_name}" for holder in slot.holders)
    return "somebody's" if slot.taken else formatting.NOTHING


def _exclusions(view: MachineView) -> Iterator[str]:
    """Yield what of a machine is excluded, by whom, since when and why."""
    whole = view.excluded
    found = {view.name: whole} if whole else {f"slot {one.slot} of {view.name}": one.excluded for one in view.slots}
    for what, one in found.items():
        if one is not None:
            yield f"{what} was excluded by {one.by}, {formatting.date_time(one.at)}: {one.because}"
