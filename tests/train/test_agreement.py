"""What the members of a new generation agree on: the example of the module, and its laws."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pliant.train.agreement import COPIED_PER_S, Agreement, MemberState, agree


def member(
    *,
    committed: int,
    attempted: int,
    holds_state: bool = True,
    epoch: int = 1,
    step_s: float = 0.0,
    copy_s: float = 0.0,
) -> MemberState:
    return MemberState(
        holds_state=holds_state,
        committed=committed,
        epoch=epoch,
        num_evaluations=0,
        attempted=attempted,
        fingerprint=7,
        goes_on=step_s > 0,
        state_bytes=int(copy_s * COPIED_PER_S),
        step_us=int(step_s * 1e6),
    )


NEWCOMER = member(committed=0, attempted=0, holds_state=False, epoch=0)


def test_who_has_committed_most_gives_its_state_to_all_others() -> None:
    found = agree([member(committed=8, attempted=8), member(committed=7, attempted=8), NEWCOMER])

    assert found == Agreement(is_new=False, copies=((0, 1), (0, 2)), num_redone_steps=0, is_mixed=False)


def test_a_step_that_nobody_committed_is_computed_again_and_donors_share_the_work() -> None:
    found = agree([member(committed=7, attempted=8), member(committed=7, attempted=8), NEWCOMER])

    assert found == Agreement(is_new=False, copies=((0, 2),), num_redone_steps=1, is_mixed=False)


def test_without_a_state_rank_0_starts_anew_and_the_others_copy_from_it() -> None:
    found = agree([NEWCOMER] * 3)

    assert found == Agreement(is_new=True, copies=((0, 1), (0, 2)), num_redone_steps=0, is_mixed=False)


def donor(*, step_s: float, copy_s: float = 0.3, committed: int = 7) -> MemberState:
    return member(committed=committed, attempted=committed, step_s=step_s, copy_s=copy_s)


def test_newcomers_rest_for_a_step_if_they_save_less_of_it_than_the_copy_takes() -> None:
    assert agree([donor(step_s=0.4), donor(step_s=0.3), NEWCOMER, NEWCOMER]).resting == (2, 3)
    assert agree([donor(step_s=2.0), donor(step_s=2.0), NEWCOMER, NEWCOMER]).resting == ()
    assert agree([NEWCOMER, donor(step_s=0.4)]).resting == (0,)


def test_a_donor_of_several_sends_to_one_after_the_other() -> None:
    assert agree([donor(step_s=1.0), NEWCOMER, NEWCOMER, NEWCOMER]).resting == (1, 2, 3), (
        "0.9 s of copies, 0.75 s saved"
    )
    assert agree([donor(step_s=1.0), donor(step_s=1.0), NEWCOMER, NEWCOMER, NEWCOMER]).resting == (), "0.6 and 0.6"


def test_all_wait_if_a_donor_does_not_go_straight_on_or_knows_no_step() -> None:
    elsewhere = member(committed=7, attempted=7, copy_s=0.3)
    untimed = replace(donor(step_s=0.4), step_us=0)

    assert agree([donor(step_s=0.4), elsewhere, NEWCOMER]).resting == ()
    assert agree([untimed, untimed, NEWCOMER]).resting == ()


def test_who_has_fallen_behind_waits_for_its_copy_as_all_do() -> None:
    behind = member(committed=7, attempted=8, step_s=0.4, copy_s=0.3)

    assert agree([donor(step_s=0.4, committed=8), behind, NEWCOMER]).resting == ()


members = st.builds(
    MemberState,
    holds_state=st.booleans(),
    committed=st.integers(0, 3),
    epoch=st.integers(0, 2),
    num_evaluations=st.integers(0, 2),
    attempted=st.integers(0, 4),
    fingerprint=st.integers(0, 1),
    goes_on=st.booleans(),
    state_bytes=st.integers(0, 10**9),
    step_us=st.integers(0, 10**6),
)


@given(st.lists(members, min_size=1, max_size=6))
def test_afterwards_all_hold_a_state_that_has_the_most_steps(rows: list[MemberState]) -> None:
    found = agree(rows)

    has_best = [not found.is_new and row.holds_state for row in rows]
    best = max((row.committed for row in rows if row.holds_state), default=0)
    receivers = [receiver for _, receiver in found.copies]
    assert len(set(receivers)) == len(receivers)
    for donor, _ in found.copies:
        assert donor not in receivers
        assert found.is_new or (has_best[donor] and rows[donor].committed == best)
    for rank, row in enumerate(rows):
        assert rank in receivers or (found.is_new and rank == 0) or (row.holds_state and row.committed == best)


@given(st.lists(members, min_size=1, max_size=6))
def test_only_newcomers_rest_and_then_all_of_them_and_somebody_works(rows: list[MemberState]) -> None:
    found = agree(rows)

    if found.resting:
        assert not found.is_new
        assert found.resting == tuple(rank for rank, row in enumerate(rows) if not row.holds_state)
        assert len(found.resting) < len(rows)


@given(members)
def test_a_row_carries_everything(row: MemberState) -> None:
    assert MemberState.of_row(row.row()) == row
