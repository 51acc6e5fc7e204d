"""Plays all rounds: every side starts, has its turn, and ends."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.serve import cnn, echo, life
from bench.serve.page import Found
from bench.serve.payload import CNN, ECHO
from bench.serve.place import Cores, Place, place
from bench.serve.sides import Ports, Side
from pliant.core.errors import PliantError

Tell = Callable[[str], None]
BUDGET_S = {ECHO: 900.0, CNN: 1300.0}
"""A round but the first is begun only if so much time has not passed yet since the beginning of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to measure."""

    parts: tuple[str, ...]
    sides: tuple[Side, ...]
    environments: Path
    cores: Cores
    num_rounds: int
    round_s: float


def run(wanted: Wanted, tell: Tell) -> Found:
    """Measure all that is wanted; what a side does wrong is noted, and raises nothing."""
    found, began = Found(), time.monotonic()
    if "life" in wanted.parts:
        with place(wanted.environments, wanted.cores) as here:
            found.life = life.measure(here, num_times=wanted.num_rounds, seconds=wanted.round_s, tell=tell)
    if "echo" in wanted.parts:
        found.echo.function_s = echo.function_s()
        _rounds(wanted, ECHO, found, tell, began)
    if "cnn" in wanted.parts:
        _rounds(wanted, CNN, found, tell, began)
    return found


def _rounds(wanted: Wanted, model: str, found: Found, tell: Tell, began: float) -> None:
    sides = [side for side in wanted.sides if model in side.models]
    for number in range(wanted.num_rounds):
        if number and time.monotonic() - began > BUDGET_S[model]:
            tell(f"{model}: {number} rounds, and no time for more")
            break
        found.num_rounds[model] = number + 1
        for side in sides if number % 2 == 0 else reversed(sides):
            trouble = _turn(wanted, side, model, found)
            if trouble:
                found.troubles[f"{side.key}, {model}, round {number + 1}"] = trouble
            tell(f"{model}, round {number + 1} of {wanted.num_rounds}, {side.key}: {trouble or 'done'}")


def _turn(wanted: Wanted, side: Side, model: str, found: Found) -> str:
    """Let a side have its turn; return why it had none."""
    has_begun = False
    try:
        with place(wanted.environments, wanted.cores) as here, side.serving(here, model) as ports:
            has_begun = True
            _measure(side, model, ports, here, found, wanted.round_s)
    except (TimeoutError, RuntimeError, OSError, PliantError) as error:
        if not has_begun:
            if model == ECHO:
                echo.note_absent(side, found.echo)
            else:
                cnn.note_absent(side, found.cnn)
        return " ".join(str(error).split())[:600]
    return ""


def _measure(side: Side, model: str, ports: Ports, here: Place, found: Found, seconds: float) -> None:
    if model == ECHO:
        echo.measure_turn(side, ports, here, found.echo, seconds)
    else:
        cnn.measure_turn(side, ports, found.cnn, seconds)
