"""What a machine is, read from Linux and from the driver, and that nothing which hangs there holds up the agent."""

import threading
from pathlib import Path

import pytest

from pliant.cluster.agent.devices import Devices, discover
from pliant.cluster.agent.machine_watch import EVERY_S, GpuReader, MachineReader, MachineWatch
from pliant.core.machine import MachineFacts

NO_GPUS = Devices(num_slots=2, num_cpus=2)


def finish(watch: MachineWatch) -> MachineFacts | None:
    """Return what a reading that is under way has found."""
    assert watch._under_way is not None
    watch._under_way.join(10)
    return watch.newest()


def test_a_reading_that_hangs_holds_up_nobody_and_none_follows_it() -> None:
    now, ends, readings = [100.0], threading.Event(), []

    def read() -> MachineFacts:
        readings.append(now[0])
        ends.wait(30)
        return MachineFacts(cpu_model=f"read {len(readings)}")

    watch = MachineWatch(read, monotonic=lambda: now[0])
    for _ in range(10):
        assert watch.newest() is None
        now[0] += EVERY_S
    assert len(readings) == 1
    ends.set()
    assert finish(watch) == MachineFacts(cpu_model="read 1")
    assert watch.newest() is None
    assert finish(watch) == MachineFacts(cpu_model="read 2")


def test_it_reads_every_ten_seconds_and_tells_each_reading_once() -> None:
    now = [100.0]
    watch = MachineWatch(MachineFacts, monotonic=lambda: now[0])
    assert watch.newest() is None
    assert finish(watch) == MachineFacts()
    now[0] += EVERY_S - 0.1
    assert watch.newest() is None
    assert watch._under_way is None
    now[0] += 0.1
    assert watch.newest() is None
    assert finish(watch) == MachineFacts()


def test_a_reading_that_fails_tells_nothing_and_the_next_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    now, fails = [100.0], [True]

    def read() -> MachineFacts:
        if fails.pop():
            raise OSError("gone")
        return MachineFacts()

    watch = MachineWatch(read, monotonic=lambda: now[0])
    assert watch.newest() is None
    assert finish(watch) is None
    assert "is unknown for now" in caplog.text
    fails[:] = [False]
    now[0] += EVERY_S
    assert watch.newest() is None
    assert finish(watch) == MachineFacts()


def test_linux_tells_processors_memory_load_and_when_it_began(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Xeon Platinum 8480\n\nprocessor\t: 1\n")
    (tmp_path / "stat").write_text("cpu  1 2 3\nbtime 1700000000\n")
    (tmp_path / "meminfo").write_text("MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    400 kB\n")
    (tmp_path / "loadavg").write_text("3.50 2.00 1.00 2/345 678\n")

    facts = MachineReader(NO_GPUS, tmp_path).read()

    assert (facts.cpu_model, facts.booted_at, facts.load) == ("Xeon Platinum 8480", 1.7e9, 3.5)
    assert (facts.memory_bytes, facts.memory_used_bytes) == (1000 << 10, 600 << 10)
    assert (facts.devices, facts.trouble) == ((), "")


def test_what_linux_does_not_tell_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: many kB\n")
    (tmp_path / "loadavg").write_text("\n")

    facts = MachineReader(NO_GPUS, tmp_path).read()

    assert (facts.cpu_model, facts.booted_at, facts.load, facts.memory_bytes) == ("", None, None, None)


def test_this_machine_tells_of_itself() -> None:
    facts = MachineReader(NO_GPUS).read()

    assert facts.num_cpus >= 1
    assert facts.memory_bytes is not None
    assert facts.memory_used_bytes is not None
    assert 0 < facts.memory_used_bytes <= facts.memory_bytes
    assert facts.booted_at is not None
    assert facts.booted_at > 1e9


@pytest.mark.skipif(bool(discover(None, {}).gpus), reason="there is a driver")
def test_a_driver_that_does_not_answer_is_said() -> None:
    devices, trouble = GpuReader(("0",)).read()

    assert devices == ()
    assert trouble.startswith("the NVIDIA driver does not answer: ")


@pytest.mark.gpu
def test_a_gpu_tells_its_model_and_memory() -> None:
    devices, trouble = GpuReader(discover(None, {}).gpus).read()

    assert trouble == ""
    for number, device in enumerate(devices):
        assert device.slot == number
        assert device.model
        assert device.memory_bytes is not None
        assert device.memory_used_bytes is not None
        assert device.memory_used_bytes <= device.memory_bytes
        assert device.utilisation is None or 0 <= device.utilisation <= 1
