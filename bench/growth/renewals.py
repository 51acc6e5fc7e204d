"""What a renewal of a machine costs a server that has nothing else to do: real links, machines that are played."""

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench.growth.links import TLS_BYTES
from bench.nodes.__main__ import Pool
from bench.peers.processes import Processes
from pliant.cluster.json_lines import encode
from pliant.cluster.link.messages import Renew, Renewed

PER_S: Final = 4.0
_SLOTS: Final = 10
_SETTLE_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalCost:
    """What one renewal costs, its answer and its part of a server at rest included."""

    seconds: float
    """Of the server's processor."""
    num_bytes: int
    """On the wire, both ways, with TLS."""


def measure(folder: Path, num_machines: int, seconds: float) -> RenewalCost:
    """Look on while so many machines are at rest."""
    processes = Processes(folder / "output.log")
    try:
        pool = Pool(folder, processes, num_machines, _SLOTS)
        time.sleep(_SETTLE_S)
        phase = pool.watch("at rest", partial(time.sleep, seconds))
    finally:
        processes.end()
    line = encode(Renew(number=100_000, received=100))
    answer = encode(Renewed(number=100_000))
    return RenewalCost(seconds=phase.server / num_machines / PER_S, num_bytes=len(line) + len(answer) + 2 * TLS_BYTES)
