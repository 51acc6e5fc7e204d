"""IBM's algorithms as samplers and rungs. Pure.

| IBM | here |
|---|---|
| Random | random |
| Bayesian | gp, one after the other; tpe where SciPy is missing |
| Tpe | tpe |
| Hyperband | random, with rungs in brackets |
| ExperimentGridSearch | what is given, and nothing is chosen |
| the name of an installed algorithm | that one, with its parameters as texts |

Example of Hyperband: `ResourceValue` 27 and `eta` 3 have the rungs 1, 3 and 9 in four brackets: 27 experiments begin
together, 9 of them go on at epoch 1; then 12 that are first compared at epoch 3; then 6; then 4 that are not compared.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pliant.core.errors import InvalidInput, Problem
from pliant.core.near_name import near_name
from pliant.core.search import Halving, Sampler
from pliant.core.space import MAX_TEXT, Scalar
from pliant.ibm.rest.translate.hpo.request import AlgoDef
from pliant.ibm.rest.translate.hpo.space import no_name

ALGORITHMS: Final = ("Random", "Bayesian", "Tpe", "Hyperband", "ExperimentGridSearch")
EXPERIMENTS: Final = "ExperimentGridSearch"
_MAX_SEED: Final = 2**32 - 1
_MAX_RESOURCE: Final = 2**31 - 1
_MAX_BRACKETS: Final = 20
_MAX_NAMED: Final = 20
_MAX_NAME: Final = 100
_MAX_OPTIONS: Final = 50
_SEED_DIGITS: Final = 20
_FALSE: Final = ("false", "0", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """What Hyperband gives its experiments more of."""

    name: str
    """As the program finds it in config.json."""
    value: int
    """The most that an experiment gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HpoAlgorithm:
    """What chooses the values of experiments."""

    name: str
    """As IBM spells it."""
    sampler: Sampler
    halving: Halving | None = None
    resource: Resource | None = None
    one_by_one: bool = False
    """Every experiment is chosen by the results of all before."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Given:
    """What is said of an algorithm, and what was found to be wrong or without effect."""

    values: Mapping[str, str]
    seed: int
    has_scipy: bool
    least: int = 1
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number; what is none is noted."""
        text = self.values.get(name.lower(), "")
        if not text.strip():
            return default
        try:
            number = float(text)
            if number == int(number) and low <= number <= high:
                return int(number)
        except (ValueError, OverflowError):
            pass
        message = f"{text!r:.60} is no whole number from {low:,} to {high:,}; give one"
        self.problems.append(Problem(field=f"algoDef.algoParams.{name}", message=message))
        return default

    def require(self, name: str, what: str) -> str:
        """Return a text; one that is missing is noted."""
        text = self.values.get(name.lower(), "").strip()
        if not text:
            self.problems.append(
                Problem(field=f"algoDef.algoParams.{name}", message=f"Hyperband needs it; give {what}")
            )
        return text

    def sampler(self, name: Any, **options: Scalar) -> Sampler:
        """Return a sampler with the seed that is given."""
        return Sampler(name=name, seed=self.whole("RandomSeed", self.seed, 0, _MAX_SEED), options=options)


def name_of(text: str, plugins: Collection[str] = ()) -> str:
    """Return an algorithm's name as IBM spells it, or as it is installed.

    Args:
        plugins: the names of installed ones.

    Raises:
        InvalidInput: there is none of this name.
    """
    found = next((name for name in ALGORITHMS if name.lower() == text.strip().lower()), None)
    if found is not None:
        return found
    if text.strip() in plugins:
        return text.strip()
    near = near_name(text, [*ALGORITHMS, *plugins])
    meant = f"; is {near!r} meant?" if near else "; install it, or take one of them"
    said = f"there is no algorithm {text!r:.60}" if text else "it is missing"
    there = ", ".join([*ALGORITHMS, *sorted(plugins)[:_MAX_NAMED]])
    raise InvalidInput.at("algoDef.algorithm", f"{said}; there are {there}{meant if text else ''}")


def to_algorithm(
    given: AlgoDef, *, seed: int, has_scipy: bool, least: int = 1, plugins: Collection[str] = ()
) -> HpoAlgorithm:
    """Return what chooses the values of experiments.

    Args:
        seed: if none is given.
        has_scipy: without it there is no Gaussian process.
        least: Hyperband compares no experiment before it had so much of the resource.
        plugins: the names of installed algorithms that who asks may use.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    name = name_of(given.algorithm, plugins)
    if name not in ALGORITHMS:
        return _plugin(name, given, seed)
    values = {one.name.strip().lower(): one.value for one in given.algoParams}
    if given.hyperbandEta is not None:
        values.setdefault("eta", given.hyperbandEta)
    asked = _Given(values=values, seed=seed, has_scipy=has_scipy, least=least)
    read, known = _ALGORITHMS[name]
    unknown = [one.name for one in given.algoParams if one.name.strip().lower() not in known]
    asked.notes += [f"algoParams: {name} has no parameter {one!r:.60}, and it has no effect" for one in unknown]
    made = read(asked)
    if asked.problems:
        raise InvalidInput(*asked.problems)
    return made


def _plugin(name: str, given: AlgoDef, seed: int) -> HpoAlgorithm:
    """Return an installed algorithm, which is given its parameters as the texts that were sent."""
    problems = []
    options: dict[str, Scalar] = {}
    for place, one in enumerate(given.algoParams):
        field = f"algoDef.algoParams.{place}"
        if not one.name.strip() or len(one.name) > _MAX_NAME or not one.name.isprintable():
            problems.append(Problem(field=f"{field}.name", message=f"{one.name!r:.80} is no name; give one"))
        elif one.name in options:
            problems.append(Problem(field=f"{field}.name", message=f"{one.name!r} is given twice; give it once"))
        elif len(one.value) > MAX_TEXT or not (one.value.isprintable()):
            message = f"{one.value!r:.60} is no line of {MAX_TEXT} characters at most; give one"
            problems.append(Problem(field=f"{field}.value", message=message))
        options[one.name] = one.value
    if len(options) > _MAX_OPTIONS:
        message = f"there are {len(options)}; {_MAX_OPTIONS} are the most: give fewer"
        problems.append(Problem(field="algoDef.algoParams", message=message))
    if problems:
        raise InvalidInput(*problems)
    text = str(options.get("RandomSeed", ""))
    own = int(text) if text.isascii() and text.isdigit() and len(text) < _SEED_DIGITS else seed
    return HpoAlgorithm(name=name, sampler=Sampler(name=name, seed=min(own, _MAX_SEED), options=options))


def _random(asked: _Given) -> HpoAlgorithm:
    return HpoAlgorithm(name="Random", sampler=asked.sampler("random"), notes=tuple(asked.notes))


def _experiments(asked: _Given) -> HpoAlgorithm:
    return HpoAlgorithm(name=EXPERIMENTS, sampler=asked.sampler("random"), notes=tuple(asked.notes))


def _tpe(asked: _Given) -> HpoAlgorithm:
    warm_up = asked.whole("WarmUp", 20, 3, _MAX_RESOURCE)
    candidates = asked.whole("EICandidate", 24, 2, 100_000)
    asked.notes += [
        f"{name} has no effect: what counts as good is a tenth of the experiments, 25 at most"
        for name in ("GoodRatio", "GoodMax")
        if name.lower() in asked.values
    ]
    sampler = asked.sampler("tpe", n_startup_trials=warm_up, n_ei_candidates=candidates)
    return HpoAlgorithm(name="Tpe", sampler=sampler, notes=tuple(asked.notes))


def _bayesian(asked: _Given) -> HpoAlgorithm:
    first = asked.whole("InitPoints", 10, 1, _MAX_RESOURCE)
    if "cubesize" in asked.values:
        asked.notes.append("CubeSize has no effect: candidates are searched for by gradients, not in a list")
    if asked.has_scipy:
        is_exact = asked.values.get("noiseless", "true").strip().lower() not in _FALSE
        sampler = asked.sampler("gp", n_startup_trials=first, deterministic_objective=is_exact)
    else:
        asked.notes.append("Bayesian is tpe here: Gaussian processes need SciPy, which this server lacks")
        sampler = asked.sampler("tpe", n_startup_trials=first)
    return HpoAlgorithm(name="Bayesian", sampler=sampler, one_by_one=True, notes=tuple(asked.notes))


def _hyperband(asked: _Given) -> HpoAlgorithm:
    name = asked.require("ResourceName", "the parameter that says how long to train, such as epochs")
    text = asked.require("ResourceValue", "the most of it")
    if name and (message := no_name(name)):
        asked.problems.append(Problem(field="algoDef.algoParams.ResourceName", message=message))
    value = asked.whole("ResourceValue", 1, 1, _MAX_RESOURCE) if text else 1
    eta = asked.whole("eta", 3, 2, 100)
    num_rungs, reach = 0, eta
    while reach <= value and num_rungs + 1 < _MAX_BRACKETS:
        num_rungs, reach = num_rungs + 1, reach * eta
    while num_rungs and -(-value // int(pow(eta, num_rungs))) < asked.least:
        num_rungs -= 1
    halving = None
    if num_rungs:
        counts_steps = any(word in name.lower() for word in ("iter", "step"))
        halving = Halving(
            resource="step" if counts_steps else "epoch",
            min=-(-value // int(pow(eta, num_rungs))),
            max=value,
            factor=eta,
            brackets=num_rungs + 1,
        )
    elif not asked.problems:
        short = f"ResourceValue {value} is below eta, {eta}"
        few = f"no rung lies between {asked.least} and {value} by the factor {eta}"
        asked.notes.append(f"{short if value < eta else few}: nothing is compared before its end")
    return HpoAlgorithm(
        name="Hyperband",
        sampler=asked.sampler("random"),
        halving=halving,
        resource=Resource(name=name, value=value),
        notes=tuple(asked.notes),
    )


_ALGORITHMS: Final[Mapping[str, tuple[Callable[[_Given], HpoAlgorithm], frozenset[str]]]] = MappingProxyType(
    {
        "Random": (_random, frozenset({"randomseed"})),
        "Bayesian": (_bayesian, frozenset({"randomseed", "initpoints", "cubesize", "noiseless"})),
        "Tpe": (_tpe, frozenset({"randomseed", "warmup", "eicandidate", "goodratio", "goodmax"})),
        "Hyperband": (_hyperband, frozenset({"randomseed", "eta", "resourcename", "resourcevalue"})),
        EXPERIMENTS: (_experiments, frozenset({"randomseed"})),
    }
)
"""By name: how its parameters are read, and which it has."""
