"""The machines of the pool, as REST shows them: what they are, who holds their slots, and what is out of use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le, Len

from pliant.api.jobs import SlotView
from pliant.api.request import Request
from pliant.api.view import view
from pliant.core.input import Input
from pliant.core.machine import Because, MachineFacts, MachineState

SlotNumbers = Annotated[tuple[Annotated[int, Input(Ge(0), Le(4095))], ...], Input(Len(1, 4096))]


class MachinePatch(Request):
    """What can be changed of a machine."""

    drained: bool
    """True: no task is started there any more, and elastic jobs leave at their next step boundary. False: as before."""


class ExcludeRequest(Request):
    """What is to be excluded of a machine, and why."""

    slots: SlotNumbers | None = None
    """The numbers of slots; null: the whole machine."""
    because: Because
    """For people: one line. It is in the sentences that say why jobs have fewer slots."""


class IncludeRequest(Request):
    """What of a machine is to be included again."""

    slots: SlotNumbers | None = None
    """The numbers of slots; null: all that is excluded of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionView:
    """That something is excluded."""

    by: str
    at: float
    because: str


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
    excluded: ExclusionView | None
    """That it is excluded, or its whole machine."""


@view
class MachineFactsView(MachineFacts):
    """What a machine told of itself the last time; it does so every ten seconds."""

    measured_at: float
    age_s: float
    """How long ago that was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineView:
    """A machine."""

    name: str
    """Its node's id."""
    state: MachineState
    """`draining` while tasks are still there, `drained` when none is; `excluded` as a whole."""
    drained_by: str | None
    drained_at: float | None
    excluded: ExclusionView | None
    """That it is excluded as a whole."""
    labels: Mapping[str, str]
    num_gpus: int
    num_cpus: int
    walls: tuple[str, ...]
    """What keeps people's code apart there, in words."""
    missing_walls: tuple[str, ...]
    """What does not, since that machine cannot do it."""
    num_taken: int
    """Slots that somebody holds, or a part of them."""
    num_excluded: int
    facts: MachineFactsView | None
    """Null: it has told none yet, or is not here."""
    slots: tuple[MachineSlot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePage:
    """All machines, in natural order of their names."""

    machines: tuple[MachineView, ...]
