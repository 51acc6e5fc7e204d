"""A server that is killed at any write: the next one goes on as if nothing had happened."""

from pathlib import Path

import pytest
from tests.tune.searches.world import World, settings_of

from pliant.core.population import Population
from pliant.core.search import Halving, Pruner, Sampler, SearchSettings

_TPE = Sampler(name="tpe", seed=5, options={"n_startup_trials": 3})
SEARCHES = {
    "tpe": settings_of(sampler=_TPE, parallel=3, max_trials=7),
    "cmaes": settings_of(sampler=Sampler(name="cmaes", seed=5), parallel=2, max_trials=6),
    "halving": settings_of(sampler=_TPE, halving=Halving(min=1, max=9, factor=3, size=4), max_trials=8),
    "arrival": settings_of(halving=Halving(min=1, max=9, factor=3, order="arrival"), parallel=3),
    "population": settings_of(population=Population(size=4, every=2, max=9, fraction=0.5), parallel=2, max_trials=None),
    "pruner": settings_of(pruner=Pruner(name="median", options={"n_startup_trials": 2}), parallel=2),
}


def played(folder: Path, settings: SearchSettings, kill_at: tuple[int, bool] | None = None) -> World:
    world = World(folder)
    world.create(settings)
    world.searches.kill_at = kill_at
    world.play(killed=kill_at is not None)
    return world


@pytest.mark.parametrize("name", SEARCHES)
def test_it_goes_on_with_the_same_trials_wherever_it_was_killed(name: str, tmp_path: Path) -> None:
    calm = played(tmp_path, SEARCHES[name])
    assert calm.search.state == "completed"

    for number in range(1, calm.searches.num_writes + 1):
        for done in (False, True):
            world = played(tmp_path, SEARCHES[name], (number, done))
            assert world.outcome() == calm.outcome(), (number, done)
            assert all(job.ended for job in world.jobs.jobs.values())
            asked = [one.trial for one in world.searches.decisions("s") if one.kind == "ask"]
            assert asked == [one.number for one in calm.trials if one.parent is None]
            born = [one.trial for one in world.searches.decisions("s") if one.kind == "exploit"]
            assert born == [one.number for one in calm.trials if one.parent is not None]
