"""Searches that begin with trials of another study."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from tests.tune.searches.world import ANNA, JOB, PlayedJobs, World, loss, settings_of

from pliant.core.errors import InvalidInput
from pliant.core.job import JobId
from pliant.core.known_trial import KnownTrial
from pliant.core.lifecycle import JobState
from pliant.core.search import Halving, Pruner, Sampler, SearchState, TrialState
from pliant.tune.searches.new_search import FirstTrials

KNOWN = tuple(
    KnownTrial(values=values, results=(loss(values, 9),), reports=tuple((at, loss(values, at)) for at in range(1, 10)))
    for lr in (0.001, 0.01, 0.1, 0.5)
    for width in (4, 16, 28)
    for values in [{"lr": lr, "width": width}]
)
WORST = tuple(replace(one, state=TrialState.FAILED, results=None) for one in KNOWN)


class Strict(PlayedJobs):
    """Jobs of which nobody asks for one that has no id."""

    def slot_hours(self, job_ids: Collection[JobId]) -> float:
        assert JobId("") not in job_ids
        return 0.0


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, jobs=Strict())


def test_they_are_its_first_and_count_for_no_limit(world: World) -> None:
    world.create(settings_of(max_trials=5, max_slot_hours=9.0), known=KNOWN)

    search = world.play()

    assert (search.state, search.num_trials, search.num_known) == (SearchState.COMPLETED, 17, 12)
    assert [one.values for one in world.trials[:12]] == [one.values for one in KNOWN]
    assert len(world.jobs.jobs) == 5
    assert search.reason == "all of its 5 trials have ended"
    assert search.best is not None
    assert search.best >= 12, "the best of known trials has no job to fetch results of"
    assert world.requests.best(ANNA, "s", 3)[0].number == search.best


def test_a_sampler_learns_from_them(tmp_path: Path) -> None:
    sampler = Sampler(name="tpe", seed=1)
    chosen = []
    for name, known in (("a", ()), ("b", KNOWN)):
        (tmp_path / name).mkdir()
        world = World(tmp_path / name)
        world.create(settings_of(sampler=sampler, max_trials=8, parallel=1), known=known)
        world.play(9)
        chosen.append([loss(one.values, 9) for one in world.trials[len(known) :]])

    assert min(chosen[1]) < min(chosen[0])
    assert sum(chosen[1]) < sum(chosen[0])


def test_whole_rungs_are_decided_without_them(tmp_path: Path) -> None:
    outcomes = []
    for name, known in (("a", ()), ("b", KNOWN)):
        (tmp_path / name).mkdir()
        world = World(tmp_path / name)
        world.create(settings_of(halving=Halving(max=9), max_trials=9), known=known)
        world.play()
        outcomes.append([(one.state, one.rung, one.results) for one in world.trials[len(known) :]])

    states = [state for state, _, _ in outcomes[1]]
    assert (states.count(TrialState.COMPLETED), states.count(TrialState.PRUNED)) == (1, 8)
    assert [rung for _, rung, _ in sorted(outcomes[1], key=str)] == [
        rung for _, rung, _ in sorted(outcomes[0], key=str)
    ]


def test_a_pruner_compares_with_them(world: World) -> None:
    world.create(settings_of(pruner=Pruner(name="median"), max_trials=6), known=KNOWN)

    world.play()

    assert any(one.state is TrialState.PRUNED for one in world.trials[12:])


@pytest.mark.parametrize("known", [WORST, tuple(replace(one, results=(-9.0,)) for one in KNOWN)])
def test_they_end_no_search(world: World, known: tuple[KnownTrial, ...]) -> None:
    world.create(settings_of(max_trials=2, target=-1.0), known=known)

    search = world.play()

    assert search.state is SearchState.COMPLETED
    assert [one.state for one in world.trials[12:]] == [TrialState.COMPLETED] * 2


def test_a_search_whose_own_trials_fail_has_failed(tmp_path: Path) -> None:
    world = World(tmp_path, jobs=PlayedJobs(curve=lambda _values, _epoch: None))
    world.create(settings_of(max_trials=5), known=KNOWN)

    assert world.play().state is SearchState.FAILED
    assert all(job.state in (JobState.FAILED, JobState.STOPPED) for job in world.jobs.jobs.values())


def test_a_new_server_goes_on_with_them(tmp_path: Path) -> None:
    sampler = Sampler(name="tpe", seed=1)
    values = []
    for name, restarts in (("a", False), ("b", True)):
        (tmp_path / name).mkdir()
        world = World(tmp_path / name)
        world.create(settings_of(sampler=sampler, parallel=1), known=KNOWN)
        for _ in range(200):
            world.settle()
            if world.search.ended_at is not None:
                break
            if restarts:
                world.start()
            world.jobs.train(9)
        values.append([one.values for one in world.trials])

    assert values[0] == values[1]


def test_what_does_not_fit_is_refused_and_nothing_is_kept(world: World) -> None:
    with pytest.raises(InvalidInput, match=r"known\.1\.values\.lr"):
        world.create(known=[KNOWN[0], replace(KNOWN[1], values={"lr": 7.0, "width": 4})])

    assert world.searches.search("s") is None


def test_it_is_said_that_a_sampler_does_not_learn_from_them(world: World) -> None:
    archive = world.folder / "code.tar.gz"
    archive.write_bytes(b"code")
    _, notes = world.requests.create(ANNA, "s", settings_of(), JOB, archive, None, FirstTrials(known=KNOWN))

    assert notes == ("random does not learn from trials that are known; tpe and gp do",)
