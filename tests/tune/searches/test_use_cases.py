"""What people ask of searches."""

from pathlib import Path

import pytest
from tests.tune.searches.world import ANNA, BEN, JOB, World, settings_of

from pliant.core.access import Principal, Role
from pliant.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Stale
from pliant.core.lifecycle import JobState
from pliant.core.search import Sampler, SearchState, TrialState
from pliant.core.space import SearchParameter
from pliant.tune.searches.new_search import FirstTrials

ADMIN = Principal(name="root", role=Role.ADMIN)


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.create()
    world.settle()
    return world


def test_a_search_without_a_name_gets_one(tmp_path: Path) -> None:
    world = World(tmp_path)

    search = world.create(name="")

    assert search.name == "search-1"


def test_a_taken_name_is_refused(world: World) -> None:
    with pytest.raises(Conflict, match="already"):
        world.create()


def test_others_see_it_only_if_it_is_shared_with_them(world: World) -> None:
    with pytest.raises(NotFound, match="there is no search 's'"):
        world.requests.get(BEN, "s")
    assert world.requests.page(BEN, "", 10) == ((), None)

    world.requests.change(ANNA, "s", {"shared_with": ("ben",)})

    assert world.requests.get(BEN, "s").name == "s"
    with pytest.raises(Forbidden, match="belongs to 'anna'"):
        world.requests.stop(BEN, "s")
    assert world.requests.get(ADMIN, "s").name == "s"


def test_a_name_that_is_nearly_one_is_named(world: World) -> None:
    world.create(name="digits-search")
    with pytest.raises(NotFound, match="is 'digits-search' meant"):
        world.requests.get(ANNA, "digits-serch")


def test_pages_go_on_after_their_last(world: World) -> None:
    world.create(name="t")
    world.create(name="u")

    first, after = world.requests.page(ANNA, "", 2)
    assert ([one.name for one in first], after) == (["s", "t"], "t")
    rest, end = world.requests.page(ANNA, "t", 2)
    assert ([one.name for one in rest], end) == (["u"], None)


def test_a_stopped_search_holds_its_jobs_and_a_resumed_one_lets_them_go_on(world: World) -> None:
    world.jobs.train()
    world.requests.stop(ANNA, "s")
    world.settle()
    assert {job.state for job in world.jobs.jobs.values()} == {JobState.PAUSED}
    assert {job.held for job in world.jobs.jobs.values()} == {"the search s is stopped"}
    with pytest.raises(Conflict, match="s is stopped already"):
        world.requests.stop(ANNA, "s")

    world.time += 100
    world.requests.resume(ANNA, "s")
    with pytest.raises(Conflict, match="s is running, not stopped"):
        world.requests.resume(ANNA, "s")
    assert world.play().state is SearchState.COMPLETED
    assert world.search.ran_s == 0.0  # a stop does not count; the clock stood still otherwise


def test_a_raised_limit_lets_a_search_go_on_that_had_come_to_it(world: World) -> None:
    world.play()
    world.requests.change(ANNA, "s", {"max_trials": 10})
    assert world.search.state is SearchState.RUNNING

    world.play()
    assert len(world.trials) == 10


def test_a_limit_that_is_lowered_begins_no_more(world: World) -> None:
    world.requests.change(ANNA, "s", {"max_trials": 4})
    assert world.said("change") == [(None, "its settings were changed")]

    world.play()
    assert len(world.trials) == 4


def test_a_change_of_something_else_than_was_read_is_refused(world: World) -> None:
    with pytest.raises(Stale, match="changed meanwhile"):
        world.requests.change(ANNA, "s", {"parallel": 2}, revision=1)


def test_wrong_changes_are_refused_with_all_that_is_wrong(world: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.requests.change(ANNA, "s", {"max_trials": None, "shared_with": ("nobody",)})

    assert [problem.field for problem in refused.value.problems] == ["max_trials", "shared_with.0"]


def test_added_trials_are_tried_next_and_beyond_the_limit(world: World) -> None:
    world.requests.add_trials(ANNA, "s", [{"lr": 0.25, "width": 7}, {"lr": 0.5}])

    world.play()
    assert len(world.trials) == 10
    assert dict(world.trials[4].values) == {"lr": 0.25, "width": 7}
    assert world.trials[5].values["lr"] == 0.5
    assert isinstance(world.trials[5].values["width"], int)
    assert ("lr=0.25 width=7 was asked for") in [reason for _, reason in world.said("ask")]


def test_added_trials_let_a_search_go_on_that_had_ended(world: World) -> None:
    world.play()
    world.requests.add_trials(ANNA, "s", [{"lr": 0.1, "width": 16}])

    world.play()
    assert world.search.best == 8
    assert world.trials[8].state is TrialState.COMPLETED


def test_wrong_values_are_refused_each_with_its_place(world: World) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.requests.add_trials(ANNA, "s", [{"lr": 0.1}, {"lr": 7.0, "widht": 3}])

    assert [problem.field for problem in refused.value.problems] == ["trials.1.lr", "trials.1.widht"]


def test_a_grid_is_given_all_values_or_none(tmp_path: Path) -> None:
    world = World(tmp_path)
    space = {name: parameter for name, parameter in settings_of().parameters.items() if name == "width"}
    space["depth"] = space["width"]
    world.create(settings_of(parameters=space, sampler=Sampler(name="grid")))

    with pytest.raises(InvalidInput, match="a grid chooses all values or none; give depth as well"):
        world.requests.add_trials(ANNA, "s", [{"width": 3}])


def test_values_that_cannot_be_together_are_left_out_with_a_reason(tmp_path: Path) -> None:
    world = World(tmp_path)
    space = {
        "opt": SearchParameter(kind="choice", choices=("adam", "sgd")),
        "momentum": SearchParameter(kind="int", low=1, high=3, when={"opt": ("sgd",)}),
    }
    world.create(settings_of(parameters=space, max_trials=3, sampler=Sampler(name="random", seed=1)))
    world.requests.add_trials(ANNA, "s", [{"momentum": 2}] * 6)

    assert world.play().state is SearchState.COMPLETED
    refused = [reason for _, reason in world.said("ask") if "cannot be tried" in reason]
    assert refused
    assert refused[0].startswith("momentum=2 was asked for, and cannot be tried: momentum is given, but its condition")
    assert len(world.trials) == 9 - len(refused)


def test_an_archive_is_kept_as_long_as_a_search_needs_it(world: World, tmp_path: Path) -> None:
    world.create(name="t")
    (kept,) = (tmp_path / "searches").iterdir()

    world.requests.remove(ANNA, "s")
    assert kept.exists()
    world.requests.remove(ANNA, "t")
    assert not kept.exists()


def test_values_that_a_search_begins_with_are_tried_first(tmp_path: Path) -> None:
    world = World(tmp_path)
    archive = tmp_path / "code.tar.gz"
    archive.write_bytes(b"code")
    settings, given = settings_of(max_trials=2), [{"lr": 0.5, "width": 3}, {"lr": 0.25, "width": 4}]

    world.requests.create(ANNA, "s", settings, JOB, archive, None, FirstTrials(enqueued=given))
    world.settle()

    assert [dict(trial.values) for trial in world.trials] == given
    with pytest.raises(InvalidInput, match=r"trials\.0\.lr: 5 is not from"):
        world.requests.create(ANNA, "t", settings, JOB, archive, None, FirstTrials(enqueued=[{"lr": 5}]))
