"""The table of attacks says what was seen, and takes nothing that was not played for a success."""

from collections import Counter
from dataclasses import replace

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


def outcome(made: Attack, *, is_root: bool = True) -> Outcome:
    return Outcome(attack=made, seen=attempt(made, NOBODY), is_root=is_root)


def test_every_attack_has_a_name_of_its_own() -> None:
    names = Counter((attack.group, attack.name) for attack in ATTACKS)

    assert max(names.values()) == 1
    assert len(names) > 80
    assert sum(group == "endpoints" for group, _ in names) > 250


def test_a_gap_is_known_for_an_ordinary_users_server_alone() -> None:
    made = replace(attack("slowed down"), gap="slowed down")

    rows = [row(outcome(made, is_root=True)), row(outcome(made, is_root=False))]

    assert [one.split()[0] for one in rows] == ["UNEXPECTED", "known"]
    assert not outcome(attack(), is_root=False).is_known_gap


def test_only_what_was_seen_as_expected_counts() -> None:
    outcomes = [outcome(attack()), outcome(attack("read 43 bytes")), outcome(attack(fails=True))]

    assert [one.is_expected for one in outcomes] == [True, False, False]
    assert outcomes[2].seen == "not played: ConnectionRefusedError: no server"
    assert [row(one).startswith("UNEXPECTED") for one in outcomes] == [False, True, True]
