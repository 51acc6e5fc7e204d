"""The values of trials side by side: a line for each trial through an axis for each parameter, to what it came to."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from pliant.cli.searches.report.axis import Axis, axis_of, short, spans_orders
from pliant.cli.searches.report.canvas import BLUE, FAINT, HEIGHT, INK, ORANGE, PINK, WIDTH, Canvas, fitting, mixed
from pliant.cli.searches.report.frame import say_nothing, write_legend, write_title
from pliant.core.search import SearchSettings, Trial, TrialState
from pliant.core.space import SearchParameter, Value, same_as, text_of_value

_MAX_AXES: Final = 8
_MAX_TRIALS: Final = 1000
_MAX_LABELS: Final = 12
_TOP: Final = 130.0
_BOTTOM: Final = HEIGHT - 90.0
_ABSENT: Final = HEIGHT - 50.0
_PALE: Final = "#d5e3ee"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """An axis from below to above."""

    name: str
    at: float
    """How far from the left."""
    axis: Axis
    choices: tuple[Value, ...] = ()
    """What stands on it at 0, 1, …; empty: numbers."""
    is_result: bool = False

    def height(self, value: Value) -> float:
        if self.choices:
            found = next((i for i, one in enumerate(self.choices) if same_as(one) == same_as(value)), 0)
            return _BOTTOM - self.axis.place(found) * (_BOTTOM - _TOP)
        assert isinstance(value, int | float), "an axis of numbers has numbers"
        return _BOTTOM - self.axis.place(value) * (_BOTTOM - _TOP)


def draw_parallel(settings: SearchSettings, trials: Sequence[Trial], order: Sequence[str]) -> Canvas:
    """Return the values of the best trials that have completed.

    Args:
        order: parameters, the most important first; of too many the last are left out.
    """
    objective = settings.objectives[0]
    title = f"Values, and the {objective.metric} they came to"
    sign = -1 if objective.direction == "maximize" else 1
    known = [one for one in trials if one.state is TrialState.COMPLETED and one.results and isfinite(one.results[0])]
    shown = sorted(known, key=lambda one: (not one.is_feasible, sign * (one.results or (0.0,))[0], one.number))
    shown = shown[:_MAX_TRIALS]
    chosen = [name for name, one in settings.parameters.items() if one.kind != "fixed"]
    names = [name for name in dict.fromkeys((*order, *chosen)) if name in chosen]
    if not shown or not names:
        return say_nothing(title, "no trial has completed yet" if names else "nothing was chosen")
    results = [one.results[0] for one in shown if one.results]
    columns = _columns(settings, names[:_MAX_AXES], objective.metric, results)
    canvas = Canvas()
    write_title(canvas, title)
    for place, trial in reversed(list(enumerate(shown))):
        _draw_trial(canvas, columns, trial, place / max(1, len(shown) - 1))
    for column in columns:
        lacks = not column.is_result and any(column.name not in trial.values for trial in shown)
        _draw_column(canvas, column, lacks=lacks)
    more = len(names) - _MAX_AXES
    entries = [(ORANGE, "the best"), (BLUE, "better"), (_PALE, "worse")]
    if settings.constraints:
        entries.append((PINK, "violates a constraint"))
    if len(known) > len(shown):
        entries.append(("#ffffff", f"the best {len(shown):,} of {len(known):,} trials"))
    if more > 0:
        entries.append(("#ffffff", f"{more} parameters are not shown"))
    write_legend(canvas, entries)
    return canvas


def _columns(
    settings: SearchSettings, names: Sequence[str], metric: str, results: Sequence[float]
) -> tuple[_Column, ...]:
    first, last = 130.0, WIDTH - 110.0
    width = (last - first) / len(names)
    columns = [_column(name, settings.parameters[name], first + i * width) for i, name in enumerate(names)]
    axis = axis_of(results, log=spans_orders(results), margin=0.0)
    return (*columns, _Column(name=metric, at=last, axis=axis, is_result=True))


def _column(name: str, parameter: SearchParameter, at: float) -> _Column:
    if parameter.kind == "choice":
        high = max(1, len(parameter.choices) - 1)
        return _Column(name=name, at=at, axis=Axis(low=0.0, high=float(high)), choices=parameter.choices)
    assert parameter.low is not None
    assert parameter.high is not None
    return _Column(name=name, at=at, axis=axis_of([parameter.low, parameter.high], log=parameter.log, margin=0.0))


def _draw_trial(canvas: Canvas, columns: Sequence[_Column], trial: Trial, rank: float) -> None:
    """Draw the line of a trial; rank 0 is the best, 1 the worst."""
    assert trial.results is not None
    values = trial.values
    points = [(one.at, one.height(values[one.name]) if one.name in values else _ABSENT) for one in columns[:-1]]
    points.append((columns[-1].at, columns[-1].height(trial.results[0])))
    is_best = rank == 0 and trial.is_feasible
    colour = ORANGE if is_best else mixed(BLUE, _PALE, rank**0.6) if trial.is_feasible else PINK
    canvas.line(points, colour, 3.5 if is_best else 1.4)


def _draw_column(canvas: Canvas, column: _Column, *, lacks: bool) -> None:
    canvas.line([(column.at, _TOP), (column.at, _BOTTOM)], INK, 1.5)
    canvas.text((column.at, _TOP - 20), fitting(column.name, 125), anchor="mm")
    if column.choices:
        every = max(1, -(-len(column.choices) // _MAX_LABELS))
        marks = [(column.height(one), fitting(text_of_value(one), 70, 13)) for one in column.choices[::every]]
    else:
        marks = [(column.height(value), short(value)) for value in column.axis.ticks()]
    for height, text in marks:
        canvas.line([(column.at - 4, height), (column.at + 4, height)], INK, 1.5)
        canvas.label((column.at - 8, height), text)
    if lacks:
        canvas.text((column.at, _ABSENT + 18), "not there", size=12, anchor="mm", colour=FAINT)
