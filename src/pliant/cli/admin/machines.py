"""The commands `machines …`: who sits where; drain one, and return it."""

from typing import Annotated

import typer

from pliant.api.machines import MachinePage, MachineView
from pliant.cli import formatting
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.screen import TableColumn, show_list
from pliant.cli.session import open_client

machines = typer.Typer(
    name="machines",
    help="Machines: who sits where; drain one, return it.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

MachineArgument = Annotated[str, name_argument("machine")]
_COLUMNS = (
    TableColumn(title="MACHINE"),
    TableColumn(title="STATE"),
    TableColumn(title="TAKEN", right=True),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="GPUS", right=True),
    TableColumn(title="LABELS", cut=True),
    TableColumn(title="JOBS", cut=True),
)


@machines.callback()
def list_machines(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the machines: their slots, how many are taken, and the jobs there that you see."""
    if context.invoked_subcommand is not None:
        return
    with open_client(context) as client:
        found = client.machines.list()
    show_list(MachinePage(machines=found), _COLUMNS, map(_row, found), as_json=as_json)


@machines.command("drain")
def drain(context: typer.Context, name: MachineArgument, as_json: JsonOption = False) -> None:
    """Let tasks leave a machine, and start none there.

    Elastic jobs leave at their next step boundary; fixed jobs stay until they end.
    """
    with open_client(context) as client:
        _print(client.machines.drain(name), as_json=as_json)


@machines.command("return")
def put_back(context: typer.Context, name: MachineArgument, as_json: JsonOption = False) -> None:
    """Let tasks be started on a machine again."""
    with open_client(context) as client:
        _print(client.machines.put_back(name), as_json=as_json)


def _print(view: MachineView, *, as_json: bool) -> None:
    show_list(view, _COLUMNS, [_row(view)], as_json=as_json)


def _row(view: MachineView) -> list[str]:
    jobs = dict.fromkeys(slot.job_id for slot in view.slots if slot.job_id is not None)
    return [
        view.name,
        view.state,
        str(view.num_taken),
        str(len(view.slots)),
        str(view.num_gpus),
        ", ".join(f"{name}={value}" for name, value in view.labels.items()) or formatting.NOTHING,
        ", ".join(jobs) or formatting.NOTHING,
    ]
