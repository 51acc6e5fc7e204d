"""What a hostile script needs to try things one after the other and to say of each what it saw."""

import json
import sys
from collections.abc import Callable
from typing import Any

Facts = dict[str, Any]
Probe = Callable[[Facts], object]
_probes: dict[str, Probe] = {}


def probe(name: str) -> Callable[[Probe], Probe]:
    """Try this function under this name. It returns what it got; an error of the system stands for a refusal."""

    def register(function: Probe) -> Probe:
        _probes[name] = function
        return function

    return register


def first_of(tries: list[Callable[[], object]]) -> object:
    """Return what the first try got that was not refused.

    Raises:
        OSError: all were.
    """
    for attempt in tries[:-1]:
        try:
            return attempt()
        except OSError:
            continue
    return tries[-1]()


def play() -> None:
    """Try all that is registered, or what is named after the facts."""
    facts: Facts = json.loads(sys.argv[1])
    for name, function in _probes.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        try:
            seen = str(function(facts))
        except OSError:
            seen = "refused"
        except Exception as error:  # noqa: BLE001 (what goes wrong is told)
            seen = f"{type(error).__name__}: {error}"
        print(json.dumps({"probe": name, "seen": seen[:200]}), flush=True)
