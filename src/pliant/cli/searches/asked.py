"""The options of `tune`, and of what changes a search."""

from collections.abc import Mapping
from typing import Final

from pliant.api.derive import settable
from pliant.cli.fields import FieldOption, Table, ask, options_of
from pliant.cli.options import JOB, ask_limit, ask_time
from pliant.core.errors import InvalidInput
from pliant.core.job import JobSettings
from pliant.core.search import SearchSettings


def _count(text: str, field: str) -> float:
    """Return the number that a text says.

    Raises:
        InvalidInput: it says none.
    """
    if not text.strip().isdecimal():
        raise InvalidInput.at(field, f"{text!r} is no whole number; give one, such as 40")
    return int(text)


LIMITS: Final[Table] = {
    "max_trials": ask("Begin so many trials at most.", metavar="N"),
    "parallel": ask("So many train at once at most; default: as many as there are slots for.", metavar="N"),
    "max_time_s": ask_time("Begin none after so long, and end those that train.", "--max-time"),
    "max_slot_hours": ask("The same after so many slots times hours.", metavar="HOURS"),
    "target": ask("End when a trial is as good as this.", metavar="NUMBER"),
    "description": ask("For people."),
    "shared_with": ask("Who else may see it; repeatable, * is everybody.", "--share", metavar="USER", type=list[str]),
}
_CHANGES: Final[Table] = {
    **LIMITS,
    "max_trials": ask_limit("Begin so many trials at most; or off.", "--max-trials", "N", _count),
    "parallel": ask_limit("So many train at once at most; or off.", "--parallel", "N", _count),
}
_SEARCH: Final[Table] = {
    "parameters": ask(
        "What may be chosen: lr=log:1e-5..1e-1, n=int:1..8, act=choice:relu,gelu. Repeatable.",
        "--param",
        metavar="NAME=KIND:BODY",
        type=list[str],
    ),
    "metric": ask(
        "What the script reports; :min or :max: its lowest or highest value counts.", metavar="NAME", type=str
    ),
    "objectives": ask(
        "One of several: NAME:minimize or NAME:maximize. Repeatable.", "--objective", metavar="NAME:WAY", type=list[str]
    ),
    "constraints": ask(
        "A bound that the best trial keeps: 'memory_gb<=8', 'acc>=0.9'. Repeatable.",
        "--constraint",
        metavar="BOUND",
        type=list[str],
    ),
    "sampler": ask(
        "tpe (the default), random, grid, gp, cmaes, nsga2, qmc, or an algorithm.", metavar="NAME", type=str
    ),
    "seed": ask("The same search with the same results chooses the same values.", metavar="N", type=int),
    "sampler_option": ask("An argument of the sampler. Repeatable.", metavar="K=V", type=list[str]),
    "halving": ask(
        "Rungs: trials pause at each, the best go on; such as 1..27:3.", metavar="[WHAT:]MIN..MAX[:BY]", type=str
    ),
    "halving_order": ask("rungs: results alone decide; arrival: who comes first.", metavar="rungs|arrival", type=str),
    "brackets": ask("Hyperband: so many first rungs in turns.", metavar="N", type=int),
    "rung_size": ask("Trials that begin together.", metavar="N", type=int),
    "pruner": ask("median, percentile, wilcoxon, patient or threshold.", metavar="NAME", type=str),
    "pruner_option": ask("An argument of the pruner. Repeatable.", metavar="K=V", type=list[str]),
    "population": ask(
        "Members, and at which epochs the worst go on from the best; such as 8:3..27.",
        metavar="SIZE:EVERY..MAX",
        type=str,
    ),
    "population_option": ask("fraction=0.25, factor=1.2 or resample=0.25. Repeatable.", metavar="K=V", type=list[str]),
    "pass_as": ask(
        "arguments, environment, config or model. Repeatable; default: the first two.", metavar="WAY", type=list[str]
    ),
    "warm_start": ask(
        "Learn from a study of Optuna: sqlite:///x.db, x.journal, env:VARIABLE.", metavar="STORAGE", type=str
    ),
    "study": ask("Which study of --warm-start, if there are several.", metavar="NAME", type=str),
    **LIMITS,
}
_JOB: Final[Table] = {**JOB, "name": ask("Of the search; default: the script's, with a number if that is taken.")}

OPTIONS: Final[Mapping[str, FieldOption]] = {
    **options_of(SearchSettings, _SEARCH),
    **options_of(JobSettings, _JOB, defaults=True),
}
"""Those of `tune`."""
CHANGES: Final[Mapping[str, FieldOption]] = options_of(
    SearchSettings, _CHANGES, but=[one.name for one in settable(SearchSettings) if one.name not in LIMITS]
)
"""Those of `searches set`."""
