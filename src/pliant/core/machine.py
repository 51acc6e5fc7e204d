"""What a machine is and does, as its agent tells, and what of it is out of use.

Two ways to take slots out of use, both kept until they are undone. A machine is *drained* for maintenance, as a whole;
its slots still count. A slot, or a whole machine, is *excluded* because it is not to be trusted; it does not count.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from annotated_types import Len, MaxLen

from pliant.core.input import ONE_LINE, Input, Pattern

MachineState = Literal["in use", "draining", "drained", "excluded", "away"]
MachineFiles = Literal["shared", "copied"]
MAX_BECAUSE: Final = 200
MAX_LABELS: Final = 20
"""That people give one machine."""
_LABEL: Final = Pattern(r"^[A-Za-z0-9._/-]*$", "letters, digits, '.', '_', '/' and '-'")
LabelName = Annotated[str, Input(Len(1, 60), _LABEL)]
LabelValue = Annotated[str, Input(MaxLen(60), _LABEL)]
Because = Annotated[str, Input(Len(1, MAX_BECAUSE), ONE_LINE)]
_NUM_NAMED: Final = 3
"""So many reasons, or machines, are named in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDrain:
    """That a machine is drained. It is kept as long as that is so, and survives the server."""

    KIND: ClassVar[str] = "drain"

    name: str
    """Of the machine: its node's id."""
    owner: str
    """Who drained it."""
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotExclusion:
    """That a slot is excluded, or all slots of a machine. It is kept as long as that is so, and survives the server."""

    KIND: ClassVar[str] = "exclusion"

    name: str
    """As `exclusion_name` makes it."""
    owner: str
    """Who excluded it."""
    at: float
    machine: str
    """Its node's id."""
    slot: int | None
    """None: the whole machine, with whatever slots it may come to have."""
    because: Because


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLabels:
    """The labels that people gave a machine. They are kept until they are taken away, and survive the server.

    They lie over those that its agent declares. Example: the agent declares `gpu=h100, rack=7`, people say `rack=8,
    gpu=` (nothing): the machine carries `rack=8`.
    """

    KIND: ClassVar[str] = "machine-labels"

    name: str
    """Of the machine: its node's id."""
    owner: str
    """Who changed them last."""
    labels: Mapping[str, str]
    """By name; an empty value takes away what the agent declares."""

    def over(self, declared: Mapping[str, str]) -> Mapping[str, str]:
        """Return the labels that the machine carries."""
        return {name: value for name, value in {**declared, **self.labels}.items() if self.labels.get(name) != ""}


def exclusion_name(machine: str, slot: int | None) -> str:
    """Return the name of the exclusion of a slot, or of a whole machine."""
    return machine if slot is None else f"{machine}:{slot}"


def exclusion_words(machine: str, exclusions: Iterable[SlotExclusion]) -> str:
    """Return what of a machine is excluded, and why: `1 slot of gpu1 is excluded: ECC errors`; empty: nothing is."""
    every = tuple(exclusions)
    reasons = tuple(dict.fromkeys(one.because for one in every))
    if not every:
        return ""
    why = ", ".join(reasons[:_NUM_NAMED]) + ", …" * (len(reasons) > _NUM_NAMED)
    if any(one.slot is None for one in every):
        return f"{machine} is excluded: {why}"
    slots, are = ("slots", "are") if len(every) > 1 else ("slot", "is")
    return f"{len(every)} {slots} of {machine} {are} excluded: {why}"


def join_exclusions(words: Iterable[str]) -> str:
    """Return one sentence of those of several machines, some of them if they are many."""
    every = tuple(words)
    more = len(every) - _NUM_NAMED
    return "; ".join(every[:_NUM_NAMED]) + (f"; and something of {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """The GPU of a slot, as its driver tells; None: the driver does not tell that."""

    slot: int
    model: str
    """Such as `NVIDIA H200`."""
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    """By everything that runs on it, also what is not ours."""
    utilisation: float | None = None
    """Part of the time in which it computed anything, 0 to 1."""
    temperature_c: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What a machine is, and how it is just now."""

    cpu_model: str = ""
    """Empty: unknown."""
    num_cpus: int = 0
    """That Linux shows; the pool may be given fewer."""
    load: float | None = None
    """Threads that ran or waited to, the mean of the last minute."""
    memory_bytes: int | None = None
    memory_used_bytes: int | None = None
    """What no new program could have: all but what Linux calls available."""
    booted_at: float | None = None
    devices: tuple[DeviceFacts, ...] = ()
    """Of the slots that are GPUs, in their order."""
    trouble: str = ""
    """Why GPUs are not told of, in words; empty if nothing is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMachine:
    """The newest facts of a machine, and how old they are."""

    facts: MachineFacts
    age_s: float
