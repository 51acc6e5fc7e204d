"""Slots come from what is declared, from the GPUs, or from the CPUs; a task sees its own only."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.cluster.agent.devices import Devices, confine, discover, share_of_memory, share_of_threads, visible
from pliant.cluster.agent.orders import check, held_slots
from pliant.cluster.zygote.records import Record
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder

UUIDS = ("GPU-aa10", "GPU-aa20", "GPU-bb30", "GPU-cc40")


def test_declared_slots_are_shares_of_the_cpu() -> None:
    devices = discover(8, {})

    assert (devices.num_slots, devices.gpus) == (8, ())
    assert devices.num_cpus == len(os.sched_getaffinity(0))


def test_without_gpus_and_without_a_declaration_there_is_a_slot_per_cpu() -> None:
    devices = discover(None, {"CUDA_VISIBLE_DEVICES": ""})

    assert (devices.num_slots, devices.gpus) == (len(os.sched_getaffinity(0)), ())


def test_a_machine_may_have_no_slots_and_not_fewer() -> None:
    assert discover(0, {}).num_slots == 0
    with pytest.raises(ValueError, match="0 or more"):
        discover(-1, {})


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (None, ("0", "1", "2", "3")),
        ("", ()),
        ("-1", ()),
        ("2", ("2",)),
        ("3, 1", ("3", "1")),
        ("0,9,1", ("0",)),
        ("1,1", ("1",)),
        ("GPU-bb30,GPU-aa1", ("2", "0")),
        ("GPU-aa", ()),
        ("none", ()),
    ],
)
def test_the_operators_cuda_visible_devices_is_read_as_cuda_reads_it(
    setting: str | None, expected: tuple[str, ...]
) -> None:
    assert visible(UUIDS, setting) == expected


def test_a_task_sees_its_gpus_and_no_others() -> None:
    env = confine(Devices(num_slots=3, num_cpus=12, gpus=("0", "2", "3")), (0, 2))

    assert env["CUDA_VISIBLE_DEVICES"] == env["NVIDIA_VISIBLE_DEVICES"] == "0,3"
    assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert env["MKL_NUM_THREADS"] == env["OMP_NUM_THREADS"] == "8"


def test_a_task_that_is_to_see_its_neighbours_sees_them_in_that_order_and_has_its_own_threads() -> None:
    env = confine(Devices(num_slots=3, num_cpus=12, gpus=("0", "2", "3")), (0,), (2, 0))

    assert env["CUDA_VISIBLE_DEVICES"] == "3,0"
    assert env["OMP_NUM_THREADS"] == "4"


@given(num_cpus=st.integers(1, 256), num_slots=st.integers(1, 64))
def test_tasks_on_all_slots_do_not_oversubscribe_the_machine(num_cpus: int, num_slots: int) -> None:
    devices = Devices(num_slots=num_slots, num_cpus=num_cpus)

    threads = [share_of_threads(devices, (slot,)) for slot in range(num_slots)]

    assert sum(threads) <= max(num_cpus, num_slots)
    assert confine(devices, (0,))["CUDA_VISIBLE_DEVICES"] == ""


def test_a_part_of_a_slot_is_that_part_of_threads_and_memory() -> None:
    devices = Devices(num_slots=2, num_cpus=16, memory_bytes=64 << 30)

    assert confine(devices, (0,), (), 250)["OMP_NUM_THREADS"] == "2"
    assert share_of_threads(devices, (0,), 1) == 1
    assert share_of_memory(devices, 250) == 8 << 30
    assert share_of_memory(devices, 1) == 512 << 20
    assert share_of_memory(devices, 1000) is None


@given(shares=st.lists(st.integers(1, 999), min_size=1, max_size=6), asked=st.integers(1, 1000))
def test_a_slot_is_never_given_away_more_than_once(shares: list[int], asked: int) -> None:
    tasks = [Record(task_id=TaskId(f"job-1.{n}"), slots=(0,), slot_share=share) for n, share in enumerate(shares)]
    order = StartOrder(
        task_id=TaskId("job-2.1"),
        node_id=NodeId("a"),
        slots=(0,),
        slot_share=asked,
        argv=(),
        env={},
        cwd="/",
        log_dir="",
    )
    if sum(shares) + asked <= 1000:
        check(order, NodeId("a"), 1, held_slots(tasks))
        return
    with pytest.raises(ValueError, match=r"slot 0 of node a is held by task job-1\.0"):
        check(order, NodeId("a"), 1, held_slots(tasks))


@pytest.mark.parametrize(("share", "slots"), [(0, (0,)), (1001, (0,)), (500, (0, 1)), (-5, (0,))])
def test_an_order_for_no_part_of_a_slot_is_refused(share: int, slots: tuple[int, ...]) -> None:
    order = StartOrder(
        task_id=TaskId("job-2.1"),
        node_id=NodeId("a"),
        slots=slots,
        slot_share=share,
        argv=(),
        env={},
        cwd="/",
        log_dir="",
    )

    with pytest.raises(ValueError, match="thousandths"):
        check(order, NodeId("a"), 4, {})


@pytest.mark.gpu
def test_every_gpu_of_this_machine_is_a_slot() -> None:
    import torch  # asked only where there is one

    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    assert discover(None, os.environ).num_slots == torch.cuda.device_count()
