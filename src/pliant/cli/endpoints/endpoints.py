"""The commands `endpoints …`: list, show, change, start, stop, roll back, read logs, remove."""

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.text import Text

from pliant.api.endpoints import EndpointPage, EndpointPatch, EndpointView, KernelView, VersionView
from pliant.cli import formatting
from pliant.cli.catalog.share import who
from pliant.cli.endpoints.asked import OF_ENDPOINT
from pliant.cli.endpoints.example import predict_url, served_version
from pliant.cli.fields import Given, takes
from pliant.cli.jobs.logs import Stream
from pliant.cli.jobs.logs import logs as job_logs
from pliant.cli.options import JsonLinesOption, JsonOption, name_argument
from pliant.cli.problems import validate
from pliant.cli.screen import (
    ENDPOINT_STYLES,
    TableColumn,
    print_json,
    print_outcome,
    say,
    show,
    show_facts,
    show_list,
    table,
)
from pliant.cli.session import open_client
from pliant.client.http.pages import pages
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.serving import LoadTotals

endpoints = typer.Typer(
    name="endpoints",
    help="Endpoints: models that answer requests.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, name_argument("endpoint", "Of the endpoint.")]
_NOTHING: Final = "There are no endpoints yet; `pliant deploy WHAT` makes one."
_COLUMNS: Final = (
    TableColumn(title="ENDPOINT"),
    TableColumn(title="STATE"),
    TableColumn(title="VERSION", right=True),
    TableColumn(title="KERNELS", right=True),
    TableColumn(title="REQ/S", right=True),
    TableColumn(title="P95", right=True),
    TableColumn(title="WAITING", right=True),
    TableColumn(title="OWNER"),
    TableColumn(title="QUEUE", optional=True),
)
_VERSION_COLUMNS: Final = (
    TableColumn(title="VERSION", right=True),
    TableColumn(title="STATE"),
    TableColumn(title="TRAFFIC", right=True),
    TableColumn(title="RUNNER"),
    TableColumn(title="FILE", cut=True),
    TableColumn(title="FROM", cut=True),
    TableColumn(title="JOB"),
    TableColumn(title="DEPLOYED", optional=True),
    TableColumn(title="BY", optional=True),
    TableColumn(title="REASON", wrap=True, optional=True),
)
_KERNEL_COLUMNS: Final = (
    TableColumn(title="KERNEL"),
    TableColumn(title="STATE"),
    TableColumn(title="NODE"),
    TableColumn(title="SLOTS"),
    TableColumn(title="SINCE"),
    TableColumn(title="PID", right=True, optional=True),
)


@endpoints.callback()
def list_endpoints(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the endpoints that you may use.

    KERNELS are those that take requests, of those that are wanted, and at most. WAITING are requests.
    """
    if context.invoked_subcommand is not None:
        return
    with open_client(context) as client:
        asked = pages(lambda after: client.endpoints.list(after=after))
        found = tuple(view for page in asked for view in page.endpoints)
    show_list(EndpointPage(endpoints=found, next=None), _COLUMNS, map(_row, found), _NOTHING, as_json=as_json)


@endpoints.command("show")
def show_endpoint(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show an endpoint, its versions, and the kernels of the one that serves."""
    with open_client(context) as client:
        view = client.endpoints.get(name)
    if as_json:
        print_json(view)
        return
    show_facts(_facts(view))
    say("\nVersions", style="bold")
    show(table(_VERSION_COLUMNS, map(_version_row, reversed(view.versions))))
    if kernels := [kernel for version in view.versions for kernel in version.kernels]:
        say("\nKernels", style="bold")
        show(table(_KERNEL_COLUMNS, map(_kernel_row, kernels)))


@endpoints.command("set")
@takes(OF_ENDPOINT)
def set_endpoint(context: typer.Context, name: NameArgument, given: Given, as_json: JsonOption = False) -> None:
    """Change how an endpoint serves, while it serves.

    \b
    pliant endpoints set digits --max 4 --release-delay 5m
    """
    with open_client(context) as client:
        view = client.endpoints.change(name, validate(EndpointPatch, given))
    print_outcome(view, f"{view.name} is changed; it is at revision {view.revision}", as_json=as_json)


@endpoints.command("start")
def start(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Let an endpoint that was stopped take requests again."""
    with open_client(context) as client:
        view = client.endpoints.start(name)
    print_outcome(view, f"{view.name} takes requests again; it is {view.state}", as_json=as_json)


@endpoints.command("stop")
def stop(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Take an endpoint's slots away, and let it refuse requests."""
    with open_client(context) as client:
        view = client.endpoints.stop(name)
    said = f"{view.name} refuses requests; `pliant endpoints start {view.name}` lets it serve again"
    print_outcome(view, said, as_json=as_json)


@endpoints.command("versions")
def versions(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """List the versions of an endpoint, newest first."""
    with open_client(context) as client:
        view = client.endpoints.get(name)
    if as_json:
        print_json(view.versions)
        return
    show(table(_VERSION_COLUMNS, map(_version_row, reversed(view.versions))))
    if view.exchange:
        say(f"\n{view.exchange}")


@endpoints.command("rollback")
def rollback(
    context: typer.Context,
    name: NameArgument,
    number: Annotated[
        int | None,
        typer.Argument(metavar="N", help="Of a version; default: that before the newest.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Give all traffic to an earlier version, or take it back from a newer one."""
    with open_client(context) as client:
        view = client.endpoints.rollback(name, number)
    now = f"serves version {view.current}" if number in (None, view.current) else f"goes back to version {number}"
    print_outcome(view, f"{view.name} {now}", as_json=as_json)


@endpoints.command("traffic")
def traffic(
    context: typer.Context,
    name: NameArgument,
    shares: Annotated[
        list[str],
        typer.Argument(metavar="N=PERCENT...", help="Versions and their parts, 100 in all.", show_default=False),
    ],
    as_json: JsonOption = False,
) -> None:
    """Share the requests between versions.

    Traffic goes over as kernels get ready. What is not named gets none any more.

    \b
    pliant endpoints traffic digits 2=90 3=10
    pliant endpoints traffic digits 3=100
    """
    with open_client(context) as client:
        view = client.endpoints.split(name, dict(map(_share, shares)))
    print_outcome(view, f"{view.name}: {view.exchange or _split(view)}", as_json=as_json)


def _share(text: str) -> tuple[int, int]:
    number, _, percent = text.partition("=")
    if not (number.isdecimal() and percent.removesuffix("%").isdecimal()):
        raise InvalidInput.at("traffic", f"{text!r} is no share; say a version and its percent, such as 2=90")
    return int(number), int(percent.removesuffix("%"))


def _split(view: EndpointView) -> str:
    taken = [f"version {one.number} takes {one.traffic} %" for one in view.versions if one.traffic]
    return " and ".join(taken) + " of the requests" if taken else "no version takes requests yet"


@endpoints.command("logs")
def endpoint_logs(
    context: typer.Context,
    name: NameArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until its job has ended.")] = False,
    version: Annotated[
        int | None, typer.Option(metavar="N", help="Of this version; default: the one that serves.", show_default=False)
    ] = None,
    stream: Annotated[Stream, typer.Option(help="Which output.")] = Stream.BOTH,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", min=0, metavar="N", help="Only the last lines.", show_default=False)
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Print what the kernels of an endpoint write to stdout and stderr.

    They are the tasks of a job, whose output `pliant logs` prints, too.
    """
    with open_client(context) as client:
        chosen = _version_of(client.endpoints.get(name), version)
    if chosen.job_id is None:
        say(f"version {chosen.number} of {name} has had no kernel yet", stderr=True)
        return
    job_logs(
        context, chosen.job_id, follow=follow, task=None, all_tasks=True, stream=stream, tail=tail, as_json=as_json
    )


@endpoints.command("remove")
def remove(context: typer.Context, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove an endpoint with all its versions."""
    with open_client(context) as client:
        client.endpoints.remove(name)
    print_outcome({"removed": name}, f"{name} is removed", as_json=as_json)


def _version_of(view: EndpointView, number: int | None) -> VersionView:
    """Return the version that is meant: the one that serves, or else the newest, if none is named.

    Raises:
        NotFound: there is none of this number.
    """
    if number is None:
        return served_version(view) or view.versions[-1]
    for version in view.versions:
        if version.number == number:
            return version
    there = ", ".join(str(version.number) for version in view.versions)
    raise NotFound(f"{view.name} has no version {number}; it has {there}")


def _row(view: EndpointView) -> list[str | Text]:
    running = [version for version in view.versions if version.num_kernels or version.wanted]
    loads = [version.load for version in running if version.load is not None]
    per_s = sum(load.completed / load.seconds for load in loads if load.seconds > 0)
    p95 = max((load.latency_s["p95"] for load in loads if "p95" in load.latency_s), default=None)
    return [
        view.name,
        _state(view.state),
        formatting.NOTHING if view.current is None else str(view.current),
        f"{sum(one.num_ready for one in running)}/{sum(one.wanted for one in running)} ({view.kernel_max})",
        formatting.number(per_s) if loads else formatting.NOTHING,
        formatting.NOTHING if p95 is None else formatting.milliseconds(p95),
        str(sum(load.queued for load in loads)),
        view.owner,
        view.queue,
    ]


def _state(state: str) -> Text:
    return Text(state, style=ENDPOINT_STYLES.get(state, ""))


def _version_row(version: VersionView) -> list[str | Text]:
    return [
        str(version.number),
        _state(version.state.value),
        f"{version.traffic}%" if version.traffic else formatting.NOTHING,
        version.runner,
        version.file,
        version.source or formatting.NOTHING,
        version.job_id or formatting.NOTHING,
        formatting.date_time(version.created_at),
        version.created_by,
        version.reason,
    ]


def _kernel_row(kernel: KernelView) -> list[str | Text]:
    return [
        kernel.task_id,
        _state(kernel.state),
        kernel.node_id,
        ",".join(map(str, kernel.slots)),
        formatting.clock_time(kernel.started_at),
        formatting.NOTHING if kernel.pid is None else str(kernel.pid),
    ]


def _facts(view: EndpointView) -> Iterator[tuple[str, str | Text]]:
    """Yield what there is to say of an endpoint, but for its versions."""
    yield "endpoint", f"{view.name} (revision {view.revision})"
    if view.description:
        yield "description", view.description
    yield "state", f"{view.state}: {view.reason}" if view.reason else view.state
    if (url := predict_url(view)) is not None:
        yield "asked at", url
    if view.grpc_address is not None:
        yield "gRPC", view.grpc_address
    for gateway in view.gateways[1:]:
        grpc = "" if gateway.grpc_address is None else f", and over gRPC at {gateway.grpc_address}"
        yield f"on {gateway.machine}", f"{gateway.http_url}{grpc}"
    if view.exchange:
        yield "exchange", view.exchange
    yield "owner", view.owner
    yield "shared with", who(view.shared_with)
    for version in view.versions:
        yield from _facts_of_running(version)
    yield "kernels", f"{view.kernel_min} to {view.kernel_max}, kept {formatting.duration(view.release_delay_s)} after"
    batches = f"{view.batch_size} in a batch, {view.pipe_size} batches in a kernel"
    waiting = f"{view.max_queue} of {formatting.size(view.max_body_bytes)} wait at most"
    yield "requests", f"{formatting.milliseconds(view.latency_objective_s)} each, {batches}; {waiting}"
    if limits := ", ".join(_limits(view)):
        yield "limits", limits
    yield "queue", f"{view.queue}, priority {view.priority}"


def _limits(view: EndpointView) -> Iterator[str]:
    if view.max_rate is not None:
        yield f"{view.max_rate:g} a second"
    if view.max_concurrent is not None:
        yield f"{view.max_concurrent} at once"
    if view.max_request_s is not None:
        yield f"{view.max_request_s:g} s each"


def _facts_of_running(version: VersionView) -> Iterator[tuple[str, str]]:
    if not (version.num_kernels or version.wanted):
        return
    label = f"version {version.number}"
    if version.traffic not in (0, 100):
        yield label, f"{version.traffic} % of the requests"
    each = f", each on {version.slots_per_task:g} of a slot" * (version.slots_per_task < 1)
    yield label, f"{version.num_ready} of {formatting.count_of(version.wanted, 'kernel')} that it needs{each}"
    if version.why:
        yield "why", version.why
    if version.demand:
        yield "demand", version.demand
    if (load := version.load) is not None:
        spent = ", ".join(f"{name} {formatting.milliseconds(value)}" for name, value in load.latency_s.items())
        held = f"{load.in_flight} computed, {load.queued} waiting"
        yield "load", f"{held}; {spent}" if spent else held
        yield from _counted(load.totals)


def _counted(totals: LoadTotals) -> Iterator[tuple[str, str]]:
    """Yield what became of the requests since the gateway began to serve a version."""
    counts = {
        "answered": totals.succeeded,
        "rejected": totals.rejected,
        "failed": totals.failed,
        "refused": totals.refused,
    }
    if any(counts.values()):
        batches = totals.batch_size
        mean = f"; {formatting.number(batches.total / batches.count)} in a batch" if batches.count else ""
        yield "counted", ", ".join(f"{number} {word}" for word, number in counts.items() if number) + mean
