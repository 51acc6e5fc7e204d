"""The table of attacks says what was seen, and takes nothing that was not played for a success."""

from collections import Counter

from tests.attack.__main__ import ATTACKS, attempt, row
from tests.attack.attack import Attack, Outcome
from tests.attack.target import Target

NOBODY = Target.__new__(Target)


def attack(seen: str = "refused", *, fails: bool = False) -> Attack:
    def play(_target: Target) -> str:
        if fails:
            raise ConnectionRefusedError("no server")
        return seen

    return Attack(group="HTTP", name="made up", expected="refused", play=play)


def outcome(made: Attack) -> Outcome:
    return Outcome(attack=made, seen=attempt(made, NOBODY))


def test_every_attack_has_a_name_of_its_own() -> None:
    names = Counter((attack.group, attack.name) for attack in ATTACKS)

    assert max(names.values()) == 1
    assert len(names) > 80


def test_only_what_was_seen_as_expected_counts() -> None:
    outcomes = [outcome(attack()), outcome(attack("read 43 bytes")), outcome(attack(fails=True))]

    assert [one.is_expected for one in outcomes] == [True, False, False]
    assert outcomes[2].seen == "not played: ConnectionRefusedError: no server"
    assert [row(one).startswith("UNEXPECTED") for one in outcomes] == [False, True, True]
