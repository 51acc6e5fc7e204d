"""Hashes of passwords."""

import pytest
from argon2 import extract_parameters
from tests.people.conftest import CHEAP

from pliant.core.errors import Unavailable
from pliant.people.passwords import DEFAULT_COST, Cost, Passwords


@pytest.fixture(scope="module")
def passwords() -> Passwords:
    return Passwords(CHEAP)


def test_a_password_matches_its_hash_and_no_other(passwords: Passwords) -> None:
    kept = passwords.hash("correct horse")
    assert passwords.matches(kept, "correct horse")
    assert not passwords.matches(kept, "correct Horse")
    assert not passwords.matches(kept, "")
    assert "correct" not in kept
    assert kept != passwords.hash("correct horse"), "every hash has a salt of its own"


def test_nobody_has_no_password(passwords: Passwords) -> None:
    assert not passwords.matches(None, "of nobody")


def test_nobody_costs_what_everybody_costs() -> None:
    greedy = Passwords(Cost(num_passes=1, memory_kib=2**32 - 1, num_lanes=1))
    with pytest.raises(Unavailable, match="more memory"):
        greedy.matches(None, "x")


def test_letters_with_marks_are_the_same_however_they_are_composed(passwords: Passwords) -> None:
    assert passwords.matches(passwords.hash("Zo\u00eb und Andre\u0301"), "Zoe\u0308 und Andr\u00e9")
    assert not passwords.matches(passwords.hash("\ud800 alone"), "\ud801 alone")


def test_the_default_is_what_rfc_9106_recommends() -> None:
    parameters = extract_parameters(Passwords(DEFAULT_COST).hash("correct horse"))
    assert parameters.type.name == "ID"
    assert (parameters.time_cost, parameters.memory_cost, parameters.parallelism) == (3, 64 * 1024, 4)


def test_a_machine_without_the_memory_says_so() -> None:
    passwords = Passwords(CHEAP)
    kept = Passwords(Cost(num_passes=1, memory_kib=16, num_lanes=1)).hash("x")
    greedy = kept.replace("m=16", f"m={2**32 - 1}")
    with pytest.raises(Unavailable, match="more memory"):
        passwords.matches(greedy, "x")
