"""When a search is over."""

from dataclasses import replace

from tests.policy.tuning.stage import search_of, settings_of, trial_of

from pliant.core.population import Population
from pliant.core.search import Search, SearchState, Trial, TrialState
from pliant.policy.tuning.verdict import SearchEnd, headline, judge_search


def judged(search: Search, *trials: Trial, now: float = 10.0, slot_hours: float = 0.0) -> SearchEnd | None:
    return judge_search(replace(search, num_trials=len(trials)), trials, now=now, slot_hours=slot_hours)


def completed(number: int, result: float) -> Trial:
    return trial_of(number, state=TrialState.COMPLETED, results=(result,), reason=f"it came to val_loss {result:g}")


def failed(number: int, reason: str = "ValueError: no") -> Trial:
    return trial_of(number, state=TrialState.FAILED, reason=f"{reason}\nTraceback", ended_at=float(number))


def test_all_trials_ended() -> None:
    verdict = judged(search_of(settings_of(max_trials=2)), completed(0, 0.5), failed(1))

    assert verdict == SearchEnd(state=SearchState.COMPLETED, reason="all of its 2 trials have ended")


def test_a_population_all_of_whose_children_failed_says_so() -> None:
    search = search_of(settings_of(population=Population(size=2, every=1, max=3), max_trials=None))
    children = [replace(failed(number, "OSError: no"), parent=0, parent_epoch=1) for number in (2, 3)]
    verdict = judged(search, completed(0, 0.5), completed(1, 0.7), *children)
    fine = judged(search, completed(0, 0.5), completed(1, 0.7), children[0], replace(completed(3, 0.4), parent=0))

    assert verdict is not None
    assert verdict.reason == (
        "all 4 trials of its population have ended, and all that began from another one's state failed; "
        "trial 3: OSError: no"
    )
    assert fine is not None
    assert fine.reason == "all 4 trials of its population have ended"


def test_a_trial_that_has_not_ended_is_waited_for() -> None:
    assert judged(search_of(settings_of(max_trials=2)), completed(0, 0.5), trial_of(1)) is None


def test_no_trial_came_to_a_result() -> None:
    verdict = judged(search_of(settings_of(max_trials=2)), failed(0), failed(1, "KeyError: 'x'"))

    assert verdict == SearchEnd(
        state=SearchState.FAILED,
        reason="all of its 2 trials have ended, and no trial came to a result; trial 1: KeyError: 'x'",
    )


def test_first_trials_that_fail_alike_end_it() -> None:
    search = search_of(settings_of())
    verdict = judged(search, failed(0), failed(1), failed(2), trial_of(3))

    assert verdict == SearchEnd(
        state=SearchState.FAILED, reason="its first 3 trials failed alike, so it ends: ValueError: no"
    )
    assert judged(search, failed(0), failed(1), trial_of(2)) is None
    assert judged(search, failed(0), failed(1), failed(2, "KeyError: 'x'"), trial_of(3)) is None
    assert judged(search, failed(0), completed(1, 0.5), failed(2), failed(3), trial_of(4)) is None


def test_jobs_and_values_that_a_failure_names_do_not_make_it_another_one() -> None:
    said = "train.py raised {} (in job-{}.1, see home/jobs/job-{}/result/log)"
    unknown = [
        replace(failed(number, f"error: unknown --act={act} --lr={lr}"), values={"act": act, "lr": lr})
        for number, act, lr in ((0, "relu", 0.1), (1, "gelu", 2e-05), (2, "relu", 0.03))
    ]

    raised = judged(search_of(settings_of()), *(failed(n, said.format("KeyError", n + 7, n + 7)) for n in range(3)))
    refused = judged(search_of(settings_of()), *unknown)

    first = "its first 3 trials failed alike, so it ends:"
    assert raised is not None
    assert raised.reason == f"{first} {said.format('KeyError', 7, 7)}"
    assert refused is not None
    assert refused.reason == f"{first} error: unknown --act=relu --lr=0.1"


def test_what_a_script_printed_last_is_said_of_its_failure() -> None:
    reason = "train.py ended with exit code 2; the end of its stderr (log):\nusage: train.py\nerror: no --lr\n"

    assert headline(reason) == "train.py ended with exit code 2; the end of its stderr (log): error: no --lr"
    assert headline("KeyError: 'x'\nTraceback") == "KeyError: 'x'"
    assert headline("") == ""


def test_with_one_at_a_time_the_first_failure_ends_it() -> None:
    verdict = judged(search_of(settings_of(parallel=1)), failed(0))

    assert verdict is not None
    assert verdict.reason == "its first trial failed, so it ends: ValueError: no"


def test_the_target_was_reached() -> None:
    verdict = judged(search_of(settings_of(target=0.3)), completed(0, 0.5), completed(1, 0.25), trial_of(2))

    assert verdict is not None
    assert verdict.state is SearchState.COMPLETED
    assert verdict.reason == "trial 1: it came to val_loss 0.25; 0.3 was the target"


def test_limits_of_time_and_slots() -> None:
    timed = judged(search_of(settings_of(max_time_s=60.0)), completed(0, 0.5), trial_of(1), now=61.0)
    used = judged(search_of(settings_of(max_slot_hours=2.0)), completed(0, 0.5), trial_of(1), slot_hours=2.25)

    assert timed is not None
    assert timed.reason == "it has run for 61 s; 60 s is its limit"
    assert used is not None
    assert used.reason == "it has used 2.25 slot-hours; 2 is its limit"
