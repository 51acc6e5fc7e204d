"""Lengths of time as people write them."""

import pytest

from pliant.core.duration import duration, rough_duration, seconds_of
from pliant.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("0", 0),
        ("1.5s", 1.5),
        ("30m", 1800),
        ("30min", 1800),
        ("1h30m", 5400),
        ("2 d", 172_800),
        ("8H", 28_800),
    ],
)
def test_a_length_of_time_has_units(text: str, seconds: float) -> None:
    assert seconds_of(text, "--x") == seconds


@pytest.mark.parametrize("text", ["", " ", "soon", "5x", "-5", "1h 5x", "h"])
def test_what_is_none_is_refused_by_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        seconds_of(text, "--time-limit")
    assert refused.value.problems[0].field == "--time-limit"


def test_it_is_told_in_its_two_largest_units() -> None:
    assert [duration(s) for s in (8, 125, 12_000, 352_800)] == ["8 s", "2 min 05 s", "3 h 20 min", "4 d 02 h"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "5 s"),
        (42.0, "40 s"),
        (57.4, "55 s"),
        (57.6, "1 min"),
        (731.0, "12 min"),
        (3569.0, "59 min"),
        (3580.0, "1 h 00 min"),
        (7700.0, "2 h 10 min"),
        (86_200.0, "1 d 00 h"),
        (273_000.0, "3 d 04 h"),
    ],
)
def test_an_estimate_is_no_finer_than_anybody_knows(seconds: float, text: str) -> None:
    assert rough_duration(seconds) == text
