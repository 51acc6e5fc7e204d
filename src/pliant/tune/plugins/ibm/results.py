"""What a plug-in learns of trials that have ended (`last_exp_results`). Pure.

    {"id": 7, "state": "FINISHED", "metricVal": 0.31, "objective": "minimize",
     "hyperParams": [{"name": "lr", "dataType": "DOUBLE", "fixedVal": "-2.0"}], "values": {"lr": -2.0}}

IBM does not say what is in it; the names are those of an experiment in IBM's REST API. `values` and `objective` are
ours: the values as a plug-in answers with them, and which way is better.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, Literal

from pliant.core.search import SearchSettings, Trial, TrialState
from pliant.core.space import Values, text_of_value
from pliant.tune.plugins.ibm.parameters import answer_of, data_type

ExperimentState = Literal["FINISHED", "STOPPED", "FAILED", "KILLED"]
_STATES: Final[Mapping[TrialState, ExperimentState]] = MappingProxyType(
    {
        TrialState.COMPLETED: "FINISHED",
        TrialState.PRUNED: "STOPPED",
        TrialState.FAILED: "FAILED",
        TrialState.STOPPED: "KILLED",
    }
)


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What a trial came to, as a plug-in is told it."""

    number: int
    state: ExperimentState
    """FINISHED: it trained to its end. STOPPED: it was ended early because others were better, and its metric is that
    at this point. FAILED: it has no metric. KILLED: somebody stopped it."""
    metric: float | None


def outcomes_of(trials: Sequence[Trial], learned: Collection[int]) -> tuple[TrialOutcome, ...]:
    """Return what trials came to that have ended and that a plug-in does not know yet, by number."""
    return tuple(_outcome(one) for one in trials if one.ended and one.number not in learned)


def described(outcome: TrialOutcome, values: Values, settings: SearchSettings) -> dict[str, Any]:
    """Return one of the `last_exp_results`; each time new, for a plug-in may change it."""
    answer = answer_of(settings.parameters, values)
    return {
        "id": outcome.number,
        "state": outcome.state,
        "metricVal": outcome.metric,
        "objective": settings.objectives[0].direction,
        "hyperParams": [
            {"name": name, "dataType": data_type(settings.parameters[name]), "fixedVal": text_of_value(value)}
            for name, value in answer.items()
        ],
        "values": answer,
    }


def ranges_of(numbers: Collection[int]) -> list[list[int]]:
    """Return numbers as ranges, each with its first and its last."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _outcome(trial: Trial) -> TrialOutcome:
    state = _STATES[trial.state]
    metric = trial.results[0] if trial.results else None
    if metric is not None and not isfinite(metric):
        metric = None
    if state == "FINISHED" and metric is None:
        state = "FAILED"
    return TrialOutcome(trial.number, state, metric)
