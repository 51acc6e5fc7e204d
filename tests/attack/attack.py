"""One attack: what is tried, what must come of it, and how it is played."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.attack.target import Target

REFUSED: Final = "refused"
"""What a probe says that the system did not let do what it wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Something that must not succeed, or must not change anything."""

    group: str
    name: str
    expected: str
    """What `play` must return."""
    play: Callable[[Target], str]
    gap: str = ""
    """What it returns instead where the server is an ordinary user's, whose walls do not reach so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was seen."""

    attack: Attack
    seen: str
    is_root: bool

    @property
    def is_expected(self) -> bool:
        return self.seen == self.attack.expected

    @property
    def is_known_gap(self) -> bool:
        return not self.is_root and self.seen == self.attack.gap != ""


def from_inside(group: str, script: str, expected: dict[str, str]) -> tuple[Attack, ...]:
    """Return the attacks that a script of `tests/attack/inside` plays, each by its name there."""

    def seen(name: str) -> Callable[[Target], str]:
        return lambda target: target.seen_inside(script, name)

    return tuple(Attack(group=group, name=name, expected=what, play=seen(name)) for name, what in expected.items())
