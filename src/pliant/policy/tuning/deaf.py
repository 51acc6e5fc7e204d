"""Scripts that do not listen: trials with other values that report the very same."""

from collections.abc import Sequence
from math import isnan
from typing import Final

from pliant.core.search import Search, Trial
from pliant.policy.tuning.rungs import chosen

_NUM_COMPARED: Final = 3
"""Two may be equal by chance, as where a parameter has no effect on the first epoch."""


def find_deaf(search: Search, trials: Sequence[Trial]) -> str:
    """Return that a script seems not to use its values, by the first trials that report; empty if nothing says so."""
    first = [trial for trial in chosen(trials)[: 2 * _NUM_COMPARED] if trial.reports][:_NUM_COMPARED]
    values = {tuple(sorted((name, repr(value)) for name, value in trial.values.items())) for trial in first}
    if len(first) < _NUM_COMPARED or len(values) < _NUM_COMPARED or len({trial.reports[0] for trial in first}) > 1:
        return ""
    at, value = first[0].reports[0]
    if isnan(value):
        return ""
    metric = search.settings.objectives[0].metric
    ways = {
        "arguments": "--NAME=VALUE",
        "environment": "PLIANT_PARAM_NAME",
        "config": "config.json",
        "model": "ps.conf and parameters.json",
    }
    how = " or ".join(ways[way] for way in search.settings.pass_as)
    return (
        f"trials {', '.join(str(trial.number) for trial in first)} have other values and report the very same "
        f"{metric}, {value:g} at {at}: does the script read its values? They are given as {how}"
    )
