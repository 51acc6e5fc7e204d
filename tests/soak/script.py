"""What a soak does, drawn from its seed: a schedule of faults and resizes. Pure; a seed is a schedule."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.contracts.faults import Place

WEIGHTS = {
    "resize": 24,
    "kill one": 16,
    "kill at": 16,
    "kill leader": 8,
    "kill two": 8,
    "stop one": 8,
    "cut links": 8,
    "oom": 4,
    "kill all": 3,
    "kill server": 4,
    "stop server": 3,
    "full disk": 3,
}
"""How often each kind of move is made, out of their sum."""

SERVE_WEIGHTS = {
    "kill kernel": 8,
    "stop kernel": 6,
    "crash kernel": 6,
    "hang kernel": 3,
    "kill gateway": 4,
    "stop gateway": 4,
    "kill zygote": 2,
    "stop zygote": 2,
    "deploy": 8,
    "canary": 5,
    "roll back": 5,
    "scale": 6,
    "tide": 8,
}
"""The same of what serves beside the jobs, if something does."""

CALM = tuple(kind for kind in (*WEIGHTS, *SERVE_WEIGHTS) if kind not in ("kill server", "kill gateway", "kill zygote"))
"""Moves after which the same server, gateway and zygote live."""

PLACES = (
    Place.START,
    Place.BUILT,
    Place.FORMING,
    Place.STEP,
    Place.REDUCED,
    Place.STEPPED,
    Place.GIVING,
    Place.TAKING,
    Place.SAVING,
    Place.NAMING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One thing that is done to the jobs. Where it says who, it is a number that is taken modulo those there are."""

    number: int
    after_s: float
    """Wait so long after the move before."""
    kind: str
    job: int
    task: int
    size: int
    """New maximum, for a resize."""
    place: Place
    seconds: float
    """How long a link is cut, a server hangs, a disk is full."""
    at_once: bool
    """Do not wait until the job trains again: the next move comes into the midst of it."""


def moves(seed: int, *, kinds: tuple[str, ...] = tuple(WEIGHTS)) -> Iterator[Move]:
    """Yield moves without end; the same seed yields the same ones."""
    dice, weights = random.Random(seed), WEIGHTS | SERVE_WEIGHTS
    number = 0
    while True:
        number += 1
        yield Move(
            number=number,
            after_s=round(dice.choice([0.0, 0.05, 0.3, 1.0]) * dice.random(), 3),
            kind=dice.choices(kinds, [weights[kind] for kind in kinds])[0],
            job=dice.randrange(1000),
            task=dice.randrange(1000),
            size=dice.randint(1, 5),
            place=dice.choice(PLACES),
            seconds=round(0.2 + 1.5 * dice.random(), 2),
            at_once=dice.random() < 0.25,
        )
