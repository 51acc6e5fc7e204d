"""A machine that is drained: its tasks leave, and none is started there, until it is returned."""

from dataclasses import dataclass
from typing import ClassVar, Literal

MachineState = Literal["in use", "draining", "drained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDrain:
    """That a machine is drained. It is kept as long as that is so, and survives the server."""

    KIND: ClassVar[str] = "drain"

    name: str
    """Of the machine: its node's id."""
    owner: str
    """Who drained it."""
    at: float
