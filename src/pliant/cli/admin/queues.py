"""The commands `queues …` and `groups …`: where jobs wait, and for which slots."""
# ruff: noqa: ARG001 (a parameter declares an option; those that are fields of a request are taken from the context)

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
from pliant.cli import words
from pliant.cli.options import JsonOption, filled
from pliant.cli.problems import checked
from pliant.cli.screen import Column, say, show_list
from pliant.cli.session import open_client
from pliant.core.errors import InvalidInput, Problem
from pliant.core.queue import Hosts

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

NameArgument = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
GroupOption = Annotated[str | None, typer.Option("--group", metavar="NAME", help="Its resource group.")]
PolicyOption = Annotated[str | None, typer.Option(metavar="fairshare|priority|fifo", help="How its jobs share.")]
PreemptionOption = Annotated[
    bool | None, typer.Option("--preemption/--no-preemption", help="Whether its jobs can be shrunk and paused.")
]
WeightOption = Annotated[int | None, typer.Option(metavar="N", help="Its share of slots that queues overlap on.")]
EnvironmentOption = Annotated[
    str | None, typer.Option("--env", metavar="NAME", help="Of jobs that name none; `set`: '' for none.")
]
RunAsOption = Annotated[
    str | None, typer.Option(metavar="USER", help="The system user that its jobs run as; `set`: '' for the server's.")
]
LimitOption = Annotated[int | None, typer.Option("--max-tasks", metavar="N", help="Tasks that a job may have.")]
OpenOption = Annotated[bool | None, typer.Option("--open/--closed", help="Whether it takes new jobs.")]
AboutOption = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="For people.")]
HostOption = Annotated[list[str] | None, typer.Option("--host", metavar="NAME", help="One of its hosts; repeatable.")]
LabelOption = Annotated[
    list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="Hosts that carry it; repeatable.")
]
AllOption = Annotated[bool, typer.Option("--all", help="All hosts.")]
SlotsOption = Annotated[
    str | None, typer.Option("--slots", metavar="N|FORMULA", help="Slots per host: 4, ngpus, 'ncpus // 2'; all: all.")
]

_QUEUE_FIELDS: Final = {
    "resource_group": "group",
    "policy": "policy",
    "preemption": "preemption",
    "weight": "weight",
    "default_environment": "environment",
    "run_as": "run_as",
    "max_tasks_per_job": "max_tasks",
    "open": "is_open",
    "description": "description",
}
"""Fields of a queue, and the options that give them."""

_QUEUE_COLUMNS = (
    Column(title="QUEUE"),
    Column(title="GROUP"),
    Column(title="POLICY"),
    Column(title="PREEMPT"),
    Column(title="WEIGHT", right=True),
    Column(title="WAIT", right=True),
    Column(title="RUN", right=True),
    Column(title="HELD", right=True),
    Column(title="DESERVED", right=True),
    Column(title="SLOTS", right=True),
    Column(title="STATE", optional=True),
    Column(title="RUNS AS", optional=True),
)
_GROUP_COLUMNS = (
    Column(title="GROUP"),
    Column(title="HOSTS", cut=True),
    Column(title="PER HOST"),
    Column(title="SLOTS", right=True),
    Column(title="QUEUES", cut=True),
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
def add_queue(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    name: NameArgument,
    group: GroupOption = None,
    policy: PolicyOption = None,
    preemption: PreemptionOption = None,
    weight: WeightOption = None,
    environment: EnvironmentOption = None,
    run_as: RunAsOption = None,
    max_tasks: LimitOption = None,
    description: AboutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a queue.

    \b
    pliant queues add batch --group cpus --policy fifo --no-preemption
    """
    request = checked(QueueRequest, {"name": name, **_queue_given(context)})
    with open_client(context) as client:
        _tell_queue(client.queues.add(request), as_json=as_json)


@queues.command("set")
def set_queue(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    name: NameArgument,
    group: GroupOption = None,
    policy: PolicyOption = None,
    preemption: PreemptionOption = None,
    weight: WeightOption = None,
    environment: EnvironmentOption = None,
    run_as: RunAsOption = None,
    max_tasks: LimitOption = None,
    is_open: OpenOption = None,
    description: AboutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a queue while its jobs run; the scheduler decides anew at once.

    \b
    pliant queues set batch --weight 3
    pliant queues set batch --closed
    """
    given = _queue_given(context)
    given |= {key: None for key in ("default_environment", "run_as") if given.get(key) == ""}
    patch = checked(QueuePatch, given)
    with open_client(context) as client:
        _tell_queue(client.queues.change(name, patch), as_json=as_json)


@queues.command("remove")
def remove_queue(context: typer.Context, name: NameArgument) -> None:
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
def add_group(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    name: NameArgument,
    host: HostOption = None,
    label: LabelOption = None,
    all_hosts: AllOption = False,
    slots: SlotsOption = None,
    description: AboutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a resource group; without --host and --label it is of all hosts.

    \b
    pliant groups add gpus --label kind=gpu --slots ngpus
    pliant groups add half --slots 'ncpus // 2'
    """
    request = checked(GroupRequest, {"name": name, "hosts": {"all": True}, **_group_given(context)})
    with open_client(context) as client:
        _tell_group(client.groups.add(request), as_json=as_json)


@groups.command("set")
def set_group(  # noqa: PLR0913 (one parameter per option)
    context: typer.Context,
    name: NameArgument,
    host: HostOption = None,
    label: LabelOption = None,
    all_hosts: AllOption = False,
    slots: SlotsOption = None,
    description: AboutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a resource group; jobs leave slots that it has no longer at a step boundary."""
    patch = checked(GroupPatch, _group_given(context))
    with open_client(context) as client:
        _tell_group(client.groups.change(name, patch), as_json=as_json)


@groups.command("remove")
def remove_group(context: typer.Context, name: NameArgument) -> None:
    """Forget a resource group; no queue may be over it."""
    with open_client(context) as client:
        client.groups.remove(name)
    say(f"{name} is removed")


def _queue_given(context: typer.Context) -> dict[str, object]:
    """Return the fields of a queue that were given."""
    return filled({field: context.params.get(option) for field, option in _QUEUE_FIELDS.items()})


def _group_given(context: typer.Context) -> dict[str, object]:
    """Return the fields of a resource group that were given."""
    params = context.params
    hosts = _hosts(params["host"], params["label"], params["all_hosts"])
    given = filled({"hosts": hosts, "description": params["description"]})
    return given if params["slots"] is None else {**given, "slots_per_host": _slots(params["slots"])}


def _hosts(names: list[str] | None, labels: list[str] | None, everything: bool) -> dict[str, object] | None:
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


def _tell_queue(view: QueueView, *, as_json: bool) -> None:
    show_list(view, _QUEUE_COLUMNS, [_queue_row(view)], as_json=as_json)


def _tell_group(view: GroupView, *, as_json: bool) -> None:
    show_list(view, _GROUP_COLUMNS, [_group_row(view)], as_json=as_json)


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
        queue.run_as or words.NOTHING,
    ]


def _group_row(view: GroupView) -> list[str]:
    per_host = view.group.slots_per_host
    return [
        view.group.name,
        _chosen(view.group.hosts),
        "all" if per_host is None else str(per_host),
        str(view.num_slots),
        ", ".join(view.queues) or words.NOTHING,
    ]


def _chosen(hosts: Hosts) -> str:
    if hosts.names is not None:
        return ", ".join(hosts.names)
    if hosts.labels:
        return ", ".join(f"{name}={value}" for name, value in hosts.labels.items())
    return "all"
