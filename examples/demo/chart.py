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
    _stack(axes, seen)
    axes.axhline(seen.num_slots, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    _mark_stages(axes, seen)
    _mark_events(axes, seen)
    _dress(axes, seen)
    figure.savefig(path)


def instants(seen: Seen) -> list[float]:
    """Return every instant at which a slot changed hands or began to train."""
    changes = {point.at for point in seen.usage} | {e.at for e in seen.events_of(EventKind.GENERATION_SWITCHED)}
    return sorted({seen.began_at, seen.now, *(at for at in changes if at >= seen.began_at)})


def layers(seen: Seen, job_id: JobId, times: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return the slots of a job that trained right after each instant, and those that it held besides."""
    training = [seen.training_at(job_id, at) for at in times]
    held = [seen.slots_at(job_id, at) for at in times]
    return training, [all_slots - busy for all_slots, busy in zip(held, training, strict=True)]


def _stack(axes: Axes, seen: Seen) -> None:
    times = instants(seen)
    rows: list[list[int]] = []
    labels, colours = [], []
    for (job_id, label), colour, pale in zip(seen.labels.items(), COLOURS, PALE, strict=False):
        rows += layers(seen, job_id, times)
        labels += [f"{label} trains", f"{label} starts or leaves"]
        colours += [colour, pale]
    elapsed = [seen.elapsed_s(at) for at in times]
    axes.stackplot(elapsed, rows, labels=labels, colors=colours, step="post", edgecolor="white", linewidth=0.3)


def _mark_stages(axes: Axes, seen: Seen) -> None:
    """Draw a numbered line where each stage began."""
    for stage in seen.stages:
        at = seen.elapsed_s(stage.began_at)
        axes.axvline(at, color=INK, linewidth=0.8, alpha=0.6)
        axes.annotate(
            str(stage.number),
            (at, seen.num_slots + 0.55),
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


def _dress(axes: Axes, seen: Seen) -> None:
    captions = "     ".join(f"{stage.number} {stage.title}".replace(" ", NO_BREAK) for stage in seen.stages)
    caption = "\n".join(wrap(captions, CAPTION_WIDTH, break_on_hyphens=False))
    axes.set_title("Slots held by two trainings that share them", loc="left", fontsize=13, color=INK, pad=34)
    axes.annotate(
        caption, (0, 1.02), xycoords="axes fraction", fontsize=8, color="#555555", va="bottom", linespacing=1.4
    )
    axes.set_xlabel("time, seconds")
    axes.set_ylabel("slots")
    axes.set_xlim(0, seen.elapsed_s(seen.now))
    axes.set_ylim(0, seen.num_slots + 1)
    axes.set_yticks(range(seen.num_slots + 1))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=6, frameon=False, fontsize=8.5)
