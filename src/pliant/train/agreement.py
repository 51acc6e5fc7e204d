"""What the members of a new generation agree on before they train: whose state counts, and who copies it from whom.

Pure: every member calls `agree` with the same rows, one per rank, and comes to the same answer without talking again.

Example. A, B and C had committed 7 steps and had begun the next one when B's machine died. A had received all that it
needed and committed an 8th step; C had not. A new task D comes in B's place, and the generation is A, C, D:

    rank  task  holds_state  committed  epoch  attempted
    0     A     yes          8          1      8
    1     C     yes          7          1      8
    2     D     no           0          0      0

The highest committed step wins, so A is the only donor: C and D copy its state. C had begun the 8th step, but A has
committed it, so nothing is computed again. If A had not committed it either, A and C would stand at 7 with an attempt
at 8: D would copy from A, and that one step would be computed again, with the same samples.

Who waits for a copy: a state does not change while gradients are computed. So a donor can send it while it computes the
next step, and the newcomers, who have no part of that step, need it only when the gradients are summed. Then training
does not stand still for the copy, and for that one step it has no more workers than before. What costs less is done:
100 MB take 0.3 s on their way; where two tasks become four and a step takes 0.4 s, the newcomers would save half of it,
0.2 s. So these donors go on. If a step took 2 s, they would wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

COPIED_PER_S: Final = 0.3e9
"""Bytes of a state that get from one task into another, measured on one machine with all that a copy brings along:
memory that was never used, sending, receiving, and taking over. A network of 10 Gbit/s is not much slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberState:
    """Where one member stands when it enters a generation."""

    holds_state: bool
    """False in a new task: then its other numbers mean nothing."""
    committed: int
    """Optimizer steps since the start of the job."""
    epoch: int
    num_evaluations: int
    """Evaluations of this epoch that it knows the results of."""
    attempted: int
    """`committed`, or one more if it had begun the next step when its generation was lost."""
    fingerprint: int
    """What the bits of its results depend on, as a number."""
    goes_on: bool = False
    """Its next step comes before any line of the script that might change the state, as far as it has seen."""
    state_bytes: int = 0
    """What a copy of its state takes; only told by who holds one."""
    step_us: int = 0
    """What a step usually takes it, in microseconds; 0 if it has watched none."""

    def row(self) -> list[int]:
        """Return it as integers, as it travels between the members."""
        numbers = [self.committed, self.epoch, self.num_evaluations, self.attempted, self.fingerprint]
        return [int(self.holds_state), *numbers, int(self.goes_on), self.state_bytes, self.step_us]

    @classmethod
    def of_row(cls, row: Sequence[int]) -> "MemberState":
        """Return what `row` returned as integers."""
        return cls(
            holds_state=bool(row[0]),
            committed=row[1],
            epoch=row[2],
            num_evaluations=row[3],
            attempted=row[4],
            fingerprint=row[5],
            goes_on=bool(row[6]),
            state_bytes=row[7],
            step_us=row[8],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What follows from where all members stand."""

    is_new: bool
    """Nobody holds a state: rank 0 loads a checkpoint or starts anew, and the others copy from it."""
    copies: tuple[tuple[int, int], ...]
    """(donor, receiver) by rank; the donors share the work."""
    num_redone_steps: int
    """1 if a step that somebody had begun must be computed again, else 0."""
    is_mixed: bool
    """The members run on systems that compute different bits."""
    resting: tuple[int, ...] = ()
    """Receivers, by rank, that have no part of the next step: the others compute it while these copy. Empty: all wait
    for the copies."""


def agree(members: Sequence[MemberState]) -> Agreement:
    """Return what the members, in rank order, do before they train together."""
    # The epoch and the evaluations decide between members that have committed the same step: one of them may have gone
    # on to the next epoch, or know a result that the others would wait for in vain.
    progress = [(m.committed, m.epoch, m.num_evaluations) if m.holds_state else None for m in members]
    held = [one for one in progress if one is not None]
    donors = [rank for rank, one in enumerate(progress) if one == max(held)] if held else [0]
    receivers = [rank for rank in range(len(members)) if rank not in donors]
    committed = max(held)[0] if held else 0
    return Agreement(
        is_new=not held,
        copies=tuple((donors[i % len(donors)], rank) for i, rank in enumerate(receivers)),
        num_redone_steps=int(bool(held) and max(m.attempted for m in members) > committed),
        is_mixed=len({m.fingerprint for m in members}) > 1,
        resting=tuple(receivers) if held and _is_worth_resting(members, donors, receivers) else (),
    )


def _is_worth_resting(members: Sequence[MemberState], donors: Sequence[int], receivers: Sequence[int]) -> bool:
    """Tell whether the next step had better be computed without the receivers than after the copies."""
    if not receivers or any(members[rank].holds_state for rank in receivers):
        return False  # who has only fallen behind by a step is worth more to the next one than its copy takes
    step_s = max(members[rank].step_us for rank in donors) / 1e6
    if step_s == 0 or not all(members[rank].goes_on for rank in donors):
        return False
    in_turn = -(-len(receivers) // len(donors))
    copy_s = max(members[rank].state_bytes for rank in donors) * in_turn / COPIED_PER_S
    return copy_s > step_s * len(receivers) / len(members)
