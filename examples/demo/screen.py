"""The demo's terminal: slots over time, a bar per job, the stages, and every decision with its reason.

`render(seen, width, height)` is a pure function from what was seen to a rich renderable of at most `height` lines;
`Screen` shows it live in a terminal, `Lines` prints what is new where there is none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from examples.demo.recording import Seen, Stage, quantile
from examples.demo.timeline import Timeline
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId
from pliant.core.search import ENDED, TrialState

COLOURS = ("dodger_blue2", "dark_orange", "green3", "magenta")
SHOWN_KINDS = {
    EventKind.DECISION,
    EventKind.DEMAND,
    EventKind.JOB_STATE,
    EventKind.JOB_CHANGED,
    EventKind.TASK_LOST,
    EventKind.GENERATION_SWITCHED,
    EventKind.WARNING,
}
DECISIONS = {EventKind.DECISION, EventKind.DEMAND}
TRAINS, WAITS = "█", "░"
LEGEND = f"   {TRAINS} trains  {WAITS} starts or leaves"
SERVING_LEGEND = f"   {TRAINS} trains, or answers  {WAITS} starts or leaves"
MAX_ROWS = 2
"""Trainings that have a row: the newest."""
LATELY_S = 3.0
"""Requests of so many seconds are what the endpoint's line tells of."""
MIN_WINDOW_S = 60.0
PROGRESS_EVERY_S = 5.0


def colour_of(seen: Seen, job_id: JobId | None) -> str:
    """Return the colour that a job has everywhere."""
    return COLOURS[seen.hue(job_id)] if job_id is not None and job_id in seen.labels else "white"


def render(seen: Seen, width: int, height: int) -> RenderableType:
    """Return the whole picture."""
    chart = _chart(seen, width)
    jobs = _jobs(seen, width)
    endpoint = [*_endpoint(seen), *_search(seen)]
    stages = _stages(seen)
    num_left = height - len(chart) - (len(_shown(seen)) + 1) - len(endpoint) - len(stages) - 3
    legend = SERVING_LEGEND if seen.endpoint_id else LEGEND
    return Group(
        Rule(Text.assemble((f"slots over time, {seen.elapsed_s(seen.now):.0f} s", "bold"), legend), style="dim"),
        *chart,
        jobs,
        *endpoint,
        Rule(style="dim"),
        *stages,
        Rule(Text("decisions", style="bold"), style="dim"),
        *_decisions(seen, max(num_left, 1)),
    )


def _chart(seen: Seen, width: int) -> list[Text]:
    """Return one line per slot, the highest first, then the axis and its labels."""
    num_columns = max(width - 6, 10)
    window_s = max(MIN_WINDOW_S, seen.elapsed_s(seen.now))
    held, working = seen.held(), seen.working()
    instants = (seen.began_at + (column + 0.5) * window_s / num_columns for column in range(num_columns))
    stacks = [_stack(seen, held, working, at) for at in instants]
    lines = []
    for slot in range(seen.num_slots, 0, -1):
        line = Text(f"{slot:>3} ", style="dim")
        for stack in stacks:
            if stack is None:
                line.append(" ")
            elif slot <= len(stack):
                line.append(stack[slot - 1].block, style=stack[slot - 1].colour)
            else:
                line.append("·", style="dim")
        lines.append(line)
    return [*lines, _axis(seen, num_columns, window_s), _axis_labels(num_columns, window_s)]


@dataclass(frozen=True, slots=True)
class Cell:
    """One slot at one instant."""

    colour: str
    block: str


def _stack(
    seen: Seen, held: Mapping[JobId, Timeline], working: Mapping[JobId, Timeline], at: float
) -> list[Cell] | None:
    """Return what the slots do at an instant, from the bottom up; None for the future."""
    if at > seen.now:
        return None
    cells = []
    for job_id in seen.labels:
        num_held = held[job_id].at(at) if job_id in held else 0
        num_training = min(working[job_id].at(at), num_held) if job_id in working else 0
        num_idle = num_held - num_training
        colour = colour_of(seen, job_id)
        cells += [Cell(colour, TRAINS)] * num_training + [Cell(colour, WAITS)] * num_idle
    return cells[: seen.num_slots]


def _axis(seen: Seen, num_columns: int, window_s: float) -> Text:
    marks = ["─"] * num_columns
    for stage in seen.stages:
        column = int(seen.elapsed_s(stage.began_at) / window_s * num_columns)
        marks[min(column, num_columns - 1)] = str(stage.number)
    return Text("    " + "".join(marks), style="dim")


def _axis_labels(num_columns: int, window_s: float) -> Text:
    every_s = next(s for s in (10, 20, 30, 60, 120, 300, 1200, 7200) if window_s / s * 8 <= num_columns or s == 7200)
    labels = [" "] * (num_columns + 8)
    for at_s in range(0, int(window_s) + 1, every_s):
        column = int(at_s / window_s * num_columns)
        for offset, char in enumerate(f"{at_s} s"):
            labels[column + offset] = char
    return Text(("    " + "".join(labels))[: num_columns + 6].rstrip(), style="dim")


def _jobs(seen: Seen, width: int) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(width=max(width - 82, 8))
    for _ in range(6):
        table.add_column(justify="right", no_wrap=True)
    table.add_row(
        "", "", "", *(Text(head, style="dim") for head in ("epoch", "step", "loss", "acc.", "samples/s", "left"))
    )
    for job_id in _shown(seen):
        detail = seen.details.get(job_id)
        if detail is not None:
            table.add_row(*_job_row(seen.labels[job_id], detail.job, colour_of(seen, job_id)))
    return table


def _shown(seen: Seen) -> list[JobId]:
    others = [job_id for job_id in seen.labels if job_id != seen.endpoint_id and not seen.is_trial(job_id)]
    return others[-MAX_ROWS:]


def _endpoint(seen: Seen) -> list[Text]:
    """Return the line of the endpoint, if there is one."""
    if seen.endpoint_id is None:
        return []
    style = f"bold {colour_of(seen, seen.endpoint_id)}"
    line = Text(f" {seen.labels[seen.endpoint_id]} ", style=style, no_wrap=True, overflow="ellipsis")
    return [line.append(_answers(seen), style="default")]


def _search(seen: Seen) -> list[Text]:
    """Return the line of the search, if there is one."""
    if seen.search is None:
        return []
    view, trials = seen.search, seen.search.trials
    words = [
        f"{view.state.value}: {sum(trials.get(state, 0) for state in ENDED)}/{view.settings.max_trials} trials ended",
        f"{trials.get(TrialState.RUNNING, 0)} train",
        f"{trials.get(TrialState.PAUSED, 0)} wait at a rung",
    ]
    if view.best is not None and view.best.results:
        words.append(f"best {view.settings.objectives[0].metric} {view.best.results[0]:.5f} (trial {view.best.number})")
    line = Text(f" {view.name} ", style="bold", no_wrap=True, overflow="ellipsis")
    return [line.append(", ".join(words), style="default")]


def _answers(seen: Seen) -> str:
    """Say how many kernels there are, and how requests were answered lately."""
    num = seen.kernels_at(seen.now)
    lately = [answer.latency_s for answer in seen.answers if answer.done_at > seen.now - LATELY_S]
    words = [f"{num} kernel answers" if num == 1 else f"{num} kernels answer"]
    if lately:
        p50_ms, p95_ms = (1000 * quantile(lately, part) for part in (0.5, 0.95))
        words += [f"{len(lately) / LATELY_S:.1f} answers/s", f"p50 {p50_ms:.0f} ms", f"p95 {p95_ms:.0f} ms"]
    if seen.answers:
        num_wrong = sum(not answer.is_right for answer in seen.answers)
        words += [f"{len(seen.answers)} answers, {num_wrong} failed or wrong"]
    return ", ".join(words)


def _job_row(label: str, job: Job, colour: str) -> Sequence[RenderableType]:
    state = Text(f"{job.state} {job.num_slots}/{job.max_tasks} p{job.priority}")
    name = Text(f" {label} ", style=f"bold {colour}")
    progress = job.progress
    if progress is None:
        return name, state, ProgressBar(total=1, completed=0), *[""] * 6
    accuracy = progress.metrics.get("accuracy")
    left = "" if job.ended or progress.eta_s is None else f"{progress.eta_s:.0f} s"
    return (
        name,
        state,
        ProgressBar(
            total=max(progress.num_steps, 1), completed=progress.step, complete_style=colour, finished_style=colour
        ),
        f"{progress.epoch}/{progress.num_epochs}",
        f"{progress.step}/{progress.num_steps}",
        "" if progress.loss is None else f"{progress.loss:.4f}",
        "" if accuracy is None else f"{accuracy:.3f}",
        f"{progress.samples_per_s:.0f}",
        left,
    )


def _stages(seen: Seen) -> list[Text]:
    return [_stage_line(stage) for stage in seen.stages]


def _stage_line(stage: Stage) -> Text:
    if stage.ended_at is not None:
        return Text.assemble(("✓ ", "green"), f"{stage.number}. {stage.title}", no_wrap=True, overflow="ellipsis")
    text = Text.assemble(
        ("▶ ", "yellow"), (f"{stage.number}. {stage.title}", "bold"), no_wrap=True, overflow="ellipsis"
    )
    return text.append(f"  {stage.now_text}", style="dim") if stage.now_text else text


def _decisions(seen: Seen, num_lines: int) -> list[Text]:
    shown = [event for event in seen.events if event.kind in DECISIONS][-num_lines:]
    return [_event_line(seen, event) for event in shown]


def _event_line(seen: Seen, event: Event) -> Text:
    label = seen.labels.get(event.job_id, "?") if event.job_id else "-"
    line = Text(f"{seen.elapsed_s(event.at):6.1f} s  ", style="dim", no_wrap=True, overflow="ellipsis")
    line.append(f"{label}  ", style=f"bold {colour_of(seen, event.job_id)}")
    if event.kind in DECISIONS:
        line.append(f"{event.data.get('from')} → {event.data.get('to')}  ", style="bold")
    return line.append(event.message, style="default")


class Screen:
    """The picture, drawn anew a few times a second."""

    def __init__(self, console: Console, look: Callable[[], Seen]) -> None:
        self._live = Live(
            console=console,
            get_renderable=lambda: render(look(), console.width, console.height - 1),
            refresh_per_second=5,
            vertical_overflow="crop",
        )

    def start(self) -> None:
        self._live.start(refresh=True)

    def tick(self) -> None:
        """Do nothing: the picture redraws itself."""

    def stop(self) -> None:
        self._live.stop()


class Lines:
    """Plain lines, for a log: what is new since the last `tick`."""

    def __init__(self, console: Console, look: Callable[[], Seen]) -> None:
        self._console = console
        self._look = look
        self._last_seq = 0
        self._stages: dict[int, bool] = {}
        self._progress_at = 0.0

    def start(self) -> None:
        self.tick()

    def tick(self) -> None:
        """Print what happened since the last time."""
        seen = self._look()
        for stage in seen.stages:
            done = stage.ended_at is not None
            if self._stages.get(stage.number) != done:
                self._stages[stage.number] = done
                self._print(Text(f"--- {seen.elapsed_s(seen.now):6.1f} s  ").append_text(_stage_line(stage)))
        for event in seen.events:
            if event.seq > self._last_seq:
                self._last_seq = event.seq
                if event.kind in SHOWN_KINDS:
                    self._print(_event_line(seen, event))
        if seen.now - self._progress_at >= PROGRESS_EVERY_S:
            self._progress_at = seen.now
            for job_id, label in seen.labels.items():
                self._print_progress(seen, job_id, label)
            for line in (*_endpoint(seen), *_search(seen)):
                self._print(Text(f"{seen.elapsed_s(seen.now):6.1f} s ").append_text(line))

    def stop(self) -> None:
        self.tick()

    def _print_progress(self, seen: Seen, job_id: JobId, label: str) -> None:
        detail = seen.details.get(job_id)
        if detail is None or detail.job.ended or detail.job.progress is None:
            return
        told = detail.job.progress
        words = [
            f"on {detail.job.num_slots} slots",
            f"epoch {told.epoch}/{told.num_epochs}",
            f"step {told.step}/{told.num_steps}",
            *([] if told.loss is None else [f"loss {told.loss:.4f}"]),
            *([f"accuracy {told.metrics['accuracy']:.3f}"] if "accuracy" in told.metrics else []),
            f"{told.samples_per_s:.0f} samples/s",
        ]
        self._print(Text(f"{seen.elapsed_s(seen.now):6.1f} s  {label}  " + ", ".join(words)))

    def _print(self, line: Text) -> None:
        line.no_wrap, line.overflow = True, "ignore"
        self._console.print(line, crop=False, soft_wrap=True)
