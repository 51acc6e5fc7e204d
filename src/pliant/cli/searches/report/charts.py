"""The charts of a report: the course of a search, importances, values side by side, and slots over time."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Final

from pliant.cli.searches.report.axis import Axis, axis_of, spans_orders
from pliant.cli.searches.report.canvas import (
    BLUE,
    COLOURS,
    FAINT,
    GREY,
    ORANGE,
    PINK,
    RED,
    Canvas,
    fitting,
)
from pliant.cli.searches.report.frame import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    ChartFrame,
    say_nothing,
    write_legend,
    write_title,
)
from pliant.cli.searches.report.slots import SlotHistory
from pliant.core.search import SearchSettings, Trial, TrialState

_MAX_BARS: Final = 15
_UNITS: Final[Sequence[tuple[int, str]]] = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


def draw_history(settings: SearchSettings, trials: Sequence[Trial]) -> Canvas:
    """Return the results by number, and the best one so far."""
    objective = settings.objectives[0]
    title = f"{objective.metric} by trial"
    points = [(trial, value) for trial in trials if (value := _value(trial)) is not None and isfinite(value)]
    if not points:
        return say_nothing(title, "no trial has a result yet")
    values = [value for _, value in points]
    numbers = [float(trial.number) for trial in trials]
    y = axis_of(values, log=spans_orders(values))
    frame = ChartFrame(title, axis_of(numbers, margin=0.02), y, ("trial", objective.metric), whole_x=True)
    for trial, value in points:
        frame.canvas.dot(
            frame.at(trial.number, value), _colour(trial), 5 if len(points) < 300 else 3 if len(points) < 3000 else 2
        )
    for trial in trials:
        if trial.state is TrialState.FAILED:
            frame.canvas.cross((frame.at(trial.number, y.low)[0], BOTTOM - 8), RED)
    best = list(_best_so_far(points, maximize=objective.direction == "maximize"))
    steps = [frame.at(number, value) for number, value in best]
    if steps:
        steps.append((frame.at(max(numbers), y.low)[0], steps[-1][1]))
    frame.canvas.line(steps, ORANGE, 2.5)
    write_legend(
        frame.canvas,
        [
            (BLUE, "completed"),
            *([(PINK, "violates a constraint")] if settings.constraints else []),
            (GREY, "pruned, its last value"),
            (RED, "failed"),
            (ORANGE, "best so far"),
        ],
    )
    return frame.canvas


def _value(trial: Trial) -> float | None:
    if trial.state not in (TrialState.COMPLETED, TrialState.PRUNED) or not trial.results:
        return None
    return trial.results[0]


def _colour(trial: Trial) -> str:
    if trial.state is not TrialState.COMPLETED:
        return GREY
    return BLUE if trial.is_feasible else PINK


def _best_so_far(points: Sequence[tuple[Trial, float]], *, maximize: bool) -> Iterator[tuple[float, float]]:
    """Yield the corners of a line of steps."""
    best: float | None = None
    for trial, value in points:
        if trial.state is not TrialState.COMPLETED or not trial.is_feasible:
            continue
        if best is None or (value > best if maximize else value < best):
            if best is not None:
                yield float(trial.number), best
            best = value
            yield float(trial.number), value


def draw_importances(importances: Mapping[str, float], reason: str) -> Canvas:
    """Return a bar for each parameter, the most important above."""
    title = "How much of the differences comes from each parameter"
    if not importances:
        return say_nothing(title, reason or "nobody can tell")
    canvas = Canvas()
    write_title(canvas, title)
    shown = sorted(importances.items(), key=lambda pair: -pair[1])[:_MAX_BARS]
    left, right = 320.0, RIGHT - 70
    height = min(90.0, (BOTTOM + 40 - TOP) / len(shown))
    most = max(value for _, value in shown) or 1.0
    for place, (name, value) in enumerate(shown):
        middle = TOP + height * (place + 0.5)
        end = left + (right - left) * value / most
        canvas.box((left, middle - height * 0.36), (end, middle + height * 0.36), BLUE)
        canvas.text((left - 12, middle), fitting(name, left - 60, 16), size=16, anchor="rm")
        canvas.text((end + 10, middle), f"{value:.0%}" if value >= 0.01 else f"{value:.1%}", colour=FAINT)
    canvas.line([(left, TOP - 6), (left, TOP + height * len(shown) + 6)], FAINT)
    if len(importances) > len(shown):
        canvas.text((RIGHT, BOTTOM + 55), f"and {len(importances) - len(shown)} more", anchor="rm", colour=FAINT)
    return canvas


def draw_slots(history: SlotHistory) -> Canvas:
    """Return the slots that trials held, stacked."""
    title = "Slots held by trials"
    if len(history.times) < 2 or not history.rows:
        return say_nothing(title, "no slots are known: the jobs were deleted, or belong to somebody else")
    unit, name = next(one for one in _UNITS if history.duration_s >= 3 * one[0] or one == _UNITS[-1])
    totals = [sum(row.slots[i] for row in history.rows) for i in range(len(history.times))]
    x = Axis(low=0.0, high=history.duration_s / unit)
    frame = ChartFrame(title, x, Axis(low=0.0, high=max(1.0, max(totals) * 1.05)), (f"{name} since it began", "slots"))
    below = [0.0] * len(history.times)
    for place, row in enumerate(history.rows):
        colour = GREY if row.trial is None else COLOURS[place % len(COLOURS)]
        _fill(frame, history, unit, below, row.slots, colour)
        below = [a + b for a, b in zip(below, row.slots, strict=True)]
    entries = [
        (GREY, "other trials") if row.trial is None else (COLOURS[place % len(COLOURS)], f"trial {row.trial}")
        for place, row in enumerate(history.rows)
    ]
    write_legend(frame.canvas, entries if len(entries) <= len(COLOURS) else [])
    if len(entries) > len(COLOURS):
        num_own = sum(row.trial is not None for row in history.rows)
        text = f"{num_own} trials, a colour for each; colours come again after {len(COLOURS)}"
        text += "; grey: all others, which held fewer" * (num_own < len(entries))
        frame.canvas.text((40, 71), text, colour=FAINT)
    frame.canvas.line([(LEFT, BOTTOM), (RIGHT, BOTTOM)], FAINT)
    return frame.canvas


def _fill(
    frame: ChartFrame, history: SlotHistory, unit: int, below: Sequence[float], slots: Sequence[int], colour: str
) -> None:
    for i, held in enumerate(slots[:-1]):
        if held:
            left, bottom = frame.at((history.times[i] - history.times[0]) / unit, below[i])
            right, top = frame.at((history.times[i + 1] - history.times[0]) / unit, below[i] + held)
            frame.canvas.box((left, top + 1), (right, bottom), colour)
