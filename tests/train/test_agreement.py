"""What the members of a new generation agree on: the example of the module, and its laws."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.train.agreement import NUM_COLUMNS, Agreement, MemberState, agree


def member(*, committed: int, attempted: int, holds_state: bool = True, epoch: int = 1) -> MemberState:
    return MemberState(
        holds_state=holds_state,
        committed=committed,
        epoch=epoch,
        num_evaluations=0,
        attempted=attempted,
        fingerprint=7,
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


members = st.builds(
    MemberState,
    holds_state=st.booleans(),
    committed=st.integers(0, 3),
    epoch=st.integers(0, 2),
    num_evaluations=st.integers(0, 2),
    attempted=st.integers(0, 4),
    fingerprint=st.integers(0, 1),
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


@given(members)
def test_a_row_carries_everything(row: MemberState) -> None:
    assert len(row.row()) == NUM_COLUMNS
    assert MemberState.of_row(row.row()) == row
