"""The commands `queues …` and `groups …`: where jobs wait, and for which slots."""

from typing import Annotated, Final

import typer

from pliant.api.queues import (
    GroupPage,
    GroupPatch,
    GroupRequest,
    GroupView,
    QueuePage,
    QueuePatch,
    QueueRequest,
    QueueView,
)
from pliant.cli import formatting
from pliant.cli.fields import Given, ask, options_of, takes
from pliant.cli.options import JsonOption, name_argument
from pliant.cli.problems import validate
from pliant.cli.screen import TableColumn, say, say_notes, show_list
from pliant.cli.session import open_client
from pliant.core.errors import InvalidInput, Problem
from pliant.core.queue import GroupSettings, Hosts, QueueSettings

queues = typer.Typer(
    name="queues",
    help="Queues: where jobs wait, and how they share.",
    invoke_without_command=True,
    rich_markup_mode=None,
)
groups = typer.Typer(
    name="groups",
    help="Resource groups: named sets of slots.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

QueueArgument = Annotated[str, name_argument("queue")]
GroupArgument = Annotated[str, name_argument("group")]
_QUEUE: Final = {
    "resource_group": ask("Its resource group.", "--group", metavar="NAME"),
    "policy": ask("How its jobs share."),
    "preemption": ask("Whether its jobs can be shrunk and paused."),
    "weight": ask("Its share of slots that queues overlap on."),
    "default_environment": ask("Of jobs that name none; `set`: '' for none.", "--env", metavar="NAME"),
    "run_as": ask("The system user that its jobs run as; `set`: '' for the server's.", metavar="USER"),
    "max_tasks_per_job": ask("Tasks that a job may have.", "--max-tasks"),
    "open": ask("Whether it takes new jobs.", "--open/--closed"),
    "description": ask("For people."),
}
_GROUP: Final = {
    "host": ask("One of its hosts; repeatable.", metavar="NAME", type=list[str]),
    "label": ask("Hosts that carry it; repeatable.", metavar="NAME=VALUE", type=list[str]),
    "all": ask("All hosts.", "--all", type=bool),
    "slots_per_host": ask(
        "Slots per host: 4, ngpus, 'ncpus // 2'; all: all.", "--slots", metavar="N|FORMULA", type=str
    ),
    "description": ask("For people."),
}

_QUEUE_COLUMNS = (
    TableColumn(title="QUEUE"),
    TableColumn(title="GROUP"),
    TableColumn(title="POLICY"),
    TableColumn(title="PREEMPT"),
    TableColumn(title="WEIGHT", right=True),
    TableColumn(title="WAIT", right=True),
    TableColumn(title="RUN", right=True),
    TableColumn(title="HELD", right=True),
    TableColumn(title="DESERVED", right=True),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="STATE", optional=True),
    TableColumn(title="RUNS AS", optional=True),
)
_GROUP_COLUMNS = (
    TableColumn(title="GROUP"),
    TableColumn(title="HOSTS", cut=True),
    TableColumn(title="PER HOST"),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="QUEUES", cut=True),
)


@queues.callback()
def list_queues(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the queues: jobs that wait and run, slots held, slots deserved, slots of the group."""
    if context.invoked_subcommand is not None:
        return
    with open_client(context) as client:
        found = client.queues.list()
    show_list(QueuePage(queues=found), _QUEUE_COLUMNS, map(_queue_row, found), as_json=as_json)


@queues.command("add")
@takes(options_of(QueueSettings, _QUEUE, but=("name", "open")))
def add_queue(context: typer.Context, name: QueueArgument, given: Given, as_json: JsonOption = False) -> None:
    """Make a queue.

    \b
    pliant queues add batch --group cpus --policy fifo --no-preemption
    """
    request = validate(QueueRequest, {"name": name, **given})
    with open_client(context) as client:
        _print_queue(client.queues.add(request), as_json=as_json)


@queues.command("set")
@takes(options_of(QueueSettings, _QUEUE, but=("name",)))
def set_queue(context: typer.Context, name: QueueArgument, given: Given, as_json: JsonOption = False) -> None:
    """Change a queue while its jobs run; the scheduler decides anew at once.

    \b
    pliant queues set batch --weight 3
    pliant queues set batch --closed
    """
    none = {field: None for field, value in given.items() if value == "" and field in QueuePatch.can_be_none}
    patch = validate(QueuePatch, given | none)
    with open_client(context) as client:
        _print_queue(client.queues.change(name, patch), as_json=as_json)


@queues.command("remove")
def remove_queue(context: typer.Context, name: QueueArgument) -> None:
    """Forget a queue; its jobs must have ended."""
    with open_client(context) as client:
        client.queues.remove(name)
    say(f"{name} is removed")


@groups.callback()
def list_groups(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the resource groups with their hosts and slots."""
    if context.invoked_subcommand is not None:
        return
    with open_client(context) as client:
        found = client.groups.list()
    show_list(GroupPage(groups=found), _GROUP_COLUMNS, map(_group_row, found), as_json=as_json)


@groups.command("add")
@takes(options_of(GroupSettings, _GROUP, but=("name",)))
def add_group(context: typer.Context, name: GroupArgument, given: Given, as_json: JsonOption = False) -> None:
    """Make a resource group; without --host and --label it is of all hosts.

    \b
    pliant groups add gpus --label kind=gpu --slots ngpus
    pliant groups add half --slots 'ncpus // 2'
    """
    request = validate(GroupRequest, {"name": name, "hosts": {"all": True}, **_group_fields(given)})
    with open_client(context) as client:
        _print_group(client.groups.add(request), as_json=as_json)


@groups.command("set")
@takes(options_of(GroupSettings, _GROUP, but=("name",)))
def set_group(context: typer.Context, name: GroupArgument, given: Given, as_json: JsonOption = False) -> None:
    """Change a resource group; jobs leave slots that it has no longer at a step boundary."""
    patch = validate(GroupPatch, _group_fields(given))
    with open_client(context) as client:
        _print_group(client.groups.change(name, patch), as_json=as_json)


@groups.command("remove")
def remove_group(context: typer.Context, name: GroupArgument) -> None:
    """Forget a resource group; no queue may be over it."""
    with open_client(context) as client:
        client.groups.remove(name)
    say(f"{name} is removed")


def _group_fields(given: Given) -> dict[str, object]:
    """Return the fields of a resource group that were given."""
    ways = ("host", "label", "all")
    found = {name: value for name, value in given.items() if name not in ways}
    if hosts := _hosts(*(given.get(way) for way in ways)):
        found["hosts"] = hosts
    if "slots_per_host" in found:
        found["slots_per_host"] = _slots(found["slots_per_host"])
    return found


def _hosts(names: list[str] | None, labels: list[str] | None, everything: bool | None) -> dict[str, object] | None:
    wrong = [label for label in labels or () if "=" not in label]
    if wrong:
        raise InvalidInput(
            *(Problem(field="--label", message=f"{one!r} has no '='; give it as NAME=VALUE") for one in wrong)
        )
    found: dict[str, object] = {}
    if names:
        found["names"] = names
    if labels:
        found["labels"] = dict(label.split("=", 1) for label in labels)
    if everything:
        found["all"] = True
    return found or None


def _slots(given: str) -> int | str | None:
    if given == "all":
        return None
    return int(given) if given.isascii() and given.isdigit() else given


def _print_queue(view: QueueView, *, as_json: bool) -> None:
    show_list(view, _QUEUE_COLUMNS, [_queue_row(view)], as_json=as_json)
    say_notes(view.notes)


def _print_group(view: GroupView, *, as_json: bool) -> None:
    show_list(view, _GROUP_COLUMNS, [_group_row(view)], as_json=as_json)
    say_notes(view.notes)


def _queue_row(view: QueueView) -> list[str]:
    queue = view.queue
    return [
        queue.name,
        queue.resource_group,
        queue.policy.value,
        "yes" if queue.preemption else "no",
        str(queue.weight),
        str(view.num_waiting),
        str(view.num_running),
        str(view.num_held),
        str(view.num_deserved),
        str(view.num_slots),
        "open" if queue.open else "closed",
        queue.run_as or formatting.NOTHING,
    ]


def _group_row(view: GroupView) -> list[str]:
    per_host = view.group.slots_per_host
    return [
        view.group.name,
        _describe_hosts(view.group.hosts),
        "all" if per_host is None else str(per_host),
        str(view.num_slots),
        ", ".join(view.queues) or formatting.NOTHING,
    ]


def _describe_hosts(hosts: Hosts) -> str:
    if hosts.names is not None:
        return ", ".join(hosts.names)
    if hosts.labels:
        return ", ".join(f"{name}={value}" for name, value in hosts.labels.items())
    return "all"
