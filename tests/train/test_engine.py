"""When a step is followed by a switch: the example of the engine's theory of operation."""

from typing import Any

import pytest

from pliant.train.data.audit import SampleAudit
from pliant.train.engine import NUM_PLEDGE_ELEMENTS, Engine
from pliant.train.group.collectives import Group

PLEDGES = {"A": {6: 2, 7: 2}, "B": {7: 2}}
"""The generation that each member pledges, by the steps it has committed."""


class SwitchedTo(Exception):
    pass


class Member:
    """Membership, reducer and stepper of one of two members; the sums are computed from what both pledge."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.group = Group(number=1, rank=0, size=2, backend=None)
        self.committed = 5
        self.control = [0.0] * (NUM_PLEDGE_ELEMENTS + 1)
        self.sums: list[float] = []

    def pledge(self) -> int | None:
        return PLEDGES[self.name].get(self.committed)

    def record_commit(self, step: int) -> None:
        self.committed = step

    def switch(self, number: int) -> None:
        raise SwitchedTo(number)

    def is_lost(self) -> bool:
        return False

    def finish(self, **_: Any) -> list[float]:
        pledged = [steps[self.committed] for steps in PLEDGES.values() if self.committed in steps]
        total = [float(sum(number % NUM_PLEDGE_ELEMENTS == n for number in pledged)) for n in range(4)]
        assert all(mine <= both for mine, both in zip(self.control[:4], total, strict=True))
        self.control = [0.0] * len(self.control)
        self.sums.append(total[2])
        return [*total, 1.0]

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@pytest.mark.parametrize("name", ["A", "B"])
def test_all_members_switch_after_the_step_in_which_all_have_pledged(name: str) -> None:
    member: Any = Member(name)
    engine = Engine(
        membership=member,
        state=member,
        plan=member,
        stepper=member,
        reducer=member,
        running=member,
        audit=SampleAudit(None),
        copies=member,
        clock=lambda: 0.0,
        find_checkpoint=lambda: None,
        save=lambda **_: True,
        committed=5,
    )

    engine.commit()
    engine.commit()
    with pytest.raises(SwitchedTo, match="2"):
        engine.commit()

    assert (engine.committed, member.sums) == (8, [0.0, 1.0, 2.0])
