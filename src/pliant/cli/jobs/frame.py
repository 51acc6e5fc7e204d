"""One frame of `pliant top`: slots by job, endpoints, searches, other jobs, the newest decisions. A pure function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pliant.api.endpoints import EndpointView, VersionView
from pliant.api.pool import ClusterView, SlotView
from pliant.api.searches import SearchView
from pliant.cli import formatting
from pliant.cli.jobs.events import event_lines
from pliant.cli.jobs.search_rows import bar, search_lines, trials_of
from pliant.cli.screen import ENDPOINT_STYLES, TableColumn, state_text, table
from pliant.core.event import Event
from pliant.core.job import Job

_COLOURS: Final = ("green", "blue", "magenta", "cyan", "yellow", "red", "bright_green", "bright_blue", "bright_magenta")
_FREE: Final = "·"
_HELD: Final = "█"
_OTHERS: Final = ""
"""Holds a slot, but is not ours to see."""
_ROWS_BETWEEN: Final = 4
"""Lines of a frame below the slots that hold neither a job nor an event."""
_ROWS_BESIDE: Final = 14
"""Lines of a frame that are left to others than searches."""

_COLUMNS: Final = (
    TableColumn(title="JOB"),
    TableColumn(title="NAME", cut=True),
    TableColumn(title="STATE"),
    TableColumn(title="SLOTS", right=True),
    TableColumn(title="PRIO", right=True),
    TableColumn(title="PROGRESS"),
    TableColumn(title="EPOCH", right=True, optional=True),
    TableColumn(title="LOSS", right=True, optional=True),
    TableColumn(title="SAMPLES/S", right=True, optional=True),
    TableColumn(title="LEFT", right=True),
)
_ENDPOINT_COLUMNS: Final = (
    TableColumn(title="JOB"),
    TableColumn(title="ENDPOINT", cut=True),
    TableColumn(title="STATE"),
    TableColumn(title="KERNELS", right=True),
    TableColumn(title="REQ/S", right=True),
    TableColumn(title="P95", right=True),
    TableColumn(title="WAITING", right=True),
    TableColumn(title="WHY", cut=True, optional=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a frame shows."""

    cluster: ClusterView
    jobs: tuple[Job, ...]
    """Newest first."""
    endpoints: tuple[EndpointView, ...] = ()
    searches: tuple[SearchView, ...] = ()
    """Those that run, or were stopped and may go on."""
    events: tuple[Event, ...]
    """Oldest first."""
    url: str


def draw(view: View, *, width: int, height: int) -> RenderableType:
    """Return the frame for a screen of this size."""
    colour_of = colours(view.cluster.slots)
    top: list[RenderableType] = [_headline(view, width), *_bars(view, colour_of, width), Text()]
    top += _endpoint_lines(view, colour_of, width, height)
    served = {one.job_id for endpoint in view.endpoints for one in _running(endpoint) if one is not None}
    trials = trials_of(view.searches, view.jobs)
    top += search_lines(
        view.searches, trials, colour_of, width=width, num_lines=min(height // 3, height - _ROWS_BESIDE)
    )
    tried = {job.id for own in trials.values() for job in own}
    jobs = tuple(one for one in view.jobs if one.id not in (tried if one.spec.endpoint is None else served))
    num_top = len(top) + sum(line.row_count for line in top if isinstance(line, Table))
    num_jobs = max(1, min(len(jobs), (height - num_top - _ROWS_BETWEEN) // 2))
    shown = jobs[:num_jobs]
    middle: list[RenderableType] = [Text(f"No {'other ' * bool(view.searches)}job waits or runs.", style="dim")]
    if shown:
        middle = [table(_COLUMNS, (_job_row(job, colour_of) for job in shown), width=width)]
    if len(jobs) > num_jobs:
        middle.append(Text(f"and {len(jobs) - num_jobs} more", style="dim"))
    num_lines = max(1, height - num_top - num_jobs - _ROWS_BETWEEN)
    return Group(*top, *middle, Text(), Text("Decisions and events", style="bold"), *_news(view, width, num_lines))


def _job_row(job: Job, colour_of: Mapping[str, str]) -> list[str | Text]:
    style = colour_of.get(job.id, "")
    speed = formatting.NOTHING if job.progress is None else formatting.number(job.progress.samples_per_s)
    return [
        Text(job.id, style=style),
        job.spec.name,
        state_text(job.state),
        str(job.num_slots),
        str(job.priority),
        bar(formatting.fraction_done(job.progress), style).append(
            f" {formatting.percent(job.progress):>4}", style="default"
        ),
        formatting.epochs(job.progress),
        formatting.loss(job.progress),
        speed,
        formatting.time_left(job, formatting.short_duration),
    ]


def _endpoint_lines(view: View, colour_of: Mapping[str, str], width: int, height: int) -> list[RenderableType]:
    """Return the endpoints, each with its versions that run, in a third of the screen at most."""
    rows = [(one, version) for one in view.endpoints for version in _running(one)]
    if not rows:
        return []
    shown = rows[: max(1, height // 3)]
    lines: list[RenderableType] = [
        table(_ENDPOINT_COLUMNS, (_endpoint_row(*row, colour_of) for row in shown), width=width)
    ]
    if len(rows) > len(shown):
        lines.append(Text(f"and {len(rows) - len(shown)} more", style="dim"))
    return [*lines, Text()]


def _running(view: EndpointView) -> list[VersionView | None]:
    """Return the versions that hold kernels or want some; else the one that serves, if the endpoint is not stopped."""
    running: list[VersionView | None] = [one for one in view.versions if one.num_kernels or one.wanted]
    if running or view.state == "stopped":
        return running
    return [next((one for one in view.versions if one.number == view.current), None)]


def _endpoint_row(view: EndpointView, version: VersionView | None, colour_of: Mapping[str, str]) -> list[str | Text]:
    state = Text(view.state, style=ENDPOINT_STYLES.get(view.state, ""))
    if version is None:
        return [formatting.NOTHING, view.name, state, *[formatting.NOTHING] * 4, view.reason]
    load, job_id = version.load, version.job_id or formatting.NOTHING
    rate = None if load is None or load.seconds <= 0 else load.completed / load.seconds
    p95 = None if load is None else load.latency_s.get("p95")
    if version.number != view.current:
        state = Text(version.state.value, style=ENDPOINT_STYLES.get(version.state.value, ""))
    return [
        Text(job_id, style=colour_of.get(job_id, "")),
        f"{view.name} v{version.number}",
        state,
        f"{version.num_ready}/{version.wanted}",
        formatting.NOTHING if rate is None else formatting.number(rate),
        formatting.NOTHING if p95 is None else formatting.milliseconds(p95),
        formatting.NOTHING if load is None else str(load.queued),
        version.demand or view.reason,
    ]


def _news(view: View, width: int, num_lines: int) -> list[Text]:
    """Return the newest events that fit, oldest first."""
    lines: list[Text] = []
    for event in reversed(view.events):
        more = event_lines(event, width, with_kind=False)
        if len(lines) + len(more) > num_lines:
            break
        lines = more + lines
    return lines


def colours(slots: Sequence[SlotView]) -> dict[str, str]:
    """Return a colour for each job that holds a slot, by its number, so that it stays while others come and go."""
    ids = {job_id for slot in slots for job_id in _holders(slot)}
    return {job_id: _COLOURS[int(job_id.rpartition("-")[2]) % len(_COLOURS)] for job_id in sorted(ids)}


def _holders(slot: SlotView) -> set[str]:
    """Return the jobs that hold a slot or a part of it, as far as they may be seen."""
    sharers = {task_id.rpartition(".")[0] for task_id in slot.sharers}
    return sharers if slot.job_id is None else sharers | {slot.job_id}


def _headline(view: View, width: int) -> Text:
    held = sum(slot.taken for slot in view.cluster.slots)
    left = f"Pliant {view.cluster.version}  {held}/{formatting.count_of(len(view.cluster.slots), 'slot')} held"
    left += f"  {view.cluster.policy.value}  {view.url}"
    right = formatting.clock_time(view.cluster.now)
    return Text(f"{left[: width - len(right) - 1]:<{width - len(right)}}{right}", style="bold", no_wrap=True)


def _bars(view: View, colour_of: Mapping[str, str], width: int) -> list[Text]:
    bars = []
    for node in view.cluster.nodes:
        holders = {s.slot: s.job_id or _OTHERS for s in view.cluster.slots if s.node_id == node.id and s.taken}
        name = f"{node.id[:12]:<12} "
        room = max(1, width - len(name))
        per_slot = max(1, min(4, room // max(1, len(node.slots))))
        bar = Text(name, no_wrap=True)
        order = sorted(node.slots, key=lambda slot: (holders.get(slot) is None, holders.get(slot) or "", slot))
        for slot in order[: room // per_slot]:
            job_id = holders.get(slot)
            bar.append((_FREE if job_id is None else _HELD) * per_slot, style=colour_of.get(job_id or "", "dim"))
        bars.append(bar)
    return [*bars, _legend(view, colour_of)] if any(slot.taken for slot in view.cluster.slots) else bars


def _legend(view: View, colour_of: Mapping[str, str]) -> Text:
    legend = Text(" " * 13, no_wrap=True, overflow="ellipsis")
    for job_id, colour in colour_of.items():
        num_slots = sum(job_id in _holders(slot) for slot in view.cluster.slots)
        legend.append(_HELD, style=colour)
        legend.append(f" {job_id} {num_slots}  ")
    if num_others := sum(slot.taken and slot.job_id is None for slot in view.cluster.slots):
        legend.append(_HELD, style="dim")
        legend.append(f" others {num_others}  ")
    return legend
