"""Histograms: their edges, what is kept of strangers' ones, and which stay when there are too many."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.tensor_histogram import (
    MAX_BINS,
    MAX_HISTOGRAMS,
    MAX_NAMES,
    TensorHistogram,
    edges,
    first_names,
    sound,
    thin,
)

GOOD = TensorHistogram(
    name="weights/fc1.weight", step=7, epoch=1, at=1000.0, lowest=-1.0, highest=2.0, counts=(1, 2, 3)
)


@given(st.floats(-1e30, 1e30), st.floats(1e-3, 1e30), st.integers(1, 100))
def test_edges_are_those_of_numpy(lowest: float, width: float, num_bins: int) -> None:
    assert edges(lowest, lowest + width, num_bins) == np.linspace(lowest, lowest + width, num_bins + 1).tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"name": "x" * 251},
        {"name": "two\nlines"},
        {"name": "nul\x00"},
        {"name": "turned\u202e"},
        {"name": " spaces "},
        {"step": -1},
        {"step": 2**31},
        {"epoch": -1},
        {"epoch": 2**70},
        {"at": math.nan},
        {"at": -1.0},
        {"at": math.inf},
        {"lowest": math.nan},
        {"lowest": -math.inf},
        {"highest": math.inf},
        {"highest": -2.0},
        {"lowest": -1.7e308, "highest": 1.7e308},
        {"counts": (1,) * (MAX_BINS + 1)},
        {"counts": (1, -1)},
        {"counts": (10**400,)},
        {"num_nan": -1},
        {"num_infinite": 2**60},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_not_kept(changes: dict[str, object]) -> None:
    assert list(sound([replace(GOOD, **changes), GOOD])) == [GOOD]  # type: ignore[arg-type]


def test_extremes_make_sense() -> None:
    ones = [
        replace(GOOD, lowest=0.0, highest=0.0, counts=(), num_nan=9),
        replace(GOOD, lowest=3.0, highest=3.0, counts=(2**53,)),
        replace(GOOD, lowest=-1e300, highest=1e300),
        replace(GOOD, name="a/b <script> größe", step=2**31 - 1),
    ]
    assert list(sound(ones)) == ones


def test_a_job_has_room_for_so_many_names() -> None:
    there = [f"n{number}" for number in range(MAX_NAMES - 1)]
    asked = [replace(GOOD, name=name) for name in ("n0", "new", "one too many", "new", "n1")]
    assert [one.name for one in first_names(there, asked)] == ["n0", "new", "new", "n1"]


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=200))
def test_the_first_and_the_last_stay_and_no_more_than_so_many(given_steps: list[int]) -> None:
    steps = sorted(given_steps)
    left = sorted(set(steps) - set(thin(steps)))
    assert len(left) == min(len(steps), MAX_HISTOGRAMS)
    assert not steps or (left[0], left[-1]) == (steps[0], steps[-1])


def test_those_that_stay_lie_evenly_however_many_there_were() -> None:
    kept: list[int] = []
    for step in range(0, 100_000, 10):
        kept = [one for one in [*kept, step] if one not in thin([*kept, step])]
    widths = [later - earlier for earlier, later in pairwise(kept)]
    assert (kept[0], kept[-1], len(kept)) == (0, 99_990, MAX_HISTOGRAMS)
    assert max(widths) <= 4 * 100_000 / MAX_HISTOGRAMS
