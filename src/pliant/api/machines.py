"""The machines of the pool, as REST shows them: slots with who holds them, and whether the machine is drained."""

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.api.jobs import SlotView
from pliant.api.request import Request
from pliant.core.machine import MachineState


class MachinePatch(Request):
    """What can be changed of a machine."""

    drained: bool
    """True: no task is started there any more, and elastic jobs leave at their next step boundary. False: as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotHolder:
    """A job that holds a slot, or a part of it."""

    job_id: str
    job_name: str
    queue: str
    colour: int
    """Of its layer in charts."""
    queue_colour: int
    """Of its queue's layer in charts of queues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSlot(SlotView):
    """A slot with its holder's name, as far as the holder may be seen."""

    job_name: str | None
    holders: tuple[SlotHolder, ...]
    """Who holds it, as far as they may be seen; of several each has a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """A machine."""

    name: str
    """Its node's id."""
    state: MachineState
    """`draining` while tasks are still there, `drained` when none is."""
    drained_by: str | None
    drained_at: float | None
    labels: Mapping[str, str]
    num_gpus: int
    num_cpus: int
    walls: tuple[str, ...]
    """What keeps people's code apart there, in words."""
    missing_walls: tuple[str, ...]
    """What does not, since that machine cannot do it."""
    num_taken: int
    """Slots that somebody holds, or a part of them."""
    slots: tuple[MachineSlot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePage:
    """All machines, in natural order of their names."""

    machines: tuple[MachineView, ...]
