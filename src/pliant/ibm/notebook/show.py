"""Shows how far a training is below the cell that runs it: one line and one chart, both drawn over as it goes on.

Without matplotlib there is the line alone. Nothing is printed for every step: a notebook keeps all that it is given.
"""

import importlib.util
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pliant.client.nouns.notebook import Put
from pliant.core.job import Job, Metric

LOSS: Final = "loss"
ACCURACY: Final = "accuracy"
_LOSS_COLOR: Final = "#1f5fa8"
_ACCURACY_COLOR: Final = "#b5541c"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A text, or a picture; a notebook asks for one or the other by these names."""

    text: str
    png: bytes | None = None

    def __repr__(self) -> str:
        return self.text

    def _repr_png_(self) -> bytes | None:
        return self.png


class Cell:
    """The output of one cell, as far as it changes.

    Args:
        display: None: a line is printed whenever the job has another state or size.
    """

    def __init__(self, display: Put | None) -> None:
        self._display = display
        self._handles: dict[str, Any] = {}
        self._said: object = None
        self._points: dict[str, list[tuple[int, float]]] = {LOSS: [], ACCURACY: []}
        self._can_draw = display is not None and importlib.util.find_spec("matplotlib") is not None

    @property
    def last_step(self) -> int:
        """The newest step that a point is known of; -1 before the first."""
        return max((points[-1][0] for points in self._points.values() if points), default=-1)

    def show(self, job: Job, points: Sequence[Metric]) -> None:
        """Show how far the job is, and points that have come since."""
        line = progress_line(job)
        news = (job.state, job.num_slots) if self._display is None else line
        if news != self._said:
            self._said = news
            self._put("line", _Shown(text=line))
        for point in points:
            self._points[point.name].append((point.step, point.value))
        if points and self._can_draw:
            self._put("chart", _Shown(text="", png=chart(self._points)))

    def _put(self, name: str, shown: _Shown) -> None:
        if self._display is None:
            print(shown)
        elif name in self._handles:
            self._handles[name].update(shown)
        else:
            self._handles[name] = self._display(shown)


def progress_line(job: Job) -> str:
    """Return how far a job is, in a line."""
    slots = f" on {job.num_slots} slot{'s' * (job.num_slots != 1)}" if job.num_slots else ""
    said = f"{job.id} is {job.state.value}{slots}"
    if job.progress is None:
        return f"{said}: {job.why}" if job.why and not (slots or job.ended) else said
    epoch = min(job.progress.epoch + (not job.ended), job.progress.num_epochs)
    loss = "" if job.progress.loss is None else f", loss {job.progress.loss:.4g}"
    return f"{said}: epoch {epoch}/{job.progress.num_epochs}{loss}"


def chart(points: dict[str, list[tuple[int, float]]]) -> bytes:
    """Return a PNG of the loss, and of the accuracy on an axis of its own, over the steps."""
    from matplotlib.figure import Figure  # an optional package, and slow to import

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel("step")
    axes.set_ylabel(LOSS, color=_LOSS_COLOR)
    axes.plot(*_columns(points[LOSS]), color=_LOSS_COLOR)
    if points[ACCURACY]:
        right = axes.twinx()
        right.set_ylabel(ACCURACY, color=_ACCURACY_COLOR)
        right.plot(*_columns(points[ACCURACY]), color=_ACCURACY_COLOR)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=100)
    return drawn.getvalue()


def _columns(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in points], [value for _, value in points]
