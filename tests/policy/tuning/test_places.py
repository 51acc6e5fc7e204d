"""As many trials train at once as there are slots for, and no more than the sampler can use."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.tuning.stage import settings_of

from pliant.core.population import Population
from pliant.core.search import Halving, Sampler, SamplerName
from pliant.core.space import SearchParameter
from pliant.policy.tuning.places import Places, places_of

RUNGS = Halving(min=1, max=9, factor=3)
ARRIVAL = Halving(min=1, max=9, factor=3, order="arrival")
FITTING = "the slots of its queue have room for so many"


@pytest.mark.parametrize(
    ("sampler", "halving", "fitting", "filling", "expected"),
    [
        ("random", None, 16, 2, Places(num=16, reason=FITTING)),
        ("nsga2", None, 16, 2, Places(num=16, reason=FITTING)),
        ("tpe", None, 3, 1, Places(num=3, reason=FITTING)),
        (
            "tpe",
            None,
            16,
            2,
            Places(num=4, reason="with more tpe chooses worse, and each trial may take several slots"),
        ),
        (
            "gp",
            ARRIVAL,
            16,
            8,
            Places(num=8, reason="gp chooses better with 4, but fewer would leave slots idle"),
        ),
        (
            "gp",
            None,
            16,
            16,
            Places(num=16, reason="gp chooses better with 4, but fewer would leave slots idle"),
        ),
        ("tpe", RUNGS, 8, 1, Places(num=8, reason=FITTING)),
        ("tpe", RUNGS, 16, 2, Places(num=9, reason="so many begin together")),
    ],
)
def test_the_number_follows_from_the_sampler_and_the_slots(
    sampler: SamplerName, halving: Halving | None, fitting: int, filling: int, expected: Places
) -> None:
    settings = settings_of(halving, sampler=Sampler(name=sampler))

    assert places_of(settings, num_fitting=fitting, num_filling=filling) == expected


@pytest.mark.parametrize(("num_parameters", "expected"), [(1, 4), (3, 7), (20, 12)])
def test_cmaes_has_its_population(num_parameters: int, expected: int) -> None:
    space = {f"x{i}": SearchParameter(kind="float", low=0.0, high=1.0) for i in range(num_parameters)}
    space["seed"] = SearchParameter(kind="fixed", value=7)
    settings = replace(settings_of(sampler=Sampler(name="cmaes")), parameters=space)

    assert places_of(settings, num_fitting=64, num_filling=1).num == expected


def test_cmaes_has_the_population_that_was_said() -> None:
    settings = settings_of(sampler=Sampler(name="cmaes", options={"popsize": 20}))

    assert places_of(settings, num_fitting=64, num_filling=1).num == 20


@given(
    st.sampled_from(["tpe", "random", "gp", "cmaes", "nsga2", "qmc"]),
    st.sampled_from([None, ARRIVAL]),
    st.integers(1, 100),
    st.integers(1, 100),
)
def test_no_slot_idles_for_the_samplers_sake(
    sampler: SamplerName, halving: Halving | None, fitting: int, filling: int
) -> None:
    found = places_of(settings_of(halving, sampler=Sampler(name=sampler)), num_fitting=fitting, num_filling=filling)

    assert min(fitting, filling) <= found.num <= fitting


@given(st.sampled_from(["tpe", "random", "gp"]), st.integers(1, 100), st.integers(1, 100), st.integers(1, 100))
def test_what_was_said_counts(sampler: SamplerName, said: int, fitting: int, filling: int) -> None:
    settings = settings_of(sampler=Sampler(name=sampler), parallel=said)

    assert places_of(settings, num_fitting=fitting, num_filling=filling) == Places(num=said, reason="as was said")


@pytest.mark.parametrize(("fitting", "expected"), [(4, 4), (16, 6)])
def test_a_population_trains_side_by_side(fitting: int, expected: int) -> None:
    settings = settings_of(population=Population(size=6, every=2, max=8), sampler=Sampler(name="tpe"))

    assert places_of(settings, num_fitting=fitting, num_filling=1).num == expected
