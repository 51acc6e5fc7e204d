"""A search that is played without trainings: trials end by a fixed pattern, with results that follow from values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.core.job import JobId
from pliant.core.search import Constraint, Objective, Pruner, Sampler, SamplerName, SearchSettings, Trial, TrialState
from pliant.core.space import Scalar, SearchParameter, Space, Values
from pliant.policy.tuning.constraints import violation_of
from pliant.tune.advice import Adviser, AdviserInput, Asked, Exhausted

NUMBERS: Final[Space] = {
    "lr": SearchParameter(kind="float", low=1e-5, high=0.1, log=True),
    "width": SearchParameter(kind="int", low=8, high=64, step=8),
    "decay": SearchParameter(kind="float", low=0.0, high=0.9, step=0.1),
    "seed": SearchParameter(kind="fixed", value=7),
}
ONE: Final[Space] = {"x": SearchParameter(kind="float", low=0.0, high=64.0)}
MIXED: Final[Space] = {
    **NUMBERS,
    "act": SearchParameter(kind="choice", choices=("relu", True, 1, None, (64, (32, 16)))),
}
CONDITIONAL: Final[Space] = {
    "opt": SearchParameter(kind="choice", choices=("sgd", "adam", "lion")),
    "momentum": SearchParameter(kind="float", low=0.0, high=1.0, when={"opt": ("sgd",)}),
    "beta": SearchParameter(kind="float", low=0.1, high=0.9, when={"opt": ("adam", "lion")}),
    "layers": SearchParameter(kind="int", low=1, high=4),
    "drop": SearchParameter(kind="float", low=0.0, high=0.5, when={"layers": (3, 4), "opt": ("adam",)}),
}
FINITE: Final[Space] = {
    "lr": SearchParameter(kind="choice", choices=(0.1, 0.01, 0.001)),
    "decay": SearchParameter(kind="float", low=0.0, high=0.4, step=0.1),
    "depth": SearchParameter(kind="int", low=1, high=3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A sampler, and a space for it."""

    name: SamplerName
    space: Space
    num_objectives: int = 1
    options: Mapping[str, Scalar] = field(default_factory=dict)
    num_trials: int = 40
    pruner: Pruner | None = None
    constraints: tuple[Constraint, ...] = ()

    @property
    def settings(self) -> SearchSettings:
        objectives = [
            Objective(metric=f"m{i}", direction="maximize" if i else "minimize") for i in range(self.num_objectives)
        ]
        return SearchSettings(
            parameters=self.space,
            objectives=tuple(objectives),
            sampler=Sampler(name=self.name, seed=3, options=self.options),
            pruner=self.pruner,
            constraints=self.constraints,
        )


BOUNDS: Final = (
    Constraint(metric="load", upper=45.0),
    Constraint(metric="load", lower=20.5),
)
KINDS: Final[Mapping[str, Kind]] = {
    "tpe": Kind(name="tpe", space=MIXED),
    "tpe-conditions": Kind(name="tpe", space=CONDITIONAL, options={"n_startup_trials": 5}),
    "tpe-objectives": Kind(name="tpe", space=MIXED, num_objectives=2),
    "tpe-objectives-conditions": Kind(name="tpe", space=CONDITIONAL, num_objectives=2, options={"group": True}),
    "tpe-constraints": Kind(name="tpe", space=MIXED, num_trials=24, constraints=BOUNDS),
    "random": Kind(name="random", space=CONDITIONAL),
    "grid": Kind(name="grid", space=FINITE),
    "gp": Kind(name="gp", space=MIXED, num_trials=9, options={"n_startup_trials": 2}),
    "gp-objectives": Kind(name="gp", space=NUMBERS, num_objectives=2, num_trials=7, options={"n_startup_trials": 2}),
    "gp-constraints": Kind(name="gp", space=ONE, num_trials=7, options={"n_startup_trials": 2}, constraints=BOUNDS[:1]),
    "cmaes": Kind(name="cmaes", space=NUMBERS),
    "cmaes-separable": Kind(name="cmaes", space=NUMBERS, options={"use_separable_cma": True, "popsize": 4}),
    "cmaes-margin": Kind(name="cmaes", space=NUMBERS, options={"with_margin": True, "consider_pruned_trials": True}),
    "cmaes-rate": Kind(name="cmaes", space=NUMBERS, options={"lr_adapt": True}),
    "nsga2": Kind(name="nsga2", space=MIXED, num_objectives=2, options={"population_size": 6}),
    "nsga2-constraints": Kind(
        name="nsga2", space=MIXED, num_objectives=2, options={"population_size": 6}, constraints=BOUNDS
    ),
    "nsga2-conditions": Kind(name="nsga2", space=CONDITIONAL, options={"population_size": 5}),
    "qmc": Kind(name="qmc", space=MIXED),
    "qmc-halton": Kind(name="qmc", space=NUMBERS, options={"qmc_type": "halton", "scramble": True}),
}


def score(values: Values, num_objectives: int) -> tuple[float, ...]:
    """Return what a trial comes to."""
    total = 0.0
    for i, name in enumerate(sorted(values)):
        value = values[name]
        place = float(value) if isinstance(value, int | float) else len(repr(value)) / 10
        total += (place - 0.3 * i) ** 2
    return tuple(total / (1 + i) + i * len(values) for i in range(num_objectives))


def violations_of(values: Values, constraints: Sequence[Constraint]) -> tuple[float, ...]:
    """Return how far a trial violates constraints: its load is the sum of its numbers."""
    load = sum(one for one in values.values() if isinstance(one, float | int) and not isinstance(one, bool))
    return tuple(violation_of(one, load) for one in constraints)


def trial_of(number: int, asked: Asked) -> Trial:
    """Return a trial that has just begun."""
    return Trial(
        search="played",
        number=number,
        values=asked.values,
        state=TrialState.RUNNING,
        job_id=JobId(f"job-{number}"),
        attributes=asked.attributes.get(number, {}),
        begun_at=float(number),
    )


def ended(trial: Trial, num_objectives: int, constraints: Sequence[Constraint] = ()) -> Trial:
    """Return a trial at its end: one in nine failed, one in seven (of one objective) was pruned."""
    results = score(trial.values, num_objectives)
    reports = ((1, results[0] + 1.0), (2, results[0]))
    if trial.number % 9 == 4:
        return replace(trial, state=TrialState.FAILED, reports=reports, ended_at=1.0)
    trial = replace(trial, violations=violations_of(trial.values, constraints))
    if trial.number % 7 == 3 and num_objectives == 1:
        return replace(trial, state=TrialState.PRUNED, reports=reports[:1], results=(results[0] + 1.0,), ended_at=1.0)
    return replace(trial, state=TrialState.COMPLETED, reports=reports, results=results, ended_at=1.0)


@dataclass(slots=True, kw_only=True)
class Played:
    """A search so far."""

    settings: SearchSettings
    trials: dict[int, Trial] = field(default_factory=dict)
    state: str = ""

    @property
    def opening(self) -> AdviserInput:
        return AdviserInput(name="played", settings=self.settings, trials=tuple(self.trials.values()), state=self.state)

    def ask(self, adviser: Adviser, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        number = len(self.trials)
        asked = adviser.ask(number, changed, given)
        if isinstance(asked, Asked):
            self.state = asked.state
            self.trials[number] = trial_of(number, asked)
        return asked

    def end(self, number: int) -> Trial:
        """Let a trial complete; return it."""
        results = score(self.trials[number].values, len(self.settings.objectives))
        self.trials[number] = replace(self.trials[number], state=TrialState.COMPLETED, results=results)
        return self.trials[number]


def play(
    kind: Kind,
    open_adviser: Callable[[AdviserInput], Adviser],
    *,
    in_flight: int = 4,
    renewed: Callable[[int], bool] = lambda _number: False,
) -> list[Values]:
    """Return what an adviser chooses; trials end in an order of their own.

    Args:
        kind: what is played.
        open_adviser: makes an adviser.
        in_flight: so many trials train at once.
        renewed: before which trials the adviser is made anew.
    """
    played = Played(settings=kind.settings)
    adviser = open_adviser(played.opening)
    changed: list[Trial] = []
    running: list[int] = []
    chosen = []
    for number in range(kind.num_trials):
        if renewed(number):
            adviser.close()
            adviser, changed = open_adviser(played.opening), []
        asked = played.ask(adviser, changed)
        assert isinstance(asked, Asked)
        chosen.append(asked.values)
        running.append(number)
        changed = _went_on(played, running, in_flight, kind)
    adviser.close()
    return chosen


def _went_on(played: Played, running: list[int], in_flight: int, kind: Kind) -> list[Trial]:
    """Let trials end until fewer than `in_flight` train, and one of the others pause."""
    changed = {}
    while len(running) >= in_flight:
        number = running.pop((len(played.trials) * 5) % len(running))
        changed[number] = ended(played.trials[number], kind.num_objectives, kind.constraints)
    if running and in_flight > 1:
        number = running[0]
        changed[number] = replace(played.trials[number], state=TrialState.PAUSED, reports=((1, 0.5),))
    played.trials |= changed
    return [changed[number] for number in sorted(changed)]
