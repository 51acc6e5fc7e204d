"""Contenders with processes of their own take turns, and none of their processes is left."""

import multiprocessing

import pytest

from bench.fixed.contest import Contender, contest


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_ddp_at_once_and_in_parts_and_a_mode_of_ours_step_in_turns_with_two_workers_each() -> None:
    contenders = [
        Contender(name="DDP", how="ddp"),
        Contender(name="DDP in 3 parts", how="ddp", num_parts=3),
        Contender(name="exact", how="exact"),
    ]

    found = contest("digits", 2, contenders, num_blocks=2, block_s=0.01)

    assert {name: len(paces.blocks) for name, paces in found.items()} == {"DDP": 2, "DDP in 3 parts": 2, "exact": 2}
    assert all(0.0 < block < 60.0 for paces in found.values() for block in paces.blocks)
    assert multiprocessing.active_children() == []
