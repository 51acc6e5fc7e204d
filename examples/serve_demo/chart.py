"""The picture that the demo leaves: slots, requests and latency over the same seconds, one above the other.

Pure but for the file it writes: it draws what was seen.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from examples.demo.chart import COLOURS, INK, caption, draw_slots, mark_stages
from examples.demo.recording import Answer, Seen, quantile

TITLE = "A model that answers takes slots of two trainings, and gives them back"
CAPTION_WIDTH = 165
RED = "#c01f2e"


def draw(seen: Seen, path: Path) -> None:
    """Write the chart as a PNG image."""
    mpl.use("Agg")
    figure = Figure(figsize=(11, 8.6), dpi=150, layout="constrained")
    slots, requests, latency = figure.subplots(3, 1, sharex=True, height_ratios=(5, 3, 3))
    draw_slots(slots, seen)
    slots.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8.5)
    caption(slots, seen, TITLE, width=CAPTION_WIDTH)
    _draw_requests(requests, seen)
    _draw_latency(latency, seen)
    for axes in (requests, latency):
        mark_stages(axes, seen)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8.5)
    latency.set_xlabel("time, seconds")
    figure.savefig(path)


def per_second(seen: Seen, instants: Iterable[float]) -> list[int]:
    """Return how many of the instants lie in each second since the start of the demo; those outside do not count."""
    counts = Counter(int(seen.elapsed_s(at)) for at in instants)
    return [counts[second] for second in range(int(seen.elapsed_s(seen.now)) + 1)]


def latencies(seen: Seen) -> dict[int, list[float]]:
    """Return the latencies of right answers, in ms, by the second in which they were to be sent."""
    found: dict[int, list[float]] = defaultdict(list)
    for answer in seen.answers:
        if answer.is_right:
            found[int(seen.elapsed_s(answer.intended_at))].append(1000 * answer.latency_s)
    return dict(sorted(found.items()))


def _draw_requests(axes: Axes, seen: Seen) -> None:
    sent = per_second(seen, (answer.intended_at for answer in seen.answers))
    answered = per_second(seen, (answer.done_at for answer in seen.answers))
    edges = [*range(len(sent) + 1)]
    colour = _colour(seen)
    axes.stairs(answered, edges, color=colour, fill=True, alpha=0.45, label="answered")
    axes.stairs(sent, edges, color=INK, linewidth=1.3, label="sent")
    axes.set_ylabel("requests per second")
    axes.set_ylim(bottom=0)


def _draw_latency(axes: Axes, seen: Seen) -> None:
    colour = _colour(seen)
    right = [answer for answer in seen.answers if answer.is_right]
    axes.plot(*_points(seen, right), ".", color=colour, markersize=3, alpha=0.35, label="a request")
    by_second = latencies(seen)
    middles = [second + 0.5 for second in by_second]
    for part, style, label in ((0.5, "-", "p50"), (0.95, (0, (2, 1)), "p95")):
        values = [quantile(values, part) for values in by_second.values()]
        axes.plot(middles, values, color=INK, linewidth=1.4, linestyle=style, label=f"{label} of a second")
    if wrong := [answer for answer in seen.answers if not answer.is_right]:
        axes.plot(*_points(seen, wrong), "X", color=RED, markersize=7, label="failed or wrong")
    axes.set_ylabel("latency, ms")
    axes.set_ylim(bottom=0)


def _points(seen: Seen, answers: Iterable[Answer]) -> tuple[list[float], list[float]]:
    pairs = [(seen.elapsed_s(answer.intended_at), 1000 * answer.latency_s) for answer in answers]
    return [x for x, _ in pairs], [y for _, y in pairs]


def _colour(seen: Seen) -> str:
    return COLOURS[0 if seen.endpoint_id is None else seen.hue(seen.endpoint_id)]
