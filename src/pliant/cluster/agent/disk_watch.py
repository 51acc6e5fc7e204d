"""When the files of which job are measured, and which jobs hold too much; runs in a process beside the agent.

Theory of operation
-------------------

To measure a job is to go through all its files: a millisecond for most jobs, half a minute for one with millions. So
it is done when it may find something. What a job holds cannot have grown by more than what the disk has lost of its
free space since the job was measured, whoever took that; and to look at the free space costs microseconds. Example: a
job may have 25 GB, and had 20 GB when it was measured. It is measured again when 5 GB less are free, and not before.
Space that others free meanwhile would hide that it grows, so every job is measured now and then all the same: every ten
seconds if that takes a few milliseconds, every minute if it takes longer.

A job that may hold too much is not measured for more than a twentieth of the time, unless the disk is about to fill: at
a gigabyte a second no more than an eighth of what is free may be written until the next look.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pliant.cluster.process import ProcessTable, process_table
from pliant.core.size import size
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.usage import USAGE_LIMITS, DiskUsage, UsageMeter
from pliant.isolation.control_groups import members

SOONEST_S: Final = 10.0
LATEST_S: Final = 60.0
IDLE_SHARE: Final = 200
SHARE: Final = 20
"""After a look of 1 s there is none for so many; fewer if the job may hold too much."""
FASTEST_BYTES_PER_S: Final = 1e9
"""What a disk may take."""
PART_OF_FREE: Final = 8
_LOOK_S: Final = 0.5
"""So long jobs are measured at a time, and then whichever has begun."""

TakeTable = Callable[[], ProcessTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiles:
    """Where a job keeps files on this machine's disk."""

    job: str
    folders: tuple[str, ...]
    """Those that its tasks write to; the folder above each is ours."""
    pids: tuple[int, ...] = ()
    """Of its tasks."""
    groups: tuple[str, ...] = ()
    """Their control groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOverDisk:
    """A job that holds too much, and why it is ended, in words that follow the name of a task of it."""

    job: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFindings:
    """What one look has found."""

    over: tuple[JobOverDisk, ...] = ()
    late: tuple[str, ...] = ()
    """Jobs that took too long to measure; what they hold is unknown."""


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """Of one disk."""

    disk: int
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """What was found of a job, and when."""

    num_bytes: int
    ended_at: float
    took_s: float
    lost: Mapping[int, int]
    """What its disks had lost of their free space before that, by disk."""


class DiskWatch:
    """Knows what jobs held when they were measured last."""

    def __init__(
        self,
        *,
        measure: Callable[[JobFiles, TakeTable], DiskUsage] | None = None,
        free: Callable[[JobFiles], Sequence[FreeSpace]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what measures a job and what tells the free space of its disks; those of this machine, if left out."""
        self._measure = measure or measure_job
        self._free = free or free_space
        self._monotonic = monotonic
        self._known: dict[str, _Measured] = {}
        self._disks: dict[int, int] = {}
        """Bytes that were free on each disk, by the last look."""
        self._lost: dict[int, int] = {}
        """Bytes by which that has ever shrunk; what was freed meanwhile does not count."""

    def look(self, jobs: Sequence[JobFiles], max_bytes: int) -> DiskFindings:
        """Measure the jobs that it is time to measure; call this every second, with all jobs that have tasks."""
        began = self._monotonic()
        self._known = {job.job: self._known[job.job] for job in jobs if job.job in self._known}
        disks = {job.job: tuple(self._free(job)) for job in jobs}
        self._note_losses({space.disk: space.num_bytes for spaces in disks.values() for space in spaces})
        due = [job for job in jobs if self._is_due(job, disks[job.job], max_bytes)]
        over, late, table = [], [], cache(process_table)
        for job in sorted(due, key=self._took_s):  # who is quick to measure does not wait for who is not
            if self._monotonic() - began > _LOOK_S:
                break
            usage = self._look_at(job, disks[job.job], table)
            if why := reason(usage, max_bytes):
                over.append(JobOverDisk(job=job.job, why=why))
            elif not usage.is_whole:
                late.append(job.job)
        return DiskFindings(over=tuple(over), late=tuple(late))

    def _note_losses(self, free: Mapping[int, int]) -> None:
        for disk, num_bytes in free.items():
            before = self._disks.get(disk, num_bytes)
            self._lost[disk] = self._lost.get(disk, 0) + max(0, before - num_bytes)
            self._disks[disk] = num_bytes

    def _is_due(self, job: JobFiles, disks: Sequence[FreeSpace], max_bytes: int) -> bool:
        if (known := self._known.get(job.job)) is None:
            return True
        passed = self._monotonic() - known.ended_at
        grown = sum(self._lost[space.disk] - known.lost.get(space.disk, 0) for space in disks)
        if known.num_bytes + grown <= max_bytes:
            idle_s = min(max(SOONEST_S, IDLE_SHARE * known.took_s), LATEST_S)
            return passed >= max(idle_s, SHARE * known.took_s)
        free = min((space.num_bytes for space in disks), default=0)
        return passed >= min(SHARE * known.took_s, free / PART_OF_FREE / FASTEST_BYTES_PER_S)

    def _look_at(self, job: JobFiles, disks: Sequence[FreeSpace], table: TakeTable) -> DiskUsage:
        began = self._monotonic()
        usage = self._measure(job, table)
        ended = self._monotonic()
        lost = {space.disk: self._lost[space.disk] for space in disks}
        self._known[job.job] = _Measured(num_bytes=usage.num_bytes, ended_at=ended, took_s=ended - began, lost=lost)
        return usage

    def _took_s(self, job: JobFiles) -> float:
        known = self._known.get(job.job)
        return 0.0 if known is None else known.took_s


def reason(usage: DiskUsage, max_bytes: int) -> str:
    """Return why a job that holds so much is ended, in words that follow the name of a task of it; empty if it is not.

    Example: `job-1.2 was ended because its job's files hold 12.3 GiB, more than the 10.0 GiB that …`.
    """
    if usage.num_bytes > max_bytes:
        least = "" if usage.is_whole else "at least "
        return (
            f"was ended because its job's files hold {least}{size(usage.num_bytes)}, more than the {size(max_bytes)} "
            f"that a job may have on this machine's disk (pliant up --max-disk)"
        )
    if usage.num_entries > USAGE_LIMITS.max_entries:
        return f"was ended because its job has more than {USAGE_LIMITS.max_entries:,} files on this machine's disk"
    if usage.is_too_deep:
        return f"was ended because its job has put more than {USAGE_LIMITS.max_depth} folders into each other"
    return ""


def measure_job(job: JobFiles, table: TakeTable = process_table) -> DiskUsage:
    """Measure what a job holds on the disk."""
    meter = UsageMeter()
    for folder in job.folders:
        meter.add_folder(_untrusted(folder))
    pids = {pid for leader in job.pids for pid in table().family(leader)}
    meter.add_open_files(sorted(pids.union(*map(members, job.groups))))
    return meter.usage


def free_space(job: JobFiles) -> tuple[FreeSpace, ...]:
    """Return what is free on the disks of a job's folders; one that does not tell is left out."""
    found: dict[int, FreeSpace] = {}
    for root in {_untrusted(folder).root for folder in job.folders}:
        try:
            disk, facts = os.stat(root).st_dev, os.statvfs(root)
        except OSError:
            continue
        found[disk] = FreeSpace(disk, facts.f_bfree * facts.f_frsize)
    return tuple(found.values())


def _untrusted(folder: str) -> UntrustedPath:
    return UntrustedPath(Path(folder).parent, Path(folder).name)
