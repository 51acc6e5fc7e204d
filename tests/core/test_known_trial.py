"""Which trials of another study a search can learn from."""

from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pliant.core.job import JobSpec
from pliant.core.known_trial import KnownTrial, fit_known, problems_of_known, trials_of
from pliant.core.search import Constraint, Objective, Search, SearchSettings, TrialState
from pliant.core.space import SearchParameter, Values

SETTINGS = SearchSettings(
    parameters={
        "lr": SearchParameter(kind="float", low=1e-5, high=1.0, log=True),
        "decay": SearchParameter(kind="float", low=0.0, high=0.9, step=0.1),
        "depth": SearchParameter(kind="int", low=1, high=4),
        "act": SearchParameter(kind="choice", choices=("relu", 1, True, (64, (32, 16)))),
        "seed": SearchParameter(kind="fixed", value=7),
        "drop": SearchParameter(kind="float", low=0.0, high=1.0, when={"act": ("relu",)}),
    },
    objectives=(Objective(metric="loss", direction="minimize"),),
    max_trials=9,
)
SOUND = KnownTrial(values={"lr": 0.1, "decay": 0.3, "depth": 2, "act": 1}, results=(0.5,), reports=((1, nan), (3, 0.5)))


def search_of(settings: SearchSettings) -> Search:
    job = JobSpec(name="s", script="train.py", virtual_workers=8)
    return Search(name="s", owner="anna", settings=settings, job=job, checksum="0" * 64, created_at=5.0)


def test_values_become_those_that_the_search_would_choose() -> None:
    given: Values = {"lr": 1, "decay": 0.1 + 0.2, "depth": 2.0, "act": "[64,[32,16]]", "other": 3}

    fit, reasons = fit_known(SETTINGS, [replace(SOUND, values=given)])

    assert reasons == ()
    assert repr(fit[0].values) == repr({"lr": 1.0, "decay": 0.1 + 0.2, "depth": 2, "act": (64, (32, 16))})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"values": {**SOUND.values, "lr": 2.0}}, "values.lr"),
        ({"values": {**SOUND.values, "decay": 0.35}}, "values.decay"),
        ({"values": {**SOUND.values, "act": "gelu"}}, "values.act"),
        ({"values": {**SOUND.values, "act": "relu"}}, "values.drop"),
        ({"values": {**SOUND.values, "drop": 0.5}}, "values.drop"),
        ({"values": {"lr": 0.1, "decay": 0.3, "act": 1}}, "values.depth"),
        ({"values": {**SOUND.values, "seed": 8}}, "values.seed"),
        ({"state": TrialState.RUNNING}, "state"),
        ({"results": None}, "results"),
        ({"results": (1.0, 2.0)}, "results"),
        ({"results": (nan,)}, "results"),
        ({"results": (inf,)}, "results"),
        ({"reports": ((2, 0.1), (2, 0.2))}, "reports"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_and_left_out(changes: dict[str, object], field: str) -> None:
    wrong = replace(SOUND, **changes)  # type: ignore[arg-type]

    assert problems_of_known(SETTINGS, [SOUND]) == ()
    assert f"known.1.{field}" in {one.field for one in problems_of_known(SETTINGS, [SOUND, wrong])}
    fit, reasons = fit_known(SETTINGS, [wrong, SOUND])
    assert (fit, len(reasons)) == ((SOUND,), 1)


def test_a_trial_of_a_search_with_constraints_says_by_how_much_it_violates_them() -> None:
    bound = replace(SETTINGS, constraints=(Constraint(metric="size", upper=8.0),))
    sound = replace(SOUND, violations=(inf,))
    failed = KnownTrial(values=SOUND.values, state=TrialState.FAILED)

    assert problems_of_known(bound, [sound, failed]) == ()
    (lacks, many, none) = (
        *problems_of_known(bound, [SOUND, replace(SOUND, violations=(0.0, 1.0))]),
        *problems_of_known(SETTINGS, [sound]),
    )
    assert (lacks.field, many.field, none.field) == ("known.0.violations", "known.1.violations", "known.0.violations")
    assert lacks.message == "it lacks by how much it violates size<=8; say it, or leave the trial out"
    assert fit_known(bound, [SOUND, sound])[0] == (sound,)
    assert trials_of(search_of(bound), [sound])[0].violations == (inf,)


@example({"lr": 0.1, "decay": 1.7e308, "depth": 2, "act": 1})
@given(
    st.dictionaries(st.sampled_from([*SETTINGS.parameters, "x"]), st.floats() | st.text() | st.none() | st.just([1]))
)
def test_what_fits_is_never_refused(values: dict[str, object]) -> None:
    fit, reasons = fit_known(SETTINGS, [replace(SOUND, values=values)])  # type: ignore[arg-type]

    assert len(fit) + len(reasons) == 1
    assert problems_of_known(SETTINGS, fit) == ()


def test_known_trials_are_the_first_of_a_search_and_have_no_job() -> None:
    search = search_of(SETTINGS)

    first, second = trials_of(search, [SOUND, replace(SOUND, state=TrialState.PRUNED)])

    assert (first.number, first.is_known, first.ended, first.results) == (0, True, True, (0.5,))
    assert (second.number, second.state, second.ended_at) == (1, TrialState.PRUNED, 5.0)
