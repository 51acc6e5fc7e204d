"""How many slots a task holds, as people say it: whole ones, or a part of one in thousandths."""

import pytest

from pliant.core.endpoint import VersionSettings
from pliant.core.errors import InvalidInput
from pliant.core.input import read_input
from pliant.core.slot import share_of_slot, whole_slots


@pytest.mark.parametrize(
    ("given", "whole", "share"), [(1, 1, 1000), (4, 4, 1000), (0.25, 1, 250), (0.001, 1, 1), (0.999, 1, 999)]
)
def test_slots_are_whole_or_a_part_of_one(given: float, whole: int, share: int) -> None:
    read = read_input(VersionSettings, {"slots_per_task": given})

    assert read.slots_per_task == given
    assert (whole_slots(given), share_of_slot(given)) == (whole, share)


@pytest.mark.parametrize("given", [0, -1, 1.5, 64.5, 65, 0.0005, 0.33333, float("nan"), float("inf"), "many", True])
def test_what_is_neither_is_refused_with_its_value(given: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_input(VersionSettings, {"slots_per_task": given})

    assert [problem.field for problem in refused.value.problems] == ["slots_per_task"]
