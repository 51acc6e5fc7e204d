"""Reads which samples a job's tasks used in every step, and keeps the books: `Ledger`.

Each task writes `result/audit/TASK.jsonl`: before a reduction the samples that it used, as
`{"g": generation, "s": step, "e": epoch, "i": [indices]}`, and after the commit `{"g": generation, "c": step}`.
A step counts with the highest generation in which anybody committed it; every other attempt at it is work done again.
The last line of a file may be torn: its task was killed.

Knows nothing of servers or models. A sample that the books cannot place is never dropped: it shows up as a fault.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Attempt:
    """One step as one generation computed it."""

    generation: int
    step: int


@dataclass(slots=True)
class Audit:
    """What the tasks wrote, by attempt."""

    samples: dict[Attempt, list[int]] = field(default_factory=lambda: defaultdict(list))
    """The indices that all tasks together used."""
    epochs: dict[Attempt, set[int]] = field(default_factory=lambda: defaultdict(set))
    committed_by: dict[Attempt, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The tasks that committed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The books of one job; `faults` says in words what does not add up."""

    num_steps: int
    """Different optimizer steps that count."""
    redone: tuple[Attempt, ...]
    """Attempts that do not count because the step was computed again."""
    lost_commits: tuple[Attempt, ...]
    """Those among them that a task which lived on had committed: must be none."""
    samples_per_epoch: Mapping[int, int]
    """Different samples used by the steps that count."""
    faults: tuple[str, ...]


def read_audit(folder: Path) -> Audit:
    """Read all files of an audit folder.

    Raises:
        ValueError: a line other than the last of its file is no audit record.
    """
    audit = Audit()
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_text(errors="replace").split("\n")
        for number, line in enumerate(lines[:-1], start=1):  # what follows the last line end is torn, or empty
            _enter(audit, path.stem, line, f"{path.name}:{number}")
    return audit


def _enter(audit: Audit, task_id: str, line: str, place: str) -> None:
    try:
        record = json.loads(line)
        if "c" in record:
            audit.committed_by[Attempt(record["g"], record["c"])].add(task_id)
        else:
            attempt = Attempt(record["g"], record["s"])
            audit.samples[attempt].extend(record["i"])
            audit.epochs[attempt].add(record["e"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{place}: no audit record: {line[:80]!r}") from error


def balance(audit: Audit, *, num_epochs: int, num_samples: int, steps_per_epoch: int, killed: frozenset[str]) -> Ledger:
    """Keep the books: which attempt at each step counts, and whether every epoch used every sample exactly once."""
    counted: dict[int, Attempt] = {}
    for attempt in audit.committed_by:
        best = counted.get(attempt.step)
        if best is None or attempt.generation > best.generation:
            counted[attempt.step] = attempt
    redone = tuple(
        attempt
        for attempt in sorted({*audit.samples, *audit.committed_by}, key=lambda a: (a.step, a.generation))
        if counted.get(attempt.step) != attempt
    )
    used: dict[int, Counter[int]] = {epoch: Counter() for epoch in range(num_epochs)}
    for step, attempt in counted.items():
        used.setdefault(step // steps_per_epoch, Counter()).update(audit.samples.get(attempt, []))
    faults = [
        *_step_faults(counted, audit, num_epochs=num_epochs, steps_per_epoch=steps_per_epoch),
        *(fault for epoch, counts in used.items() for fault in _epoch_faults(epoch, counts, num_samples)),
    ]
    return Ledger(
        num_steps=len(counted),
        redone=redone,
        lost_commits=tuple(attempt for attempt in redone if audit.committed_by.get(attempt, set()) - killed),
        samples_per_epoch={epoch: len(counts) for epoch, counts in sorted(used.items())},
        faults=tuple(faults),
    )


def _step_faults(counted: Mapping[int, Attempt], audit: Audit, *, num_epochs: int, steps_per_epoch: int) -> list[str]:
    expected = set(range(num_epochs * steps_per_epoch))
    faults = []
    if missing := sorted(expected - counted.keys()):
        faults.append(f"steps never committed: {_some(missing)}")
    if extra := sorted(counted.keys() - expected):
        faults.append(f"steps beyond the last: {_some(extra)}")
    if wrong := sorted(s for s, a in counted.items() if audit.epochs.get(a) != {s // steps_per_epoch}):
        faults.append(f"steps with samples of another epoch, or of none: {_some(wrong)}")
    return faults


def _epoch_faults(epoch: int, counts: Counter[int], num_samples: int) -> list[str]:
    faults = []
    if missing := sorted(set(range(num_samples)) - counts.keys()):
        faults.append(f"epoch {epoch} never used the samples {_some(missing)}")
    if unknown := sorted(counts.keys() - set(range(num_samples))):
        faults.append(f"epoch {epoch} used samples that do not exist: {_some(unknown)}")
    if repeated := sorted(sample for sample, times in counts.items() if times > 1):
        faults.append(f"epoch {epoch} used more than once the samples {_some(repeated)}")
    return faults


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return shown if len(numbers) <= 5 else f"{shown} and {len(numbers) - 5} more"
