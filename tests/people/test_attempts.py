"""How many passwords an attacker can try, by address, by account and in all, and whom that never holds up."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from pliant.people.attempts import AT_ADDRESS, FORGOTTEN_S, KNOWN_S, Attempts

HOME = "10.0.0.9"
DAY_S = 86400.0
NAMES = tuple(f"user{number}" for number in range(60))
ADDRESSES = tuple(f"10.{number >> 8}.{number & 255}.1" for number in range(1, 300))


def most_failures(pairs: list[tuple[str, str]], seconds: float, attempts: Attempts | None = None) -> int:
    """Return how many attempts of an attacker fail who makes each as soon as it need not wait."""
    attempts, now, num_failed = attempts or Attempts(), 0.0, 0
    while now < seconds:
        waits = []
        for name, address in pairs:
            if (wait_s := attempts.wait_s(name, address, now)) == 0:
                attempts.failed(name, address, now)
                num_failed += 1
            waits.append(attempts.wait_s(name, address, now) if wait_s == 0 else wait_s)
        now += max(0.001, min(waits))
    return num_failed


def test_one_account_from_one_address_is_tried_300_times_a_day() -> None:
    assert most_failures([("ada", HOME)], DAY_S) <= 13 + 288


def test_one_account_from_everywhere_is_tried_1456_times_a_day() -> None:
    assert most_failures([("ada", address) for address in ADDRESSES[:40]], DAY_S / 6) <= 16 + 1440 / 6


def test_all_accounts_from_one_address_are_tried_1466_times_a_day() -> None:
    assert most_failures([(name, "10.0.0.1") for name in NAMES], DAY_S / 6) <= 26 + 1440 / 6


def test_in_all_one_attempt_a_second_is_compared() -> None:
    num_failed = most_failures(list(product(NAMES[:20], ADDRESSES[:15])), 60.0)
    assert 100 <= num_failed <= 102 + 60


def test_many_addresses_do_not_flush_what_an_account_has_failed() -> None:
    attempts, now = Attempts(max_keys=500), 0.0
    failed_of_ada = 0
    for number in range(5000):
        address = f"10.{number >> 16}.{(number >> 8) & 255}.{number & 255}"
        if attempts.wait_s("ada", address, now) == 0:
            attempts.failed("ada", address, now)
            failed_of_ada += 1
        now += 1.0
    assert failed_of_ada <= 16 + 5000 / 60


ATTACK = st.lists(
    st.tuples(st.sampled_from(NAMES[:3]), st.sampled_from(ADDRESSES[:5]), st.floats(0, 400), st.booleans()),
    max_size=120,
)


@given(ATTACK)
def test_who_is_known_where_they_are_gets_in_at_once_whatever_others_try_elsewhere(
    attack: list[tuple[str, str, float, bool]],
) -> None:
    attempts, now = Attempts(), 0.0
    attempts.succeeded(NAMES[0], HOME, now)
    for name, address, pause, behind_same_address in attack:
        now += pause
        if name == NAMES[0]:
            attempts.failed(name, address, now)
        else:
            attempts.failed(name, HOME if behind_same_address else address, now)
        assert attempts.wait_s(NAMES[0], HOME, now) == 0


@given(ATTACK)
def test_an_account_of_ones_own_sets_nothing_back(attack: list[tuple[str, str, float, bool]]) -> None:
    plain, with_account, now = Attempts(), Attempts(), 0.0
    for name, address, pause, logs_on in attack:
        now += pause
        if plain.wait_s(name, address, now) == 0:
            plain.failed(name, address, now)
        if with_account.wait_s(name, address, now) == 0:
            with_account.failed(name, address, now)
        if logs_on:
            with_account.succeeded("mallory", address, now)
        for target, place in product(NAMES[:3], ADDRESSES[:5]):
            assert with_account.wait_s(target, place, now) == plain.wait_s(target, place, now)


def test_five_wrong_passwords_of_one_hold_up_nobody_else_behind_their_address() -> None:
    attempts = Attempts()
    for _ in range(AT_ADDRESS.num_free):
        attempts.failed("ada", HOME, 0.0)
    assert attempts.wait_s("ada", HOME, 0.0) == 5
    assert attempts.wait_s("bob", HOME, 0.0) == 0
    assert attempts.wait_s("ada", "10.0.0.1", 0.0) == 0


def test_a_known_address_is_known_for_thirty_days_and_to_its_account_alone() -> None:
    attempts = Attempts()
    attempts.succeeded("ada", HOME, 0.0)
    for name, address in product(NAMES, ADDRESSES[:5]):
        attempts.failed(name, address, KNOWN_S - 1)
        attempts.failed("ada", address, KNOWN_S - 1)
        attempts.failed(name, HOME, KNOWN_S - 1)
    assert attempts.wait_s("ada", HOME, KNOWN_S - 1) == 0
    assert attempts.wait_s("bob", HOME, KNOWN_S - 1) > 0
    assert attempts.wait_s("ada", HOME, KNOWN_S) > 0


def test_who_is_forgiven_starts_afresh_and_in_time_everybody_does() -> None:
    attempts = Attempts()
    for address in ADDRESSES[:3]:
        for _ in range(20):
            attempts.failed("ada", address, 0.0)
    attempts.forgive("ada")
    assert attempts.wait_s("ada", "10.9.9.9", 0.0) == 0
    for _ in range(30):
        attempts.failed("ada", HOME, 0.0)
    assert attempts.wait_s("ada", HOME, FORGOTTEN_S * 3) == 0


def test_a_name_that_nobody_can_have_counts_for_its_address() -> None:
    attempts = Attempts()
    for number in range(25):
        attempts.failed(f"No Name {number}", HOME, 0.0)
    assert attempts.wait_s("ada", HOME, 0.0) > 0
    assert attempts.wait_s("ada", "10.0.0.1", 0.0) == 0
