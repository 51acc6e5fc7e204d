"""The chart that the demo leaves: slots over time by job, stacked, with what happened marked.

Pure but for the file it writes: it draws what was seen.
"""

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from examples.demo.recording import Seen
from examples.demo.timeline import Timeline
from pliant.core.event import EventKind
from pliant.core.job import JobId

COLOURS = ("#4f86e6", "#f2a04e", "#57b684", "#b57bd9")
PALE = ("#c9daf8", "#fbe0c4", "#cdeadb", "#e7d7f3")
INK = "#333333"
CAPTION_WIDTH = 150
NO_BREAK = "\N{NO-BREAK SPACE}"


def draw(seen: Seen, path: Path) -> None:
    """Write the chart as a PNG image."""
    mpl.use("Agg")
    figure = Figure(figsize=(11, 5.4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    draw_slots(axes, seen)
    caption(axes, seen, "Slots held by two trainings that share them", width=CAPTION_WIDTH)
    axes.set_xlabel("time, seconds")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=6, frameon=False, fontsize=8.5)
    figure.savefig(path)


def draw_slots(axes: Axes, seen: Seen) -> None:
    """Draw the slots of every job over time, with the stages and what happened."""
    _stack(axes, seen)
    axes.axhline(seen.num_slots, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    mark_stages(axes, seen)
    for stage in seen.stages:
        _number(axes, stage.number, seen.elapsed_s(stage.began_at), seen.num_slots + 0.55)
    _mark_events(axes, seen)
    axes.set_ylabel("slots")
    axes.set_xlim(0, seen.elapsed_s(seen.now))
    axes.set_ylim(0, seen.num_slots + 1)
    axes.set_yticks(range(seen.num_slots + 1))
    axes.spines[["top", "right"]].set_visible(False)


def caption(axes: Axes, seen: Seen, title: str, *, width: int) -> None:
    """Write above a chart what it shows, and the titles of the stages."""
    captions = "     ".join(f"{stage.number} {stage.title}".replace(" ", NO_BREAK) for stage in seen.stages)
    lines = wrap(captions, width, break_on_hyphens=False)
    axes.set_title(title, loc="left", fontsize=13, color=INK, pad=8 + 13 * len(lines))
    axes.annotate(
        "\n".join(lines), (0, 1.02), xycoords="axes fraction", fontsize=8, color="#555555", va="bottom", linespacing=1.4
    )


def instants(seen: Seen) -> list[float]:
    """Return every instant at which a slot changed hands, or began to train or to answer."""
    begun = (*seen.events_of(EventKind.GENERATION_SWITCHED), *seen.events_of(EventKind.TASK_READY, seen.endpoint_id))
    changes = {point.at for point in seen.usage} | {event.at for event in begun}
    return sorted({seen.began_at, seen.now, *(at for at in changes if at >= seen.began_at)})


def layers(seen: Seen, job_id: JobId, times: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the slots of a job that trained right after each instant, and those that it held besides."""
    all_held, all_working = seen.held().get(job_id, Timeline()), seen.working().get(job_id, Timeline())
    held = [all_held.at(at) for at in times]
    training = [min(all_working.at(at), num) for at, num in zip(times, held, strict=True)]
    return training, [all_slots - busy for all_slots, busy in zip(held, training, strict=True)]


def _stack(axes: Axes, seen: Seen) -> None:
    times = instants(seen)
    rows: list[list[int]] = []
    labels, colours = [], []
    for job_id in seen.labels:
        hue, name = seen.hue(job_id), seen.name(job_id)
        verb = "answers" if job_id == seen.endpoint_id else "trains"
        rows += layers(seen, job_id, times)
        for label, colour in ((f"{name} {verb}", COLOURS[hue]), (f"{name} starts or leaves", PALE[hue])):
            labels.append(label if label not in labels else "_again")
            colours.append(colour)
    elapsed = [seen.elapsed_s(at) for at in times]
    axes.stackplot(elapsed, rows, labels=labels, colors=colours, step="post", edgecolor="white", linewidth=0.3)


def mark_stages(axes: Axes, seen: Seen) -> None:
    """Draw a line where each stage began."""
    for stage in seen.stages:
        axes.axvline(seen.elapsed_s(stage.began_at), color=INK, linewidth=0.8, alpha=0.6)


def _number(axes: Axes, number: int, x: float, y: float) -> None:
    axes.annotate(
        str(number),
        (x, y),
        ha="center",
        va="center",
        fontsize=9,
        color="white",
        bbox={"boxstyle": "circle,pad=0.25", "facecolor": INK, "edgecolor": "none"},
    )


def _mark_events(axes: Axes, seen: Seen) -> None:
    """Mark every decision, and every loss, on the axis."""
    marks = (
        (EventKind.DECISION, "^", "#111111", "decision of the scheduler"),
        (EventKind.TASK_LOST, "X", "#c01f2e", "a worker is lost"),
    )
    for kind, marker, colour, label in marks:
        at = [seen.elapsed_s(event.at) for event in seen.events_of(kind) if event.job_id in seen.labels]
        if at:
            axes.plot(
                at,
                [0.0] * len(at),
                marker,
                color=colour,
                markersize=7,
                clip_on=False,
                label=label,
                zorder=5,
                markeredgecolor="white",
                markeredgewidth=0.6,
            )
