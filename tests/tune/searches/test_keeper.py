"""What keeps searches going: jobs follow what was decided."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from tests.tune.searches.world import ANNA, JOB, PlayedJobs, World, settings_of

from pliant.core.errors import Conflict, InvalidInput
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState
from pliant.core.population import Population
from pliant.core.search import Halving, Pruner, Sampler, SearchState, Trial, TrialState
from pliant.core.space import Values
from pliant.policy.tuning.places import Places
from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput, AdviserLost, Asked, Exhausted, Judgement


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_trials_are_jobs_with_their_values_as_arguments(world: World) -> None:
    world.create(job=replace(JOB, args=("--epochs", "9")))
    world.settle()

    (first, *_) = world.trials
    spec = world.jobs.jobs[first.job_id].spec
    assert spec.name == "s#0"
    assert spec.args == ("--epochs", "9", f"--lr={first.values['lr']!r}", f"--width={first.values['width']}")
    assert spec.trial is not None
    assert (spec.trial.search, spec.trial.number, spec.trial.values) == ("s", 0, first.values)


def test_values_that_reach_the_script_otherwise_are_no_arguments(world: World) -> None:
    world.create(settings_of(pass_as=("config",)))
    world.settle()

    assert {job.spec.args for job in world.jobs.jobs.values()} == {()}


def test_as_many_train_at_once_as_the_queue_has_places(world: World) -> None:
    world.create()
    world.settle()
    assert len(world.jobs.jobs) == 4

    assert world.play().state is SearchState.COMPLETED
    assert len(world.jobs.jobs) == 8


def test_no_more_than_parallel_train_at_once(world: World) -> None:
    world.create(settings_of(parallel=2))
    world.settle()

    assert len(world.jobs.jobs) == 2


def test_more_train_at_once_when_slots_come_and_none_begins_where_slots_went(world: World) -> None:
    search = world.create(settings_of(max_trials=20))
    world.settle()
    world.jobs.places = 6
    world.settle()
    assert len(world.jobs.jobs) == 6
    assert world.requests.outlook.places(search) == Places(num=6, reason="the slots of its queue have room for so many")

    world.jobs.places = 5
    world.jobs.train(world.jobs.num_epochs)
    world.settle()
    assert [one.ended for one in world.jobs.jobs.values()].count(False) == 5


def test_a_sampler_that_learns_has_no_more_in_flight_than_it_can_use_where_trials_take_the_other_slots(
    world: World,
) -> None:
    world.jobs.places = 12
    search = world.create(settings_of(sampler=Sampler(name="tpe", seed=1), max_trials=20))
    world.settle()
    assert len(world.jobs.jobs) == 4

    world.requests.change(ANNA, search.name, {"parallel": 7})
    world.settle()
    assert len(world.jobs.jobs) == 7


def test_who_waits_at_a_rung_is_held_and_who_is_pruned_is_stopped(world: World) -> None:
    world.create(settings_of(halving=Halving(min=1, max=9, factor=3), max_trials=6))
    world.settle()
    world.jobs.train()
    world.settle()
    assert [job.held for job in world.jobs.jobs.values()][:4] == ["it waits at rung 1 of 2, epoch 1"] * 4

    world.jobs.train()
    world.settle()
    states = [job.state for job in world.jobs.jobs.values()]
    assert states.count(JobState.STOPPED) == 4
    whys = [job.stopped for job in world.jobs.jobs.values() if job.stopped]
    assert all(re.fullmatch(r"the search s stopped it: val_loss \S+ at epoch 1 is number .*", why) for why in whys)
    assert [job.held for job in world.jobs.jobs.values() if not job.ended] == ["", ""]

    assert world.play().best == min(world.trials, key=lambda one: (one.results or (9.0,))[0]).number


def test_the_best_is_the_best_that_has_completed(world: World) -> None:
    search = replace(world.create(), name="s")
    world.play()

    best = min(world.trials, key=lambda one: (one.results or (9.0,))[0])
    assert (world.search.best, world.search.best_result) == (best.number, (best.results or ())[0])
    assert world.requests.best(ANNA, search.name, 3)[0] == best


def test_a_pruner_ends_those_that_are_worse(world: World) -> None:
    pruner = Pruner(name="median", options={"n_startup_trials": 1})
    world.create(settings_of(pruner=pruner, parallel=1))

    assert world.play().state is SearchState.COMPLETED
    pruned = [trial for trial in world.trials if trial.state is TrialState.PRUNED]
    assert pruned
    assert all(world.jobs.jobs[trial.job_id].state is JobState.STOPPED for trial in pruned)
    assert "is worse than the median" in pruned[0].reason


def test_a_search_whose_trials_fail_alike_ends(world: World) -> None:
    world.jobs.curve = lambda _values, _epoch: None
    world.create()
    world.play()

    assert world.search.state is SearchState.FAILED
    assert world.search.reason == "its first 3 trials failed alike, so it ends: ValueError: no"
    assert all(job.ended for job in world.jobs.jobs.values())


def test_a_metric_that_nobody_reports_ends_it_with_the_names_of_those_that_are(world: World) -> None:
    world.jobs.metrics = ("loss", "accuracy")
    world.create()
    world.play()

    assert world.search.state is SearchState.FAILED
    assert "without a value of val_loss; it reported accuracy, loss" in world.search.reason


def test_a_job_that_cannot_be_queued_fails_its_trial(world: World) -> None:
    world.create(settings_of(parallel=1))
    world.settle()
    world.jobs.train(9)
    world.jobs.refuse = InvalidInput.at("dataset", "there is no data set 'digits'")
    world.play()

    failed = [trial for trial in world.trials if trial.state is TrialState.FAILED]
    assert failed[0].reason == "its job could not be queued: dataset: there is no data set 'digits'"


def test_a_deleted_job_fails_its_trial(world: World) -> None:
    world.create()
    world.settle()
    job_id = world.trials[1].job_id
    world.jobs.jobs[job_id].state = JobState.STOPPED
    world.jobs.deleted.add(job_id)
    world.settle()

    assert world.trials[1].reason == f"its job {job_id} was deleted"


def test_jobs_of_a_search_that_was_removed_are_stopped(world: World) -> None:
    world.create()
    world.settle()
    world.requests.remove(ANNA, "s")
    world.keeper.look()

    assert {job.state for job in world.jobs.jobs.values()} == {JobState.STOPPED}


def test_limits_end_what_trains(world: World) -> None:
    world.create(settings_of(max_time_s=60.0, max_trials=None))
    world.settle()
    world.jobs.train()
    world.time += 61
    world.settle()

    assert world.search.reason == "it has run for 61 s; 60 s is its limit, and no trial came to a result"
    assert {trial.state for trial in world.trials} == {TrialState.STOPPED}
    assert all(job.ended for job in world.jobs.jobs.values())


def test_a_limit_of_slot_hours_counts_what_all_trials_used(world: World) -> None:
    world.create(settings_of(max_slot_hours=2.0, max_trials=None))

    assert world.play().reason.startswith("it has used 2.")


@dataclass(slots=True)
class _Metered(PlayedJobs):
    """Jobs that note whose hours were asked for."""

    asked: list[JobId] = field(default_factory=list)

    def slot_hours(self, job_ids: Collection[JobId]) -> float:
        self.asked += job_ids
        return PlayedJobs.slot_hours(self, job_ids)


def test_what_a_job_has_used_that_has_ended_is_asked_for_once_more_at_most(tmp_path: Path) -> None:
    jobs = _Metered(places=2)
    world = World(tmp_path, jobs=jobs)
    world.create(settings_of(max_slot_hours=1000.0, max_trials=6))
    world.settle()
    first = world.trials[0].job_id
    world.jobs.train(9)
    world.settle()
    world.keeper.look()
    num_asked = jobs.asked.count(first)

    world.play()
    assert world.search.state is SearchState.COMPLETED
    assert jobs.asked.count(first) == num_asked


# What may become of an adviser


@dataclass
class _Scripted:
    """An adviser that answers what it is told to."""

    answers: list[Asked | Exhausted | Exception]
    closed: int = 0
    openings: list[AdviserInput] = field(default_factory=list)

    def open(self, opening: AdviserInput) -> Adviser:
        self.openings.append(opening)
        return self

    def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def judge(self, number: int, changed: Sequence[Trial]) -> Judgement:
        return Judgement(prune=False)

    def importances(self) -> Mapping[str, float]:
        return {}

    def close(self) -> None:
        self.closed += 1


def _asked(lr: float = 0.1) -> Asked:
    return Asked(values={"lr": lr, "width": 1}, state="{}")


def test_what_chooses_values_fails_and_so_does_the_search(tmp_path: Path) -> None:
    adviser = _Scripted([_asked(), AdviserFailure("KeyError: 'lr'")])
    world = World(tmp_path, open_adviser=adviser.open)
    world.create()
    world.settle()

    assert world.search.state is SearchState.FAILED
    assert world.search.reason == "what chooses its values failed: KeyError: 'lr'"
    assert [trial.state for trial in world.trials] == [TrialState.STOPPED]
    assert adviser.closed == 1


def test_an_adviser_that_is_lost_is_replaced_by_one_that_continues(tmp_path: Path) -> None:
    adviser = _Scripted([_asked(), AdviserLost("it was killed"), _asked(0.2), AdviserLost("again"), _asked(0.3)])
    adviser.answers.append(Exhausted(reason="all was tried"))
    world = World(tmp_path, open_adviser=adviser.open)
    world.create()
    world.play()

    assert [trial.values["lr"] for trial in world.trials] == [0.1, 0.2, 0.3]
    assert [len(opening.trials) for opening in adviser.openings[:3]] == [0, 1, 2]
    assert [opening.state for opening in adviser.openings[:3]] == ["", "{}", "{}"]
    assert (world.search.state, world.search.reason) == (SearchState.COMPLETED, "all was tried")


def test_an_adviser_that_is_lost_again_and_again_fails_the_search(tmp_path: Path) -> None:
    adviser = _Scripted([AdviserLost("it gave no answer in 60 s") for _ in range(3)])
    world = World(tmp_path, open_adviser=adviser.open)
    world.create()
    world.settle()

    assert world.search.state is SearchState.FAILED
    assert world.search.reason == "what chooses its values was lost 3 times in a row: it gave no answer in 60 s"


def test_a_search_that_could_not_go_on_after_a_restart_may_be_resumed(tmp_path: Path) -> None:
    adviser = _Scripted([_asked(), AdviserFailure("it was begun with another version"), _asked(0.2)])
    adviser.answers.append(Exhausted(reason="all was tried"))
    world = World(tmp_path, open_adviser=adviser.open, jobs=PlayedJobs(places=1))
    world.create()
    assert not world.requests.is_recovering(world.search)
    world.settle()
    world.start()
    assert world.requests.is_recovering(world.search)
    world.jobs.train(9)
    world.settle()
    assert not world.requests.is_recovering(world.search)
    assert (world.search.state, world.search.unrecovered) == (SearchState.FAILED, True)

    world.requests.resume(ANNA, "s")
    assert (world.search.state, world.search.unrecovered) == (SearchState.RUNNING, False)
    world.play()
    assert [trial.values["lr"] for trial in world.trials] == [0.1, 0.2]
    assert (world.search.state, world.search.reason) == (SearchState.COMPLETED, "all was tried")


def test_a_search_whose_adviser_fails_at_once_or_while_it_lives_has_nothing_to_recover(tmp_path: Path) -> None:
    for answers in ([AdviserFailure("no")], [_asked(), AdviserFailure("no")]):
        world = World(tmp_path, open_adviser=_Scripted([*answers]).open)
        world.create()
        world.settle()
        assert (world.search.state, world.search.unrecovered) == (SearchState.FAILED, False)
        with pytest.raises(Conflict, match="s is failed, not stopped"):
            world.requests.resume(ANNA, "s")


def test_a_quick_trial_whose_job_has_completed_still_waits_at_its_rung(tmp_path: Path) -> None:
    world = World(tmp_path, jobs=PlayedJobs(places=9))
    world.create(settings_of(halving=Halving(min=1, max=9, factor=3), max_trials=9))
    world.settle()
    world.jobs.jobs[JobId("job-1")].epoch = 9
    world.jobs.jobs[JobId("job-1")].state = JobState.COMPLETED
    world.settle()
    assert world.trials[0].state is TrialState.PAUSED

    quick = world.play()
    calm = World(tmp_path, jobs=PlayedJobs(places=9))
    calm.create(settings_of(halving=Halving(min=1, max=9, factor=3), max_trials=9))
    calm.play()
    assert world.outcome() == calm.outcome()
    assert quick.best == calm.search.best


def test_what_a_job_that_cannot_pause_comes_to_counts_though_its_search_is_stopped(world: World) -> None:
    world.create(settings_of(parallel=1), job=replace(JOB, fixed=True))
    world.settle()
    world.jobs.train()
    world.requests.stop(ANNA, "s")
    world.settle()

    world.jobs.train(epochs=9)
    world.settle()

    assert [trial.state for trial in world.trials] == [TrialState.COMPLETED]
    assert (world.search.state, world.search.best) == (SearchState.STOPPED, 0)


def test_a_job_that_ends_while_its_search_is_stopped_counts(world: World) -> None:
    world.create(settings_of(parallel=1), job=replace(JOB, fixed=True))
    world.settle()
    world.requests.stop(ANNA, "s")
    world.jobs.train(epochs=9)

    world.settle()

    assert [trial.state for trial in world.trials] == [TrialState.COMPLETED]


def test_a_search_of_the_name_of_one_that_was_removed_begins_anew(world: World) -> None:
    world.create()
    world.settle()
    world.jobs.train()
    world.requests.remove(ANNA, "s")
    world.time += 1
    world.create(settings_of(sampler=Sampler(name="random", seed=7), max_trials=3))

    assert world.play().state is SearchState.COMPLETED
    assert len(world.trials) == 3
    assert {trial.state for trial in world.trials} == {TrialState.COMPLETED}
    own = {trial.job_id for trial in world.trials}
    assert {job.state for job_id, job in world.jobs.jobs.items() if job_id not in own} == {JobState.STOPPED}


@pytest.mark.parametrize("meanwhile", ["stop", "remove", "replace"])
def test_an_answer_that_nobody_needs_any_more_makes_no_trial(tmp_path: Path, meanwhile: str) -> None:
    """While the adviser thinks, its search is stopped, or removed, or another one has its name."""
    calls: list[int] = []

    class Slow(_Scripted):
        def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
            calls.append(number)
            if len(calls) == 1:
                (stage.requests.stop if meanwhile == "stop" else stage.requests.remove)(ANNA, "s")
                if meanwhile == "replace":
                    stage.time += 1
                    stage.create(settings_of(max_trials=2))
            return super().ask(number, changed, given)

    adviser = Slow([_asked(lr) for lr in (0.1, 0.2, 0.3, 0.4)])
    stage = World(tmp_path, open_adviser=adviser.open)
    stage.create(settings_of(max_trials=2))
    stage.settle() if meanwhile != "remove" else stage.keeper.look()

    found = stage.searches.search("s")
    if meanwhile == "replace":
        assert [trial.values["lr"] for trial in stage.trials] == [0.2, 0.3]
    else:
        assert found is None or (found.num_trials, stage.trials) == (0, ())
    assert adviser.closed >= 1


def test_a_child_is_queued_with_its_parent_when_it_is_to_train(world: World) -> None:
    world.create(settings_of(population=Population(size=4, every=2, max=9), max_trials=None, parallel=1))
    world.play()
    decided = [(one.kind, one.trial) for one in world.searches.decisions("s") if one.kind in ("exploit", "end")]
    child = world.trials[4]
    part = world.jobs.jobs[child.job_id].spec.trial

    assert decided == [("exploit", 4), ("exploit", 5), ("exploit", 6), ("exploit", 7), ("end", None)]
    assert child.parent is not None
    assert part is not None
    assert (part.parent_job, part.parent_epoch, part.keep_every) == (world.trials[child.parent].job_id, 2, 2)
    assert all(one.spec.trial is not None and one.spec.trial.keep_every == 2 for one in world.jobs.jobs.values())


def test_a_child_whose_parents_state_is_gone_has_failed_and_is_followed_by_another_one(world: World) -> None:
    world.create(settings_of(population=Population(size=4, every=2, max=9), max_trials=None))
    while len(world.trials) < 4 or not all(one.state is TrialState.PAUSED for one in world.trials):
        world.settle()
        world.jobs.train()
        if all(job.epoch == 2 for job in world.jobs.jobs.values()):
            break
    world.jobs.refuse = InvalidInput.at("resume_from", "the state is not there")
    world.settle()
    world.jobs.refuse = None
    world.play()

    assert (world.trials[4].state, world.trials[4].parent_epoch) == (TrialState.FAILED, 2)
    assert "its job could not be queued: " in world.trials[4].reason
    assert world.trials[5].parent_epoch == 4
    assert "in the place of trial 4" in dict(world.said("exploit"))[5]
    assert world.search.state is SearchState.COMPLETED


def test_nobody_adds_trials_to_a_population(world: World) -> None:
    world.create(settings_of(population=Population(size=4, every=2, max=9), max_trials=None))

    with pytest.raises(Conflict, match="s is a population, which makes its trials from one another"):
        world.requests.add_trials(ANNA, "s", [{"lr": 0.1}])
