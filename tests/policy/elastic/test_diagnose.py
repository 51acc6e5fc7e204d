"""What losses prove: properties over random histories, then one example of each verdict."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.job import NodeId, TaskId
from pliant.policy.elastic.diagnose import (
    MAX_KEPT,
    BadHost,
    CrashLoop,
    NodeHealth,
    NoNewcomer,
    PoisonStep,
    ProcessFailure,
    Rules,
    Verdict,
    WorkerLoss,
    add,
    diagnose,
    explain,
    failed_newcomers,
    losses_without_progress,
)

RULES = Rules()
ALONE = NodeHealth()


def loss(number: int, **facts: object) -> WorkerLoss:
    """Return the loss of task `number`, from a generation of its own, at step 7 unless told otherwise."""
    node = NodeId(str(facts.pop("node", "a")))
    how = str(facts.pop("how", "was killed by SIGSEGV"))
    death = ProcessFailure(task_id=TaskId(f"job-1.{number}"), node_id=node, how=how, signal=facts.pop("signal", 11))  # type: ignore[arg-type]
    given_: dict[str, object] = {
        "at": float(number),
        "step": 7,
        "reached": 7,
        "generation": number,
        "newest_task": number,
        **facts,
    }
    return WorkerLoss(deaths=(death,), **given_)  # type: ignore[arg-type]


def history(*losses: WorkerLoss) -> tuple[WorkerLoss, ...]:
    kept: tuple[WorkerLoss, ...] = ()
    for one in losses:
        kept = add(kept, one)
    return kept


def scene(*spare_nodes: str, healthy_nodes: Sequence[str] = ()) -> NodeHealth:
    return NodeHealth(
        spare_nodes=frozenset(map(NodeId, spare_nodes)), healthy_nodes=frozenset(map(NodeId, healthy_nodes))
    )


NODES = st.sampled_from(["a", "b", "c"])


@st.composite
def histories(draw: st.DrawFn) -> tuple[WorkerLoss, ...]:
    """Losses of a job as they come about: steps only grow, generations and task numbers too."""
    kept: tuple[WorkerLoss, ...] = ()
    at, reached, generation, newest = 0.0, 0, 1, 3
    for _ in range(draw(st.integers(0, 12))):
        at += draw(st.sampled_from([0.1, 5.0, 200.0]))
        reached += draw(st.sampled_from([0, 0, 1, 50]))
        generation += draw(st.integers(0, 1))
        newest += draw(st.integers(0, 2))
        member = draw(st.booleans())
        one = loss(
            draw(st.integers(1, newest)),
            node=draw(NODES),
            at=at,
            step=draw(st.integers(max(0, reached - 1), reached)),
            reached=reached,
            generation=generation,
            newest_task=newest,
            member=member,
            made_progress=member and draw(st.booleans()),
        )
        kept = add(kept, one)
    return kept


SCENES = st.builds(
    scene, st.just("a"), st.just("b"), healthy_nodes=st.lists(NODES, max_size=2)
) | st.just(ALONE)  # fmt: skip


@given(histories(), SCENES)
def test_a_step_committed_since_the_loss_before_proves_that_it_is_no_loop(
    losses: tuple[WorkerLoss, ...], where: NodeHealth
) -> None:
    verdict = diagnose(losses, where, RULES)

    if isinstance(verdict, PoisonStep | CrashLoop):
        assert len({one.reached for one in verdict.losses}) == 1
        assert len(verdict.losses) >= RULES.poison_losses


@given(histories(), SCENES)
def test_a_host_is_blamed_only_for_what_happened_there_and_if_the_job_can_do_without_it(
    losses: tuple[WorkerLoss, ...], where: NodeHealth
) -> None:
    verdict = diagnose(losses, where, RULES)

    if isinstance(verdict, BadHost):
        assert verdict.node_id in where.spare_nodes
        assert {death.node_id for one in verdict.losses for death in one.deaths} == {verdict.node_id}
        assert len(verdict.losses) >= RULES.host_losses


@given(histories())
def test_fewer_losses_than_any_rule_asks_for_prove_nothing(losses: tuple[WorkerLoss, ...]) -> None:
    assert diagnose(losses[-2:], scene("a", "b", "c", healthy_nodes=["a", "b", "c"]), RULES) is None


@given(histories(), SCENES)
def test_every_verdict_names_every_process_and_says_what_to_do(
    losses: tuple[WorkerLoss, ...], where: NodeHealth
) -> None:
    verdict = diagnose(losses, where, RULES)

    if verdict is not None:
        said = explain(verdict)
        assert all(f"{death.task_id} on {death.node_id} " in said for one in verdict.losses for death in one.deaths)
        assert "what to do: " in said


@given(histories(), SCENES, st.integers(1, 30))
def test_a_loop_does_not_go_on_for_ever(losses: tuple[WorkerLoss, ...], where: NodeHealth, number: int) -> None:
    """Whatever was before, so many more losses at one step end the job or exclude a host."""
    last = losses[-1] if losses else loss(1)
    for n in range(1, RULES.max_losses + 1):
        generation = last.generation + n
        losses = add(
            losses, replace(loss(100 * number + n), reached=last.reached, at=last.at + n, generation=generation)
        )
    assert diagnose(losses, where, RULES) is not None


@given(st.lists(histories(), max_size=5))
def test_only_the_newest_losses_are_kept(several: list[tuple[WorkerLoss, ...]]) -> None:
    kept: tuple[WorkerLoss, ...] = ()
    for losses in several:
        for one in losses:
            kept = add(kept, one)
            assert kept[-1].deaths[-1] == one.deaths[-1]
    assert len(kept) <= MAX_KEPT


@given(histories())
def test_rows_are_ends_of_the_history(losses: tuple[WorkerLoss, ...]) -> None:
    for row in (losses_without_progress(losses), failed_newcomers(losses)):
        assert row == losses[len(losses) - len(row) :]


# -- which losses are one ---------------------------------------------------------------------------------------------


def test_processes_lost_together_are_one_loss() -> None:
    together = [loss(n, generation=1, newest_task=3, at=10.0 + n) for n in (2, 1, 3)]

    (one,) = history(*together)

    assert [death.task_id for death in one.deaths] == ["job-1.2", "job-1.1", "job-1.3"]


def test_a_newcomer_that_dies_after_the_last_member_was_lost_with_it() -> None:
    member = loss(1, generation=1, newest_task=2, step=6, reached=6)
    newcomer = loss(2, generation=0, newest_task=2, step=7, reached=7, member=False)

    (one,) = history(member, newcomer)

    assert (one.step, one.reached, one.member, one.generation) == (7, 7, True, 1)


@pytest.mark.parametrize(
    "later",
    [
        loss(1, generation=2, newest_task=3),
        loss(4, generation=1, newest_task=4),
        loss(2, generation=1, newest_task=3, reached=90, at=60.0),
    ],
    ids=["another generation", "a newer process", "later and after more steps"],
)
def test_what_was_not_lost_together_is_another_loss(later: WorkerLoss) -> None:
    assert len(history(loss(3, generation=1, newest_task=3), later)) == 2


# -- verdicts ---------------------------------------------------------------------------------------------------------


def verdict_of(*losses: WorkerLoss, where: NodeHealth = ALONE) -> Verdict | None:
    return diagnose(history(*losses), where, RULES)


def test_three_members_lost_at_one_step_prove_a_poison_step() -> None:
    assert verdict_of(loss(1), loss(2)) is None
    verdict = verdict_of(loss(1), loss(2), loss(3, node="b"))

    assert isinstance(verdict, PoisonStep)
    assert verdict.step == 7
    assert explain(verdict).splitlines() == [
        "step 7 kills whoever computes it: 3 times in a row workers were lost at it, with no step committed in between",
        "  job-1.1 on a was killed by SIGSEGV",
        "  job-1.2 on a was killed by SIGSEGV",
        "  job-1.3 on b was killed by SIGSEGV",
        "what to do: a native library crashed; the samples of step 7 are the same every time (`pliant submit --audit` "
        "records which)",
    ]


def test_losses_at_different_steps_of_one_row_are_no_poison_step_but_in_the_end_a_crash_loop() -> None:
    losses = [loss(n, step=n, reached=9) for n in range(1, 6)]

    assert verdict_of(*losses[:4]) is None
    assert isinstance(verdict_of(*losses), CrashLoop)


def test_tasks_that_never_join_a_job_that_never_trained_are_a_crash_loop() -> None:
    losses = [loss(n, step=0, reached=0, generation=0, member=False, made_progress=False) for n in range(1, 6)]

    assert verdict_of(*losses[:4]) is None
    assert isinstance(verdict_of(*losses), CrashLoop)


def test_newcomers_that_never_join_a_training_that_goes_on_prove_that_it_cannot_grow() -> None:
    losses = [
        loss(n, step=10 * n, reached=10 * n, generation=4, member=False, made_progress=False) for n in range(5, 10)
    ]

    assert verdict_of(*losses[:4]) is None
    assert isinstance(verdict_of(*losses), NoNewcomer)


def test_a_host_on_which_newcomers_die_while_others_train_is_excluded() -> None:
    losses = [loss(n, node="bad", reached=10 * n, generation=4, member=False, made_progress=False) for n in (5, 6, 7)]

    verdict = verdict_of(*losses, where=scene("bad", "good", healthy_nodes=["good"]))

    assert isinstance(verdict, BadHost)
    assert verdict.node_id == "bad"
    assert "look after bad" in explain(verdict)


def test_a_host_on_which_workers_do_some_work_and_die_is_excluded_later() -> None:
    where = scene("bad", "good", healthy_nodes=["good"])
    losses = [loss(n, node="bad", step=10 * n, reached=10 * n) for n in range(1, 6)]

    assert verdict_of(*losses[:4], where=where) is None
    assert isinstance(verdict_of(*losses, where=where), BadHost)


def test_losses_on_a_host_long_ago_do_not_count() -> None:
    where = scene("bad", "good", healthy_nodes=["good"])
    losses = [loss(n, node="bad", at=n * RULES.window_s, step=10 * n, reached=10 * n) for n in range(1, 9)]

    assert verdict_of(*losses, where=where) is None


def test_another_host_is_tried_before_a_step_is_blamed() -> None:
    losses = [loss(n, node="a") for n in (1, 2, 3)]

    assert isinstance(verdict_of(*losses, where=scene("a", "b")), BadHost)
    elsewhere = loss(4, node="b")
    verdict = verdict_of(*losses, elsewhere, where=scene())
    assert isinstance(verdict, PoisonStep)
    assert len(verdict.losses) == 4


def test_a_host_that_the_job_cannot_do_without_is_not_excluded() -> None:
    losses = [loss(n, node="only", reached=n, step=n, made_progress=False) for n in (1, 2, 3)]

    assert verdict_of(*losses, where=scene(healthy_nodes=["other"])) is None


@pytest.mark.parametrize(
    ("death", "advised"),
    [
        ({"how": "hung", "hung": True}, "pliant up --lease"),
        ({"how": "SIGKILL", "signal": 9}, "want of memory"),
        ({"how": "SIGSEGV", "signal": 11}, "native library"),
        ({"how": "large", "too_large": True}, "submit --memory"),
        ({"how": "vanished"}, "--audit"),
    ],
)
def test_the_advice_fits_how_they_died(death: dict[str, Any], advised: str) -> None:
    failure = ProcessFailure(task_id=TaskId("job-1.1"), node_id=NodeId("a"), **death)
    losses = tuple(replace(loss(n), deaths=(failure,)) for n in (1, 2, 3))

    assert advised in explain(PoisonStep(step=7, losses=losses))
