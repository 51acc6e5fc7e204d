"""Jobs are measured when they may hold too much, and hardly ever else."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pliant.cluster.agent import disk_watch
from pliant.cluster.agent.disk_watch import DiskWatch, FreeSpace, JobFiles, JobOverDisk, TakeTable, reason
from pliant.files.untrusted.usage import DiskUsage

MB = 10**6
GB = 10**9
LIMIT = 25 * GB


@dataclass
class Disk:
    """A disk, its clock, and jobs that fill it."""

    now: float = 100.0
    free: int = 1000 * GB
    held: dict[str, DiskUsage] = field(default_factory=dict)
    takes_s: dict[str, float] = field(default_factory=dict)
    measured: list[str] = field(default_factory=list)

    def watch(self) -> DiskWatch:
        return DiskWatch(measure=self.measure, free=lambda _: (FreeSpace(7, self.free),), monotonic=lambda: self.now)

    def measure(self, job: JobFiles, _table: TakeTable) -> DiskUsage:
        self.measured.append(job.job)
        self.now += self.takes_s.get(job.job, 0.0)
        return self.held.get(job.job, DiskUsage())

    def write(self, job: str, num_bytes: int) -> None:
        before = self.held.get(job, DiskUsage())
        self.held[job] = replace(before, num_bytes=before.num_bytes + num_bytes)
        self.free -= num_bytes

    def pass_s(self, watch: DiskWatch, seconds: float, *names: str) -> list[str]:
        """Look every second; return who was measured."""
        self.measured.clear()
        until = self.now + seconds
        while self.now < until:
            self.now += 1.0
            watch.look(jobs(*names), LIMIT)
        return list(self.measured)


def jobs(*names: str) -> Sequence[JobFiles]:
    return [JobFiles(job=name, folders=(f"/pool/jobs/{name}/result",)) for name in names]


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.mark.parametrize(("takes_s", "every_s"), [(0.0, 10), (0.125, 25), (1.0, 60), (4.0, 80)])
def test_a_job_is_measured_at_once_and_then_the_less_often_the_longer_it_takes(
    disk: Disk, takes_s: float, every_s: int
) -> None:
    watch = disk.watch()
    disk.takes_s["a"] = takes_s

    assert disk.pass_s(watch, 1, "a") == ["a"]
    assert disk.pass_s(watch, every_s - 1, "a") == []
    assert disk.pass_s(watch, 1, "a") == ["a"]
    assert watch.look(jobs("a"), LIMIT).over == ()


def test_it_is_measured_as_soon_as_it_may_hold_too_much(disk: Disk) -> None:
    watch = disk.watch()
    disk.write("a", 20 * GB)
    disk.pass_s(watch, 1, "a")
    disk.write("a", 4 * GB)
    assert disk.pass_s(watch, 1, "a") == []
    disk.write("a", 2 * GB)
    disk.now += 1.0

    (over,) = watch.look(jobs("a"), LIMIT).over

    assert over.job == "a"
    assert over.why.startswith("was ended because its job's files hold 24.2 GiB, more than the 23.3 GiB that a job")


def test_what_another_job_writes_costs_one_look_and_ends_nobody_else(disk: Disk) -> None:
    watch = disk.watch()
    disk.pass_s(watch, 1, "a", "b")
    disk.write("b", 26 * GB)
    disk.measured.clear()
    disk.now += 1.0

    assert [over.job for over in watch.look(jobs("a", "b"), LIMIT).over] == ["b"]
    assert sorted(disk.measured) == ["a", "b"]
    assert disk.pass_s(watch, 5, "a") == []


def test_space_that_is_freed_now_and_then_hides_nothing(disk: Disk) -> None:
    """A job writes 13 GB twice; between the two others free as much."""
    watch = disk.watch()
    disk.pass_s(watch, 1, "a")
    disk.write("a", 13 * GB)
    disk.pass_s(watch, 1, "a")
    disk.free += 13 * GB
    disk.pass_s(watch, 1, "a")
    disk.write("a", 13 * GB)
    disk.now += 1.0

    assert [over.job for over in watch.look(jobs("a"), LIMIT).over] == ["a"]


def test_a_job_that_takes_long_to_measure_is_measured_a_twentieth_of_the_time(disk: Disk) -> None:
    watch = disk.watch()
    disk.takes_s["a"] = 5.0
    disk.write("a", 24 * GB)

    def busy() -> None:
        disk.free -= 2 * GB  # it is always possible that this was the job

    seen = 0
    disk.free = 100_000 * GB
    began = disk.now
    while disk.now < began + 1050:
        busy()
        seen += len(disk.pass_s(watch, 1, "a"))
    assert 9 <= seen <= 11


@pytest.mark.parametrize("size_gb", [250, 1000, 4000])
@pytest.mark.parametrize("takes_s", [0.001, 1.0, 5.0, 20.0])
def test_a_job_that_writes_a_gigabyte_a_second_does_not_fill_the_disk(size_gb: int, takes_s: float) -> None:
    disk = Disk(free=size_gb * GB * 8 // 10, takes_s={"a": takes_s})
    watch = disk.watch()
    disk.pass_s(watch, 1, "a")
    while not watch.look(jobs("a"), size_gb * GB // 10).over:
        disk.now += 1.0
        disk.write("a", GB * (1 + int(takes_s)))  # what is written while it is measured is written, too
        assert disk.free > 0


def test_those_who_are_quick_do_not_wait_for_those_who_are_not(disk: Disk) -> None:
    watch = disk.watch()
    disk.takes_s.update({"slow": 30.0})
    disk.pass_s(watch, 1, "slow", *"abcdefgh")
    disk.now += 10_000.0
    disk.measured.clear()

    watch.look(jobs("slow", *"abcdefgh"), LIMIT)

    assert disk.measured == [*"abcdefgh", "slow"]


def test_a_look_ends_after_a_while_and_the_next_one_goes_on(disk: Disk) -> None:
    watch = disk.watch()
    names = [f"job-{number}" for number in range(9)]
    disk.takes_s.update(dict.fromkeys(names, 0.2))

    watch.look(jobs(*names), LIMIT)
    assert disk.measured == names[:3]
    watch.look(jobs(*names), LIMIT)
    assert disk.measured == names[:6]


def test_a_job_that_comes_back_is_measured_anew(disk: Disk) -> None:
    watch = disk.watch()
    disk.pass_s(watch, 1, "a")
    disk.pass_s(watch, 1)

    assert disk.pass_s(watch, 1, "a") == ["a"]


def test_one_that_could_not_be_measured_in_time_is_named_unless_it_is_over_already(disk: Disk) -> None:
    watch = disk.watch()
    disk.held = {"a": DiskUsage(num_bytes=30 * GB, is_whole=False), "b": DiskUsage(num_bytes=GB, is_whole=False)}

    found = watch.look(jobs("a", "b"), LIMIT)

    assert found.late == ("b",)
    assert [over.job for over in found.over] == ["a"]
    assert "hold at least 27.9 GiB" in found.over[0].why


def test_too_many_files_and_folders_too_deep_are_too_much() -> None:
    assert reason(DiskUsage(num_entries=5_000_000), LIMIT) == ""
    assert reason(DiskUsage(num_entries=5_000_001), LIMIT) == (
        "was ended because its job has more than 5,000,000 files on this machine's disk"
    )
    assert reason(DiskUsage(is_too_deep=True), LIMIT).endswith("more than 400 folders into each other")


def test_a_real_job_is_measured_and_its_disk_is_looked_at(tmp_path: Path) -> None:
    job = JobFiles(job="a", folders=tuple(str(tmp_path / name) for name in ("result", "tmp", "not-there")))
    for name in ("result", "tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"1" * MB)
    (space,) = disk_watch.free_space(job)
    assert space.disk == tmp_path.stat().st_dev
    assert space.num_bytes > 0

    watch = DiskWatch()

    assert watch.look([job], 3 * MB).over == ()
    assert 2 * MB <= disk_watch.measure_job(job).num_bytes < 3 * MB
    assert DiskWatch().look([job], MB).over == (JobOverDisk(job="a", why=reason(disk_watch.measure_job(job), MB)),)
