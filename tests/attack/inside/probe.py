"""What a hostile script needs to try things one after the other and to say of each what it saw."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
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


def got(path: str | Path) -> str:
    """Read a file; return how much that was."""
    return f"read {len(Path(path).read_bytes())} bytes"


def home(*parts: str) -> Callable[[Facts], str]:
    """Return what reads a file of the server's folder."""
    return lambda facts: got(Path(facts["home"], *parts))


def of_processes(name: str) -> Callable[[Facts], object]:
    """Return what reads a file in /proc of the server, the zygotes and the victims."""

    def read(facts: Facts) -> object:
        pids = [facts["server"], *facts["zygote"], *facts["victims"]]
        return first_of([partial(_first_bytes, f"/proc/{pid}/{name}") for pid in pids])

    return read


def _first_bytes(path: str) -> str:
    with open(path, "rb") as file:
        data = b"x" if path.endswith("/mem") else file.read(64)  # to open it is enough
    if not data:
        raise PermissionError
    return f"read {path}"


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
