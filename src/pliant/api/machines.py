"""The machines of the pool, as REST shows them: what they are, who holds their slots, and what is out of use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Le, Len, MaxLen

from pliant.api.pool import SlotView
from pliant.api.request import Request
from pliant.api.view import view
from pliant.core.input import Input
from pliant.core.joining import DEFAULT_JOIN_TOKEN_S, MachineName, TokenSeconds, TokenUses
from pliant.core.machine import MAX_LABELS, Because, LabelName, LabelValue, MachineFacts, MachineFiles, MachineState

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


class LabelsRequest(Request):
    """The labels that people give a machine, all of them."""

    labels: Annotated[dict[LabelName, LabelValue], Input(MaxLen(MAX_LABELS))]
    """By name. An empty value takes away a label that the machine's agent declares; others are as declared."""


class JoinTokenRequest(Request):
    """What a token is for, with which machines join."""

    machine: MachineName | None = None
    """The only name with which one may join; null: any."""
    valid_s: TokenSeconds = DEFAULT_JOIN_TOKEN_S
    """So long it is good, seconds."""
    max_uses: TokenUses = 1
    """So many machines may join with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTokenView:
    """A token with which machines join, without its secret."""

    id: str
    owner: str
    """Who made it."""
    machine: str | None
    """The only name with which one may join; null: any."""
    created_at: float
    expires_at: float
    max_uses: int
    num_uses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeJoinToken:
    """A token that was just made."""

    token: str
    """Its text, which is shown in this answer only."""
    command: str
    """What to type on the machine that is to join; it asks for the token."""
    info: JoinTokenView


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTokenPage:
    """The tokens that have not expired, newest first."""

    tokens: tuple[JoinTokenView, ...]


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
    """`draining` while tasks are still there, `drained` when none is; `excluded` as a whole; `away`: it has joined, and
    its agent is not linked now."""
    drained_by: str | None
    drained_at: float | None
    excluded: ExclusionView | None
    """That it is excluded as a whole."""
    labels: Mapping[str, str]
    """Those that it carries: what its agent declares, and what people gave it."""
    given_labels: Mapping[str, str]
    """What people gave it; an empty value takes away a label that its agent declares."""
    num_gpus: int
    num_cpus: int
    walls: tuple[str, ...]
    """What keeps people's code apart there, in words."""
    missing_walls: tuple[str, ...]
    """What does not, since that machine cannot do it."""
    files: MachineFiles
    """`shared`: it sees the server's state folder; `copied`: what tasks need is copied there, what they write back."""
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
    takes_machines: bool
    """Others can join: the server was started for that."""
