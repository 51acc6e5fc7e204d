"""The account that the demo gives of each job, and the checks that decide its exit status.

Pure: it is handed the books (`audit.Ledger`), the events and the accuracy, and says what holds and what does not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from examples.demo.audit import Ledger
from pliant.core.event import Event

MIN_ACCURACY = 0.97


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """One change of a job's size, as its leader told it."""

    at: float
    from_size: int
    to_size: int
    step: int
    pause_ms: float
    redone_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What must have happened to a job."""

    num_epochs: int
    num_samples: int
    """Samples in an epoch."""
    steps_per_epoch: int
    max_redone_steps: int
    sizes: tuple[int, ...] | None
    """The sizes that the job must have gone through, in order; on its way to the next one it may rest between. None:
    any."""

    @property
    def num_steps(self) -> int:
        return self.num_epochs * self.steps_per_epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What happened to a job."""

    label: str
    job_id: str
    state: str
    ledger: Ledger
    resizes: tuple[Resize, ...]
    """The first one is the start: from size 0."""
    accuracy: float
    """On samples that the training never saw."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(resize.to_size for resize in self.resizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One sentence that must be true, and what was found."""

    label: str
    claim: str
    holds: bool
    found: str


def resizes_of(switches: Iterable[Event]) -> tuple[Resize, ...]:
    """Return the changes of size that a job's `generation.switched` events tell of, oldest first."""
    return tuple(
        Resize(
            at=event.at,
            from_size=int(event.data["from_size"] or 0),
            to_size=int(event.data["size"] or 0),
            step=int(event.data["step"] or 0),
            pause_ms=float(event.data["pause_ms"] or 0.0),
            redone_steps=int(event.data["redone_steps"] or 0),
        )
        for event in switches
    )


def passes_through(sizes: Sequence[int], stops: Sequence[int]) -> bool:
    """Tell whether a job, starting from nothing, went from stop to stop and never turned back between two of them.

    >>> passes_through([1, 5, 8, 4, 3], [1, 8, 4, 3])
    True
    >>> passes_through([1, 8, 2, 4, 3], [1, 8, 4, 3])
    False
    """
    before, ahead = 0, list(stops)
    for size, _ in groupby(sizes):
        if not ahead or not min(before, ahead[0]) <= size <= max(before, ahead[0]):
            return False
        if size == ahead[0]:
            ahead.pop(0)
        before = size
    return not ahead


def checks_of(account: Account, expected: Expected) -> tuple[Check, ...]:
    """Return every claim about a job with what was found."""
    ledger = account.ledger
    told_redone = sum(resize.redone_steps for resize in account.resizes)
    num_redone = max(told_redone, len({attempt.step for attempt in ledger.redone}))
    num_whole_epochs = sum(num == expected.num_samples for num in ledger.samples_per_epoch.values())
    limit = expected.max_redone_steps

    def check(claim: str, holds: bool, found: str) -> Check:
        return Check(label=account.label, claim=claim, holds=holds, found=found)

    checks = (
        check("ended as completed", account.state == "completed", account.state),
        check(
            f"did {expected.num_epochs} epochs of {expected.steps_per_epoch} optimizer steps",
            ledger.num_steps == expected.num_steps,
            f"{ledger.num_steps} of {expected.num_steps} steps",
        ),
        check(
            f"used each of the {expected.num_samples} samples exactly once in every epoch",
            not ledger.faults and num_whole_epochs == expected.num_epochs,
            "; ".join(ledger.faults[:3]) or f"so in {num_whole_epochs} of {expected.num_epochs} epochs",
        ),
        check(
            f"did at most {limit} step again" if limit else "did no step again",
            num_redone <= limit,
            f"{len(ledger.redone)} by the samples used, {told_redone} by its own word",
        ),
        check("lost no committed step", not ledger.lost_commits, f"lost {len(ledger.lost_commits)}"),
        check(
            f"reached a test accuracy of {MIN_ACCURACY}",
            account.accuracy >= MIN_ACCURACY,
            f"{account.accuracy:.4f}",
        ),
    )
    if expected.sizes is None:
        return checks
    went = check(
        "went through the sizes " + " → ".join(map(str, expected.sizes)),
        passes_through(account.sizes, expected.sizes),
        " → ".join(map(str, account.sizes)) or "never trained",
    )
    return (*checks[:-1], went, checks[-1])
