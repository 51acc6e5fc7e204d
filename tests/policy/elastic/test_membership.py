"""Who trains with whom: one example for every kind of change."""

from tests.policy.elastic.fake_task import JOB
from tests.policy.elastic.story import A, B, C, D, Story, abandon, activated, form, training

from pliant.core.link import Abandon, Dismiss, Switched
from pliant.policy.elastic.membership import (
    Abandoned,
    Activated,
    Announced,
    GenerationView,
    Send,
    Severed,
    TaskMessage,
    Tick,
    restore,
)


def test_the_example_of_membership() -> None:
    story = training(A)
    lost = "lost job-1.2 (killed)"

    assert story.want(A, B, C, cause="free slots") == ()
    assert story.ready(B) == ()
    assert story.membership.wake_at == 10.0 + story.membership.gather_s == 10.3
    story.now = 10.1
    assert story.ready(C) == form(2, A, B, C, cause="free slots", to=[A, B, C])
    assert set(story.membership.active) == {A}, "it trains on meanwhile"
    assert story.switched(A, B, C, step=40) == activated(2, A, B, C, from_size=1, cause="free slots", step=40)
    story.now = 12.0
    assert story.gone(B) == (*abandon(2, lost, A, C), *form(3, A, C, cause=lost, to=[A, C]))
    assert set(story.membership.active) == set()
    assert story.switched(A, C, step=41) == activated(3, A, C, from_size=3, cause=lost, step=41)


# -- planned changes --------------------------------------------------------------------------------------------------


def test_first_task_that_is_ready_trains_at_once() -> None:
    story = Story()

    assert story.want(A, B) == ()
    assert story.ready(A) == form(1, A, cause="grant", to=[A])
    assert story.switched(A) == activated(1, A, from_size=0, cause="grant")
    assert story.membership.active == (A,)


def test_newcomer_joins_behind_those_who_hold_state() -> None:
    story = training(A)
    story.want(A, B, cause="a slot is free")

    assert story.ready(B) == form(2, A, B, cause="a slot is free", to=[A, B])
    assert story.membership.active == (A,), "the old generation trains on while the new one forms"
    assert story.switched(A, B, step=4) == activated(2, A, B, from_size=1, cause="a slot is free", step=4)


def test_newcomer_does_not_wait_for_ever_for_one_that_is_late() -> None:
    story = training(A)
    story.want(A, B, C)
    story.ready(B)
    story.now = 10.3

    assert story.feed(Tick()) == form(2, A, B, cause="grant", to=[A, B])


def test_leaver_is_told_and_leaves_with_the_change() -> None:
    story = training(A, B)

    assert story.want(A, cause="B needs it") == form(2, A, cause="B needs it", to=[A, B])
    assert story.left(B, generation=1) == ()
    assert story.gone(B, "exit 0") == ()
    assert story.switched(A, step=9) == activated(2, A, from_size=2, cause="B needs it", step=9)


def test_changes_that_come_while_one_forms_follow_it() -> None:
    story = training(A)
    story.want(A, B)
    story.ready(B)
    story.want(A, B, C)

    assert story.ready(C) == ()
    assert story.switched(A, B) == (
        *activated(2, A, B, from_size=1, cause="grant"),
        *form(3, A, B, C, cause="grant", to=[A, B, C]),
    )


def test_when_all_are_replaced_one_stays_until_the_newcomers_have_its_state() -> None:
    story = training(A, B)
    story.want(C, cause="moved")

    assert story.ready(C) == form(2, A, C, cause="moved", to=[A, C, B])
    assert story.switched(A, C) == (
        *activated(2, A, C, from_size=2, cause="moved"),
        Send(task_id=B, message=Dismiss(reason="the scheduler wants it no more")),
        *form(3, C, cause="moved", to=[C, A]),
    )


def test_unwanted_newcomer_is_dismissed_when_it_is_ready() -> None:
    story = training(A)
    story.want(A, B)
    story.want(A)

    assert story.ready(B) == (Send(task_id=B, message=Dismiss(reason="the scheduler wants it no more")),)


def test_emptied_and_filled_again_starts_from_what_was_saved() -> None:
    story = training(A, B)

    assert story.want(cause="paused") == form(2, cause="paused", to=[A, B])
    story.left(A, generation=1, saved=True)
    story.left(B, generation=1)
    story.want(C, cause="resumed")
    assert story.ready(C) == (), "those who leave still hold the state"
    assert story.gone(B) == ()
    assert story.gone(A) == (
        Abandoned(generation=2, reason="all have left"),
        *form(3, C, cause="resumed", to=[C]),
    )


# -- losses -----------------------------------------------------------------------------------------------------------


def test_next_in_line_leads_after_a_crash_of_the_leader() -> None:
    story = training(A, B)

    assert story.gone(A) == (
        *abandon(1, "lost job-1.1 (killed)", B),
        *form(2, B, cause="lost job-1.1 (killed)", to=[B]),
    )


def test_crash_of_a_newcomer_costs_the_others_nothing() -> None:
    story = training(A)
    story.want(A, B)
    story.ready(B)

    assert story.gone(B) == abandon(2, "lost job-1.2 (killed)", A)
    assert story.membership.active == (A,)
    assert story.broken(A, 2) == (), "its connection to the newcomer failed; it trains on"
    assert story.membership.active == (A,)


def test_crash_of_a_newcomer_while_another_waits_in_the_forming_generation_costs_nothing() -> None:
    story = training(A)
    story.want(A, B, C)
    story.ready(B)
    story.ready(C)

    assert story.gone(C) == (
        *abandon(2, "lost job-1.3 (killed)", A, B),
        *form(3, A, B, cause="grant", to=[A, B]),
    )
    assert story.broken(B, 2) == ()
    assert story.membership.active == (A,)


def test_crash_of_a_member_while_a_change_forms_gives_both_up() -> None:
    story = training(A, B)
    story.want(A, B, C)
    story.ready(C)

    assert story.gone(B) == (
        *abandon(1, "lost job-1.2 (killed)", A),
        *abandon(2, "lost job-1.2 (killed)", A, C),
        *form(3, A, C, cause="lost job-1.2 (killed)", to=[A, C]),
    )


def test_leader_and_newcomer_crash_together() -> None:
    story = training(A, B)
    story.want(A, B, C)
    story.ready(C)
    story.gone(A)

    assert story.gone(C) == (
        *abandon(3, "lost job-1.3 (killed)", B),
        *form(4, B, cause="lost job-1.1 (killed)", to=[B]),
    )


def test_leaver_stays_through_a_recovery_because_it_may_hold_the_newest_step() -> None:
    story = training(A, B, C)
    story.want(A, C)

    assert story.gone(A)[-3:] == form(3, B, C, cause="lost job-1.1 (killed)", to=[B, C])
    assert story.switched(B, C) == (
        *activated(3, B, C, from_size=3, cause="lost job-1.1 (killed)"),
        *form(4, C, cause="lost job-1.1 (killed)", to=[C, B]),
    )


def test_report_of_one_member_is_enough_to_give_a_generation_up() -> None:
    story = training(A, B)
    reason = "job-1.2 reports: reset by peer"

    assert story.broken(B, 1, trained=1) == (
        *abandon(1, reason, A, B),
        *form(2, A, B, cause=reason, to=[A, B]),
    )
    assert story.broken(A, 1, trained=1) == (), "the same loss, seen by another"


def test_failure_after_an_unheard_switch_ends_the_generation_before_it_too() -> None:
    story = training(A)
    story.want(A, B)
    story.ready(B)

    effects = story.broken(A, 2, trained=1)

    assert [effect.generation for effect in effects if isinstance(effect, Abandoned)] == [2, 1]
    assert story.membership.forming == GenerationView(number=3, members=(A, B), cause="job-1.1 reports: reset by peer")


def test_generation_that_fails_to_form_again_and_again_is_tried_less_often() -> None:
    story = training(A)
    story.want(A, B)
    story.ready(B)
    story.broken(B, 2)
    assert story.membership.forming == GenerationView(number=3, members=(A, B), cause="grant")

    assert story.broken(B, 3) == abandon(3, "job-1.2 reports: reset by peer", A, B)
    assert story.membership.wake_at == 10.4
    story.now = 10.4
    assert story.feed(Tick()) == form(4, A, B, cause="grant", to=[A, B])


def test_all_lost_starts_again_with_new_tasks() -> None:
    story = training(A)

    assert story.gone(A) == abandon(1, "lost job-1.1 (killed)")
    story.want(B, cause="again")
    assert story.ready(B) == form(2, B, cause="again", to=[B])


# -- the server was away ----------------------------------------------------------------------------------------------


def test_hello_repeats_what_a_task_has_missed() -> None:
    story = training(A)
    story.want(A, B)
    announced = story.ready(B)

    assert story.hello(A, 1, 5) == (announced[1],)
    assert story.hello(B, None, None) == (announced[2],)
    assert story.switched(A, B) == activated(2, A, B, from_size=1, cause="grant")


def test_hello_from_the_generation_that_forms_tells_that_it_trains() -> None:
    story = training(A)
    story.want(A, B)
    story.ready(B)

    (effect,) = story.hello(B, 2, 6)

    assert isinstance(effect, Activated)
    assert (effect.generation, effect.step, effect.members) == (2, 6, (A, B))


def test_hello_of_a_task_that_stands_still_gives_its_generation_up() -> None:
    story = training(A, B)

    assert story.hello(A, 1, 5, lost=True) == (
        *abandon(1, "job-1.1 reports that it was lost", A, B),
        *form(2, A, B, cause="job-1.1 reports that it was lost", to=[A, B]),
    )


def test_hello_tells_of_a_forming_generation_that_failed_when_nobody_else_did() -> None:
    story = training(A, B, C)
    story.gone(C)
    reason = "job-1.1 reports that it failed"

    assert story.hello(A, 1, 5, lost=True, failed=2) == (
        *abandon(2, reason, A, B),
        Send(task_id=A, message=Abandon(generation=1, reason="it is over")),
        *form(3, A, B, cause="lost job-1.3 (killed)", to=[A, B]),
    )


def test_hello_from_a_generation_that_is_over_is_told_so() -> None:
    story = training(A, B)
    story.gone(B)

    assert story.hello(A, 1, 5) == (
        Send(task_id=A, message=Abandon(generation=1, reason="it is over")),
        form(2, A, cause="lost job-1.2 (killed)", to=[A])[1],
    )


def test_restarted_server_goes_on_with_the_generation_that_trains() -> None:
    group = GenerationView(number=4, members=(A, B))
    story = Story(restore(JOB, number=4, active=group, forming=None, wanted=frozenset([A, B])))

    assert story.membership.active == (A, B)
    assert story.hello(A, 4, 50) == ()
    assert story.hello(B, 4, 50) == ()
    assert story.membership.current == group


def test_restarted_server_announces_nothing_before_it_knows_where_the_members_are() -> None:
    group = GenerationView(number=4, members=(A, B))
    story = Story(restore(JOB, number=4, active=group, forming=None, wanted=frozenset([A, B])))

    assert story.want(B) == ()
    assert story.hello(A, 4, 50) == ()
    assert story.hello(B, 4, 50) == form(5, B, cause="grant", to=[B, A])


def test_restarted_server_repeats_a_forming_generation_once_it_knows_where_it_meets() -> None:
    active, forming = GenerationView(number=4, members=(A,)), GenerationView(number=5, members=(A, B), cause="more")
    story = Story(restore(JOB, number=5, active=active, forming=forming, wanted=frozenset([A, B])))

    assert story.hello(B, None, None) == ()
    assert story.hello(A, 4, 50) == form(5, A, B, cause="more", to=[A, B])[1:]
    assert story.hello(B, None, None) == form(5, A, B, cause="more", to=[B])[1:]


def test_member_of_a_forming_generation_that_died_while_the_server_was_away_is_not_waited_for() -> None:
    forming = GenerationView(number=5, members=(A, B), cause="lost job-1.3")
    story = Story(restore(JOB, number=5, active=None, forming=forming, wanted=frozenset([B])))
    story.hello(B, 4, 50, lost=True)

    assert story.gone(A) == (
        *abandon(5, "lost job-1.1 (killed)", B),
        *form(6, B, cause="", to=[B]),
    )


def test_recovery_after_a_restart_waits_for_members_that_are_silent() -> None:
    group = GenerationView(number=4, members=(A, B, C))
    story = Story(restore(JOB, number=4, active=group, forming=None, wanted=frozenset([A, B, C])))
    story.gone(C)

    assert story.hello(A, 4, 50) == (Send(task_id=A, message=Abandon(generation=4, reason="it is over")),)
    story.now = 1000.0
    assert story.feed(Tick()) == (), "job-1.2 may be a step further, or train in a generation that was not heard of"
    assert story.hello(B, 4, 51)[-1:] == form(5, A, B, cause="lost job-1.3 (killed)", to=[B])[-1:]


def test_nobody_starts_from_a_checkpoint_while_a_silent_task_may_train() -> None:
    group = GenerationView(number=4, members=(A, B))
    story = Story(restore(JOB, number=4, active=group, forming=None, wanted=frozenset([B])))
    story.gone(A)
    story.want(B, C)
    story.ready(C)
    story.now = 1000.0

    assert story.feed(Tick()) == ()
    assert story.gone(B) == form(5, C, cause="grant", to=[C])


def test_leaving_task_with_a_state_is_remembered_over_a_restart() -> None:
    story = Story(
        restore(JOB, number=4, active=None, forming=None, wanted=frozenset([A]), leaving=frozenset([B])),
    )

    assert story.hello(A, 4, 50, lost=True)[-1:] == (
        Send(task_id=A, message=Abandon(generation=4, reason="it is over")),
    )
    assert story.membership.forming is None, "job-1.2 may be ahead"
    story.hello(B, 4, 51, lost=True)
    assert story.membership.forming == GenerationView(number=5, members=(A, B))


# -- everything may be told twice -------------------------------------------------------------------------------------


def test_old_messages_after_a_hello_change_nothing() -> None:
    story = training(A, B)
    story.want(A, B, C)
    story.ready(C)
    story.switched(A, B, C, step=5)
    before = story.membership

    story.hello(A, 2, 9)
    story.feed(
        TaskMessage(
            task_id=A,
            message=Switched(generation=1, step=0, size=2, pause_s=0.1, redone_steps=0, leader=True),
        )
    )
    story.broken(A, 1, trained=1)

    assert story.membership == before


def test_exit_of_a_task_that_nobody_knows_changes_nothing() -> None:
    story = training(A)
    before = story.membership

    assert story.gone(D) == ()
    assert story.membership == before


def test_survivors_that_tried_in_vain_with_a_lost_task_do_not_wait_once_its_loss_is_known() -> None:
    story = training(A, B, C)
    story.broken(B, 1, trained=1)
    for number in (2, 3, 4):
        assert story.membership.number == number, "it is tried again"
        story.broken(C, number)
        if story.membership.wake_at is not None:
            story.now = story.membership.wake_at
            story.feed(Tick())
    effects = story.broken(C, 5)
    assert not any(isinstance(effect, Announced) for effect in effects), "nobody knows why: there is no hurry"

    effects = story.gone(A)

    assert [effect.members for effect in effects if isinstance(effect, Announced)] == [(B, C)]


def test_newcomers_that_did_not_connect_are_no_holders_beside_those_that_train() -> None:
    story = training(A)
    story.want(A, B, C, cause="free slots")
    story.ready(B)
    story.ready(C)
    assert story.membership.newest_holders() == {A}
    story.broken(B, 2)
    assert story.membership.status_of(B).holds_state, "it may have entered before it was given up"
    assert story.membership.newest_holders() == {A}
    story.gone(A)
    assert story.membership.newest_holders() >= {B, C}


def test_those_that_are_left_out_together_are_replaced_by_one_generation() -> None:
    story = training(A, B, C)
    why = "gpu3 left out"
    left_out = Severed(tasks=(B, C), reason=why)
    assert story.feed(left_out) == (*abandon(1, why, A, C), *form(2, A, cause=why, to=[A]))
    assert story.gone(B) == ()
    assert story.gone(C) == ()
    assert story.feed(left_out) == ()
