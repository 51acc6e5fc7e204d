"""Searches whose best trial keeps bounds, from their beginning to their end."""

from pathlib import Path

import pytest
from tests.tune.searches.world import ANNA, JOB, World, settings_of

from pliant.core.known_trial import KnownTrial
from pliant.core.search import Constraint, Halving, Sampler, SearchState, TrialState
from pliant.core.space import Values
from pliant.tune.searches.new_search import FirstTrials

NARROW = Constraint(metric="memory", upper=10.0)


def memory(values: Values, epoch: int) -> float:
    width = values["width"]
    assert isinstance(width, int)
    return width + epoch / 10


def begun(folder: Path, bound: Constraint = NARROW, **changes: object) -> World:
    folder.mkdir(exist_ok=True)
    world = World(folder)
    world.jobs.measures = {"memory": memory}
    world.create(settings_of(constraints=(bound,), halving=Halving(min=1, max=9, factor=3), max_trials=9, **changes))
    return world


def test_those_that_keep_them_go_on_and_one_of_them_is_the_best(tmp_path: Path) -> None:
    world = begun(tmp_path)

    search = world.play()

    assert search.best is not None
    best = world.trials[search.best]
    assert best.violations == pytest.approx((memory(best.values, 9) - 10,))
    assert best.is_feasible
    pruned = [one for one in world.trials if one.state is TrialState.PRUNED and one.rung == 0]
    assert [sum(one.violations) for one in pruned] == pytest.approx([memory(one.values, 1) - 10 for one in pruned])
    assert not all(one.is_feasible for one in pruned)
    assert world.requests.best(ANNA, "s", 9) == (best,)


def test_neither_slots_nor_a_server_that_is_made_anew_decide_anything(tmp_path: Path) -> None:
    calm, slow = begun(tmp_path / "calm"), begun(tmp_path / "slow")
    slow.jobs.places = 2
    calm.play()
    for _ in range(200):
        slow.look()
        slow.start()
        slow.jobs.train()
        if slow.search.ended_at is not None:
            break

    assert slow.outcome() == calm.outcome()


def test_a_search_in_which_no_trial_keeps_them_says_which_is_nearest(tmp_path: Path) -> None:
    world = begun(tmp_path, Constraint(metric="memory", upper=0.5))

    search = world.play()

    assert (search.state, search.best) == (SearchState.COMPLETED, None)
    assert search.reason.endswith(f", and no trial keeps memory<=0.5; trial {search.nearest} is nearest")
    assert world.requests.best(ANNA, "s", 9) == ()


@pytest.mark.parametrize(("name", "notes"), [("random", 1), ("qmc", 1), ("tpe", 0), ("nsga2", 0)])
def test_who_takes_a_sampler_that_does_not_learn_from_them_is_told(tmp_path: Path, name: str, notes: int) -> None:
    world = World(tmp_path)
    archive = tmp_path / "code.tar.gz"
    archive.write_bytes(b"code")
    settings = settings_of(constraints=(NARROW,), sampler=Sampler(name=name))
    known = (KnownTrial(values={"lr": 0.1, "width": 16}, results=(0.1,), violations=(6.0,)),)
    first = FirstTrials(known=known if name == "tpe" else ())

    search, said = world.requests.create(ANNA, "s", settings, JOB, archive, None, first)

    assert [note for note in said if "does not learn from constraints" in note] == [*said][:notes]
    assert search.num_known == len(first.known)
    assert len(said) == notes
