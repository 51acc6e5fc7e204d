"""Who uses more of a GPU's memory than the part that it holds is ended, and nobody else is; the driver is a double."""

import os
from dataclasses import replace

import pytest

from pliant.cluster.agent.devices import Devices
from pliant.cluster.agent.gpu_memory_use import GpuMemory, GpuMemoryCheck
from pliant.cluster.zygote.records import Record
from pliant.core.job import TaskId

GB = 1 << 30
DEVICES = Devices(num_slots=2, num_cpus=8, gpus=("3", "5"), files=("/dev/nvidia3", "/dev/nvidia5"))
OWN = os.getsid(0)


def task(name: str, share: int = 250) -> Record:
    """Return a task on slot 1 whose session is that of this test."""
    return Record(task_id=TaskId(name), slots=(1,), slot_share=share, pid=OWN)


def check(used: dict[int, int] | None, devices: Devices = DEVICES) -> GpuMemoryCheck:
    def read(index: int) -> GpuMemory | None:
        assert index == 5, "asks for another GPU than that of slot 1"
        return None if used is None else GpuMemory(total=80 * GB, used=used)

    return GpuMemoryCheck(devices, read)


def test_more_than_its_part_is_its_end() -> None:
    over = dict(check({os.getpid(): 21 * GB}).over_limit([(task("job-1.1"), ())]))

    assert list(over) == ["job-1.1"]
    assert "more than" in over[TaskId("job-1.1")]
    assert "0.25 of a GPU" in over[TaskId("job-1.1")]


@pytest.mark.parametrize("used", [{os.getpid(): 20 * GB}, {1 << 22: 70 * GB}, {}, None])
def test_nobody_is_ended_for_what_it_may_use_or_for_what_others_use(used: dict[int, int] | None) -> None:
    assert not list(check(used).over_limit([(task("job-1.1"), ())]))


def test_whole_slots_and_machines_without_gpus_are_not_looked_at() -> None:
    whole = task("job-1.1", share=1000)

    assert not list(check({os.getpid(): 80 * GB}).over_limit([(whole, ())]))
    cpus = check({os.getpid(): 80 * GB}, replace(DEVICES, gpus=(), files=()))
    assert not cpus.concerns([task("job-1.1")])
    assert check({}).concerns([whole, task("job-1.2")])


def test_it_does_not_look_again_at_once() -> None:
    looks = check({os.getpid(): 21 * GB})

    assert list(looks.over_limit([(task("job-1.1"), ())]))
    assert not list(looks.over_limit([(task("job-1.1"), ())]))
