"""Colours of workloads: nobody who is there has it, plain ones first, and not the one that was seen last."""

from hypothesis import given
from hypothesis import strategies as st

from pliant.policy.colour import NUM_COLOURS, NUM_PLAIN, choose_colour

COLOURS = st.integers(0, NUM_COLOURS - 1)


@given(st.dictionaries(COLOURS, st.integers(0, 5)), st.lists(COLOURS, max_size=60))
def test_no_other_colour_has_fewer_users(num_users: dict[int, int], given_before: list[int]) -> None:
    chosen = choose_colour(num_users, given_before)
    assert 0 <= chosen < NUM_COLOURS
    assert num_users.get(chosen, 0) == min(num_users.get(colour, 0) for colour in range(NUM_COLOURS))
    assert choose_colour(num_users, given_before) == chosen


@given(st.dictionaries(COLOURS, st.integers(1, 5), max_size=7), st.lists(COLOURS, max_size=60))
def test_patterns_are_for_those_who_find_all_plain_colours_taken(
    num_users: dict[int, int], given_before: list[int]
) -> None:
    assert choose_colour(num_users, given_before) < NUM_PLAIN


def test_workloads_that_come_one_after_another_look_different() -> None:
    given_before: list[int] = []
    for _ in range(10):
        given_before.append(choose_colour({}, given_before))
    assert given_before == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]


def test_those_who_are_there_together_have_24_colours() -> None:
    users: dict[int, int] = {}
    for expected in range(NUM_COLOURS):
        colour = choose_colour(users, list(users))
        assert colour == expected
        users[colour] = 1
    assert choose_colour(users | {5: 2}, [1, 0, *range(2, NUM_COLOURS)]) == 1
