"""What a new search can learn from: the trials of a study of Optuna that fit in its space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pliant.cli import formatting
from pliant.cli.searches.storage import read_study
from pliant.core.errors import InvalidInput
from pliant.core.input import values_of
from pliant.core.known_trial import MAX_KNOWN, KnownTrial, fit_known
from pliant.core.search import MAX_REPORTS, Constraint, SearchSettings
from pliant.core.search_text import read_constraint
from pliant.tune.study_messages import FoundTrial, StudyFound

_OPTION: Final = "--warm-start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Trials that a search begins with."""

    trials: Sequence[Mapping[str, Any]]
    """As a request takes them."""
    notes: tuple[str, ...]
    """What to say of them."""


def read_known(source: str, study: str | None, settings: SearchSettings) -> Known:
    """Return what of a study a search can learn from.

    Raises:
        InvalidInput: the study cannot be read, makes small what the search makes large, or has no trial that fits.
    """
    found = read_study(source, study, _OPTION, max_trials=MAX_KNOWN)
    _require_directions(found, settings)
    fit, reasons = fit_known(settings, [_known(trial, settings.constraints) for trial in found.trials])
    if not fit:
        why = f"; the first: {reasons[0]}" if reasons else ""
        message = f"the study {found.study!r} has {len(reasons)} trials that have ended, and none fits{why}"
        raise InvalidInput.at(_OPTION, message)
    return Known(trials=[values_of(KnownTrial, one) for one in fit], notes=tuple(_notes(found, len(fit), reasons)))


def _require_directions(found: StudyFound, settings: SearchSettings) -> None:
    asked = tuple(objective.direction for objective in settings.objectives)
    if found.directions != asked:
        theirs, ours = (", ".join(f"{one[:-1]}es" for one in ways) for ways in (found.directions, asked))
        message = f"the study {found.study!r} {theirs}, and this search {ours}; ask for the same, or name another study"
        raise InvalidInput.at(_OPTION, message)


def _known(trial: FoundTrial, constraints: Sequence[Constraint]) -> KnownTrial:
    values = {name: _tuples(value) for name, value in trial.values.items()}
    reports = trial.reports[:MAX_REPORTS]
    violations = [_violation(one, trial.constraints) for one in constraints]
    return KnownTrial(
        values=values,
        state=trial.state,
        results=trial.results,
        reports=reports,
        violations=tuple(one for one in violations if one is not None) if None not in violations else (),
    )


def _violation(constraint: Constraint, found: Mapping[str, float]) -> float | None:
    """Return by how much a trial violates a constraint; None: its study does not say.

    A study that bounds the same elsewhere says it, too: what violates `memory_gb<=8` by 1 violates `memory_gb<=6` by 3.
    """
    for name, violation in found.items():
        try:
            theirs = read_constraint(name)
        except InvalidInput:
            continue
        if replace(theirs, upper=constraint.upper, lower=constraint.lower) != constraint:
            continue
        if theirs.upper is not None and constraint.upper is not None:
            return violation + (theirs.upper - constraint.upper)
        if theirs.lower is not None and constraint.lower is not None:
            return violation + (constraint.lower - theirs.lower)
    return None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _notes(found: StudyFound, num_fit: int, reasons: Sequence[str]) -> list[str]:
    notes = [f"it begins with {formatting.count_of(num_fit, 'trial')} of the study {found.study}"]
    if reasons:
        notes.append(f"{formatting.count_of(len(reasons), 'trial')} of it cannot be taken; the first: {reasons[0]}")
    if found.num_ended > len(found.trials):
        notes.append(f"of its {found.num_ended:,} trials that have ended only the newest {MAX_KNOWN:,} are taken")
    if found.num_unended:
        notes.append(f"{formatting.count_of(found.num_unended, 'trial')} of it had not ended")
    return notes
