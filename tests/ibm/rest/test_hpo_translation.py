"""HPO tasks of IBM's as searches: what is chosen, by what, and until when."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ibm.rest.conftest import outcome

from pliant.api.searches import SearchRequest
from pliant.core.errors import InvalidInput
from pliant.core.search import Halving, Objective, Sampler
from pliant.core.search_rules import problems_of_settings
from pliant.core.space import SearchParameter
from pliant.core.space_rules import problems_of_values
from pliant.ibm.rest.translate.hpo.request import read_hpo
from pliant.ibm.rest.translate.hpo.search import AskedSearch, name_fields_of_search, to_search
from pliant.policy.tuning.rungs import rungs_of, size_of
from pliant.tune.sampler_rules import problems_of_sampler

LR = {"name": "lr", "type": "Range", "dataType": "DOUBLE", "minDbVal": 0.001, "maxDbVal": 0.1}


def hpo(algorithm: str = "Random", params: Mapping[str, object] = {}, **changes: Any) -> dict[str, Any]:
    """Return what a client sends; what is changed in `algoDef` begins with `algo_`."""
    algo = {
        "algorithm": algorithm,
        "maxJobNum": 8,
        "objectiveMetric": "loss",
        "objective": "minimize",
        "algoParams": [{"name": name, "value": value} for name, value in params.items()],
    }
    algo |= {name.removeprefix("algo_"): value for name, value in changes.items() if name.startswith("algo_")}
    rest = {name: value for name, value in changes.items() if not name.startswith("algo_")}
    return {
        "modelSpec": {"args": "--exec-start PyTorch --model-main a.py"},
        "algoDef": algo,
        "hyperParams": [LR],
    } | rest


def read(sent: Mapping[str, Any], *, can_pause: bool = True, has_scipy: bool = True) -> AskedSearch:
    request, _ = read_hpo(json.dumps(sent))
    return to_search(request, can_pause=can_pause, has_scipy=has_scipy, seed=7)


def parameter(**sent: object) -> SearchParameter:
    """Return what a hyperparameter x may be."""
    return read(hpo(hyperParams=[{"name": "x", **sent}])).settings.parameters["x"]


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (
            {"type": "Range", "dataType": "double", "minDbVal": -1, "maxDbVal": 1.5},
            SearchParameter(kind="float", low=-1.0, high=1.5),
        ),
        (
            {"type": "range", "dataType": "INT", "minIntVal": 1, "maxIntVal": 9},
            SearchParameter(kind="int", low=1.0, high=9.0),
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 0.1, "maxDbVal": 0.35, "step": "0.1"},
            SearchParameter(kind="float", low=0.1, high=0.3, step=0.1),
        ),
        (
            {"type": "Range", "dataType": "Int", "minIntVal": 1, "maxIntVal": 10, "step": 4},
            SearchParameter(kind="int", low=1.0, high=9.0, step=4.0),
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": -4, "maxDbVal": -1, "power": "10"},
            SearchParameter(kind="float", low=0.0001, high=0.1, log=True),
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 1, "maxDbVal": 3, "power": "0.1"},
            SearchParameter(kind="float", low=0.001, high=0.1, log=True),
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": -4, "maxDbVal": -1, "power": 10, "step": 1},
            SearchParameter(kind="choice", choices=(0.0001, 0.001, 0.01, 0.1)),
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 0, "maxDbVal": 1, "power": 4, "step": 0.5},
            SearchParameter(kind="choice", choices=(1.0, 2.0, 4.0)),
        ),
        (
            {"type": "Range", "dataType": "INT", "minIntVal": 4, "maxIntVal": 6, "power": "2"},
            SearchParameter(kind="choice", choices=(16, 32, 64)),
        ),
        (
            {"type": "Range", "dataType": "INT", "minIntVal": 3, "maxIntVal": 3},
            SearchParameter(kind="fixed", value=3),
        ),
        (
            {"type": "Discrete", "dataType": "STR", "discreateStrVal": ["sgd", "adam", "sgd"]},
            SearchParameter(kind="choice", choices=("sgd", "adam")),
        ),
        (
            {"type": "Discrete", "dataType": "INT", "discreteIntVal": ["1", 2]},
            SearchParameter(kind="choice", choices=(1, 2)),
        ),
        (
            {"type": "discrete", "dataType": "DOUBLE", "discreteDbVal": [0.1, 1]},
            SearchParameter(kind="choice", choices=(0.1, 1.0)),
        ),
        ({"type": "fix", "dataType": "DOUBLE", "fixedVal": "0.5"}, SearchParameter(kind="fixed", value=0.5)),
        (
            {"dataType": "STR", "fixedVal": "a", "userDefined": True, "minDbVal": None},
            SearchParameter(kind="fixed", value="a"),
        ),
    ],
)
def test_a_hyperparameter_may_be_what_it_may_be_there(sent: dict[str, object], meant: SearchParameter) -> None:
    assert parameter(**sent) == meant


@pytest.mark.parametrize(
    ("sent", "field", "message"),
    [
        ({"type": "Range", "dataType": "FLOAT", "minDbVal": 0, "maxDbVal": 1}, "dataType", "'FLOAT' is none of them"),
        ({"type": "Range", "minDbVal": 0, "maxDbVal": 1}, "dataType", "it is missing; give INT, DOUBLE or STR"),
        ({"type": "List", "dataType": "INT"}, "type", "'List' is none of them; give Range, Discrete or fix"),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 1, "maxDbVal": 0},
            "minDbVal",
            "the range is empty: 1.0 is above maxDbVal, 0.0",
        ),
        ({"type": "Range", "dataType": "DOUBLE", "minDbVal": 1}, "maxDbVal", "it is missing"),
        ({"type": "Range", "dataType": "INT", "minDbVal": 1, "maxDbVal": 2}, "minIntVal", "it is missing"),
        ({"type": "Range", "dataType": "STR"}, "type", "a text has no range"),
        ({"type": "Discrete", "dataType": "INT", "discreteDbVal": [1.0]}, "discreteIntVal", "it is empty or missing"),
        ({"type": "fix", "dataType": "INT"}, "fixedVal", "it is missing"),
        ({"type": "fix", "dataType": "INT", "fixedVal": "1.5"}, "fixedVal", "1.5 is no whole number"),
        ({"type": "fix", "dataType": "DOUBLE", "fixedVal": "NaN"}, "fixedVal", "'NaN' is no number"),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 0, "maxDbVal": 1, "step": "0"},
            "step",
            "'0' is not above 0",
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 0, "maxDbVal": 1, "power": "1"},
            "power",
            "all powers of 1 are 1",
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 0, "maxDbVal": 1e9, "power": 10},
            "power",
            "10 to the power of 1000000000.0 is no number that can be kept",
        ),
        (
            {"type": "Range", "dataType": "INT", "minIntVal": 0, "maxIntVal": 99, "power": 10},
            "power",
            "10 to the power of 16 is no whole number up to",
        ),
        (
            {"type": "Range", "dataType": "DOUBLE", "minDbVal": 0, "maxDbVal": 1, "power": 2, "step": 1e-9},
            "step",
            "the range has 1,000,000,001 values; 1,000 are the most",
        ),
    ],
)
def test_a_wrong_hyperparameter_is_told_by_its_field(sent: dict[str, object], field: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parameter(**sent)
    (problem,) = [one for one in error.value.problems if one.field == f"hyperParams.0.{field}"]
    assert problem.message.startswith(f"of 'x': {message}")


def test_an_installed_algorithm_gets_its_parameters_as_texts() -> None:
    def asked(**params: object) -> Sampler:
        request, _ = read_hpo(json.dumps(hpo("mine", params)))
        return to_search(request, can_pause=True, has_scipy=True, seed=7, plugins=["mine", "random"]).settings.sampler

    assert asked(part=0.5, RandomSeed="9") == Sampler(name="mine", seed=9, options={"part": "0.5", "RandomSeed": "9"})
    assert asked(RandomSeed="x").seed == 7
    assert to_search(
        read_hpo(json.dumps(hpo("random")))[0], can_pause=True, has_scipy=True, seed=7, plugins=["random"]
    ).settings.sampler == Sampler(name="random", seed=7)
    many = {f"p{number}": 1 for number in range(51)} | {" ": 1, "long": "x" * 2000}
    with pytest.raises(InvalidInput) as error:
        asked(**many)
    assert [one.field for one in error.value.problems] == [
        "algoDef.algoParams.51.name",
        "algoDef.algoParams.52.value",
        "algoDef.algoParams",
    ]


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"algorithm": "Tpee"}, "algoDef.algorithm", "there is no algorithm 'Tpee'"),
        ({"algorithm": "Mine"}, "algoDef.algorithm", "install it, or take one of them"),
        ({"algorithm": ""}, "algoDef.algorithm", "it is missing"),
        ({"algo_objectiveMetric": ""}, "algoDef.objectiveMetric", "it is missing"),
        ({"algo_objective": "up"}, "algoDef.objective", "'up' is neither"),
        ({"algo_objective": None}, "algoDef.objective", "it is missing"),
        ({"algo_maxJobNum": 0}, "algoDef.maxJobNum", "0 is not from 1 to 100,000"),
        ({"algo_maxRunTime": -2}, "algoDef.maxRunTime", "-2 is not from 1"),
        ({"hyperParams": []}, "hyperParams", "there are none"),
        ({"hyperParams": [LR, LR]}, "hyperParams.1.name", "'lr' is given twice"),
        ({"hyperParams": [LR | {"name": "a b"}]}, "hyperParams.0.name", "'a b' is no name of a hyperparameter"),
        ({"experiments": [{"id": 0, "hyperParams": []}]}, "experiments", "there are hyperParams, too"),
        ({"algorithm": "ExperimentGridSearch"}, "experiments", "there are none"),
        (
            {"hyperParams": [], "experiments": [{"hyperParams": [LR]}]},
            "experiments",
            "they are for ExperimentGridSearch alone",
        ),
        ({"params": {"RandomSeed": "x"}}, "algoDef.algoParams.RandomSeed", "'x' is no whole number"),
        ({"algorithm": "Tpe", "params": {"WarmUp": "2"}}, "algoDef.algoParams.WarmUp", "'2' is no whole number from 3"),
        ({"algorithm": "Hyperband"}, "algoDef.algoParams.ResourceName", "Hyperband needs it"),
        (
            {"algorithm": "Hyperband", "params": {"ResourceName": "lr", "ResourceValue": "9"}},
            "algoDef.algoParams.ResourceName",
            "'lr' is among the hyperParams, too",
        ),
    ],
)
def test_a_wrong_task_is_told_by_its_field(changes: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read(hpo(**changes))
    assert message in {one.field: one.message for one in error.value.problems}[field]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as error:
        read(hpo("None", algo_objective="", algo_maxJobNum=-5, hyperParams=[{"name": ""}]))
    assert [one.field for one in error.value.problems] == [
        "algoDef.algorithm",
        "hyperParams.0.name",
        "algoDef.objective",
        "algoDef.maxJobNum",
    ]


def test_the_best_value_of_the_metric_counts() -> None:
    assert read(hpo()).settings.objectives == (Objective(metric="loss", direction="minimize", reading="min"),)
    up = read(hpo(algo_objective="Maximize")).settings.objectives
    assert up == (Objective(metric="loss", direction="maximize", reading="max"),)


@pytest.mark.parametrize(
    ("sent", "sampler"),
    [
        (hpo("random"), Sampler(name="random", seed=7)),
        (hpo("Random", {"RandomSeed": 12}), Sampler(name="random", seed=12)),
        (hpo("TPE"), Sampler(name="tpe", seed=7, options={"n_startup_trials": 20, "n_ei_candidates": 24})),
        (
            hpo("Tpe", {"WarmUp": "5", "EICandidate": "30", "RandomSeed": "1"}),
            Sampler(name="tpe", seed=1, options={"n_startup_trials": 5, "n_ei_candidates": 30}),
        ),
        (
            hpo("Bayesian", {"InitPoints": "4", "Noiseless": "false"}),
            Sampler(name="gp", seed=7, options={"n_startup_trials": 4, "deterministic_objective": False}),
        ),
    ],
)
def test_algorithms_are_samplers(sent: dict[str, Any], sampler: Sampler) -> None:
    assert read(sent).settings.sampler == sampler


def test_what_has_no_effect_is_told() -> None:
    notes = read(hpo("Tpe", {"GoodRatio": "0.3", "colour": "red"})).notes
    assert [one.split()[0] for one in notes] == ["algoParams:", "GoodRatio"]
    asked = read(hpo("Bayesian", {"CubeSize": "9"}, algo_maxParalleJobNum=4), has_scipy=False)
    assert (asked.settings.sampler.name, asked.settings.parallel) == ("tpe", 1)
    assert [one.split()[0] for one in asked.notes] == ["CubeSize", "Bayesian", "maxParalleJobNum"]


def test_limits_are_limits() -> None:
    settings = read(hpo(algo_maxRunTime=2, algo_maxJobNum=-1, algo_maxParalleJob=3)).settings
    assert (settings.max_trials, settings.max_time_s, settings.parallel) == (None, 120.0, 3)
    assert read(hpo()).settings.parallel == 1
    assert read(hpo(algo_maxParalleJobNum=-1)).settings.parallel is None
    endless = read(hpo(algo_maxJobNum=-1))
    assert endless.settings.max_trials == 100_000
    assert endless.notes[0].startswith("neither maxJobNum nor maxRunTime ends it")


def test_hyperband_is_halving_in_brackets() -> None:
    asked = read(hpo("Hyperband", {"ResourceName": "epochs", "ResourceValue": "27"}, algo_maxJobNum=-1))
    settings = asked.settings
    assert settings.halving == Halving(resource="epoch", min=1, max=27, factor=3, brackets=4)
    assert [(size_of(settings, one), rungs_of(settings, one)) for one in range(4)] == [
        (27, (1, 3, 9)),
        (12, (3, 9)),
        (6, (9,)),
        (4, ()),
    ]
    assert settings.max_trials == 49
    assert settings.parameters["epochs"] == SearchParameter(kind="fixed", value=27)
    steps = read(hpo("Hyperband", {"ResourceName": "max_iter", "ResourceValue": 10, "eta": "3"})).settings
    assert steps.halving == Halving(resource="step", min=2, max=10, factor=3, brackets=3)
    assert steps.max_trials == 8


def test_hyperband_of_what_cannot_pause_ends_nothing_early() -> None:
    sent = hpo("Hyperband", {"ResourceName": "epochs", "ResourceValue": "27"}, algo_maxJobNum=-1)
    asked = read(sent, can_pause=False)
    assert (asked.settings.halving, asked.settings.max_trials) == (None, 49)
    assert asked.notes[-1].startswith("Hyperband ends no experiment early")


def test_experiments_are_tried_as_they_are() -> None:
    experiments = [
        {
            "id": number,
            "hyperParams": [
                {"name": "lr", "dataType": "double", "fixedVal": lr},
                {"name": "opt", "dataType": "str", "fixedVal": "adam"},
            ],
        }
        for number, lr in enumerate([0.1, "0.2", 0.1])
    ]
    asked = read(hpo("ExperimentGridSearch", hyperParams=[], experiments=experiments, algo_maxJobNum=-1))
    assert asked.enqueued == (
        {"lr": 0.1, "opt": "adam"},
        {"lr": 0.2, "opt": "adam"},
        {"lr": 0.1, "opt": "adam"},
    )
    assert asked.settings.max_trials == 3
    assert asked.settings.parameters == {
        "lr": SearchParameter(kind="choice", choices=(0.1, 0.2)),
        "opt": SearchParameter(kind="fixed", value="adam"),
    }


def test_experiments_of_different_hyperparameters_are_refused() -> None:
    one, other = ({"name": name, "dataType": "INT", "fixedVal": 1} for name in ("a", "b"))
    experiments = [{"hyperParams": [one]}, {"hyperParams": [one, other]}]
    with pytest.raises(InvalidInput, match=r"experiments\.1\.hyperParams: there are a, b, and the first .* has a;"):
        read(hpo("ExperimentGridSearch", hyperParams=[], experiments=experiments))


def test_what_python_prints_is_read_as_json() -> None:
    sent = hpo("Random", {"RandomSeed": "3"}, algo_maxRunTime=None)
    assert read_hpo(str(sent))[1] == json.loads(json.dumps(sent))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{'a': __import__('os')}", "{'a'", "{'a': " + "-" * 100_000 + "1}", "{'a': " + "[" * 1000, '{"a": NaN}'],
)
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_hpo(text)


_NUMBERS = st.one_of(st.integers(-20, 20), st.floats(-1e3, 1e3), st.floats(allow_nan=False, allow_infinity=False))
_TEXTS = st.one_of(st.text(max_size=5), _NUMBERS.map(str), _NUMBERS)
_ANY_PARAM = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b", "c.d", "c_d", "epochs", ""]),
        "type": st.sampled_from(["Range", "Discrete", "fix", "range", "?"]),
        "dataType": st.sampled_from(["INT", "double", "Str", "?"]),
    },
    optional={
        "minDbVal": _NUMBERS,
        "maxDbVal": _NUMBERS,
        "minIntVal": st.integers(-9, 9),
        "maxIntVal": st.integers(-9, 99),
        "discreteDbVal": st.lists(_NUMBERS, max_size=4),
        "discreteIntVal": st.lists(st.integers(), max_size=4),
        "discreateStrVal": st.lists(st.text(max_size=3), max_size=4),
        "step": _TEXTS,
        "power": _TEXTS,
        "fixedVal": _TEXTS,
    },
)
_SMALL = st.integers(-6, 6)
_STEPS = st.sampled_from(["", "1", "0.1", 0.25, 3])
_BASES = st.sampled_from([None, "2", 10, "0.5", "1.7"])
_RANGE = st.one_of(
    st.builds(
        lambda low, num, step, power: {
            "type": "Range", "dataType": "INT", "minIntVal": low, "maxIntVal": low + num, "step": step, "power": power
        },
        _SMALL, st.integers(0, 9), _STEPS, _BASES,
    ),
    st.builds(
        lambda low, num, step, power: {
            "type": "range", "dataType": "double", "minDbVal": low, "maxDbVal": low + num, "step": step, "power": power
        },
        st.floats(-9, 9), st.floats(0, 9), _STEPS, _BASES,
    ),
)  # fmt: skip
_LISTED = st.one_of(
    st.builds(
        lambda values: {"type": "Discrete", "dataType": "INT", "discreteIntVal": values}, st.lists(_SMALL, min_size=1)
    ),
    st.builds(
        lambda values: {"type": "Discrete", "dataType": "str", "discreateStrVal": values},
        st.lists(st.text("ab é", max_size=3), min_size=1),
    ),
)
_FIXED = st.builds(lambda value: {"type": "fix", "dataType": "DOUBLE", "fixedVal": value}, st.floats(-9, 9))
_NAMED = st.builds(
    lambda name, one: {"name": name, **one},
    st.sampled_from(["a", "b", "c.d", "epochs"]),
    st.one_of(_RANGE, _LISTED, _FIXED),
)
_PARAM = st.one_of(_NAMED, _NAMED, _NAMED, _ANY_PARAM)
_EXPERIMENTS = st.lists(
    st.fixed_dictionaries({"hyperParams": st.lists(_FIXED.map(lambda one: {"name": "a", **one}), max_size=1)}),
    max_size=3,
)
_HYPERBAND = st.builds(
    lambda name, value, eta: {"ResourceName": name, "ResourceValue": value, "eta": eta},
    st.sampled_from(["epochs", "max_iter", "a", "a b"]), st.integers(0, 10**6), st.integers(1, 9),
)  # fmt: skip
_PARAMS = st.one_of(
    _HYPERBAND,
    st.fixed_dictionaries(
        {}, optional={"RandomSeed": st.integers(-1, 2**32), "WarmUp": st.integers(2, 9), "InitPoints": st.just("3")}
    ),
)


def _sent(algorithm: str, params: Mapping[str, object], limits: Mapping[str, object], given: object) -> dict[str, Any]:
    """Return what a client sends: mostly what goes together."""
    made = hpo(algorithm, params, **{f"algo_{name}": value for name, value in limits.items()}, hyperParams=given)
    return made | ({"experiments": given, "hyperParams": []} if algorithm == "ExperimentGridSearch" else {})


_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "maxJobNum": st.integers(-1, 10**5),
        "maxRunTime": st.one_of(st.integers(-2, 100), st.floats(0, 1e12)),
        "maxParalleJobNum": st.integers(-1, 20_000),
        "objective": st.sampled_from(["maximize", "Minimize", "up"]),
        "objectiveMetric": st.text(max_size=4),
    },
)
_HPO = st.one_of(
    st.builds(
        _sent,
        st.sampled_from(["Random", "bayesian", "Tpe", "Hyperband"]),
        _PARAMS,
        _LIMITS,
        st.lists(_PARAM, min_size=1, max_size=3, unique_by=lambda one: one["name"]),
    ),
    st.builds(_sent, st.just("ExperimentGridSearch"), st.just({}), _LIMITS, _EXPERIMENTS),
    st.builds(
        lambda sent, given: sent | {"experiments": given},
        st.builds(_sent, st.just("Random"), _PARAMS, _LIMITS, st.lists(_PARAM, max_size=2)),
        _EXPERIMENTS,
    ),
)


def fitting(sent: object) -> Any:
    """Return a search that Pliant's own route would take, or why it was refused."""
    request, _ = read_hpo(json.dumps(sent))
    asked = to_search(request, can_pause=True, has_scipy=True, seed=7)
    settings = asked.settings
    wrong = (*problems_of_settings(settings), *problems_of_sampler(settings))
    for values in asked.enqueued:
        wrong = (*wrong, *problems_of_values(settings.parameters, values))
    if wrong:
        raise InvalidInput(*name_fields_of_search(wrong))
    return asked


@given(sent=_HPO)
def test_whatever_is_sent_is_refused_in_words_or_is_a_search(sent: dict[str, Any]) -> None:
    found = outcome(fitting, sent)
    if isinstance(found, InvalidInput):
        known = ("algoDef", "hyperParams", "experiments", "data")
        assert {one.field for one in found.problems if not one.field.startswith(known)} == set()
        return
    settings = found.settings
    halving = settings.halving
    SearchRequest.model_validate(
        {
            "name": "s",
            "script": "a.py",
            "parameters": {
                name: {
                    part: value
                    for part in ("kind", "low", "high", "step", "log", "choices", "value")
                    if (value := getattr(one, part)) not in (None, ())
                }
                for name, one in settings.parameters.items()
            },
            "objectives": [{"metric": one.metric, "direction": one.direction} for one in settings.objectives],
            "sampler": {part: getattr(settings.sampler, part) for part in ("name", "seed", "options")},
            "halving": halving
            and {part: getattr(halving, part) for part in ("resource", "min", "max", "factor", "brackets")},
            "max_trials": settings.max_trials,
            "parallel": settings.parallel,
            "max_time_s": settings.max_time_s,
        }
    )


@given(low=st.integers(-8, 8), num=st.integers(0, 6), base=st.sampled_from([2, 3, 10]))
def test_powers_are_exact(low: int, num: int, base: int) -> None:
    made = parameter(type="Range", dataType="DOUBLE", minDbVal=low, maxDbVal=low + num, power=base, step=1)
    assert made.choices == tuple(
        float(base**exponent) if exponent >= 0 else 1 / base**-exponent for exponent in range(low, low + num + 1)
    )
