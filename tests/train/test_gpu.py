"""Trainings on a GPU, alone, shared by two tasks, and with one for each task."""

import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.train import on_gpu
from tests.train.crew import run_in
from tests.train.group.test_collectives import groups_of, never, together
from torch.utils.data import TensorDataset

from pliant.core.job import Mode
from pliant.train import Run
from pliant.train.balance import Stopwatch
from pliant.train.errors import GenerationLost
from pliant.train.group.collectives import Group, GroupSpec, connect, num_closing_groups
from pliant.train.group.rendezvous import RendezvousServer

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
TWO = ("127.0.0.1",) * 2
needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")


@pytest.fixture(autouse=True)
def _on_a_gpu() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16 autocast"])
def test_tasks_that_share_a_gpu_compute_what_one_does_bit_for_bit(autocast: bool, size: int) -> None:
    (alone,) = run_in(1, on_gpu.train, mode="exact", autocast=autocast)
    tasks = run_in(size, on_gpu.train, mode="exact", autocast=autocast)

    assert alone["claim"] == "exact"
    for one in tasks:
        assert one["claim"] == "exact"
        assert one["weights"] == alone["weights"]
        assert one["carried by"] == "StagedBackend"
        assert f"{size} tasks share 1 GPU" in one["note"]


def test_fast_mode_computes_the_same_but_for_rounding() -> None:
    (alone,) = run_in(1, on_gpu.train, mode="exact", autocast=False)
    both = run_in(2, on_gpu.train, mode="fast", autocast=False)

    assert both[0]["weights"] == both[1]["weights"]
    for found, expected in zip(both[0]["weights"], alone["weights"], strict=True):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("parts", "waits"), [(1, 0), (4, 1)])
def test_the_host_goes_on_while_the_gpu_computes_a_step(parts: int, waits: int) -> None:
    """With one part it waits for the loss alone, whose copy is queued before the backward pass; else for the sums."""
    model = torch.nn.Linear(4, 1).cuda()
    data = TensorDataset(torch.randn(64, 4).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    run = Run(model, optimizer, data, batch_size=16, mode="exact", virtual_workers=parts)
    for _ in run.epochs(2):
        losses, seen = [], 0
        for (batch,) in run:
            loss = model(batch).square().mean()
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
                has_stepped = run.step(loss)
                torch.cuda.set_sync_debug_mode("default")
            losses.append(loss.item())
            seen += sum("synchronizing CUDA operation" in str(one.message) for one in warned)
            if has_stepped:
                assert run.last["loss"] == pytest.approx(sum(losses) / parts, rel=1e-6)
                losses.clear()
    assert seen == waits * run.steps_per_epoch, "in the second epoch: the first step makes the optimizer's state"


def test_memory_of_tasks_that_left_is_given_back() -> None:
    torch.zeros(1, device="cuda")
    before, _ = torch.cuda.mem_get_info()
    used = run_in(2, on_gpu.train, mode="exact", autocast=False)
    assert all(one["bytes"] > 0 for one in used)

    deadline = time.monotonic() + 60
    while (free := torch.cuda.mem_get_info()[0]) < before - (64 << 20):
        assert time.monotonic() < deadline, f"{(before - free) >> 20} MiB are still taken 60 s after the tasks ended"
        time.sleep(0.1)  # the driver takes a moment


def test_every_collective_of_tensors_on_a_shared_gpu_gives_what_it_should() -> None:
    with groups_of(*TWO) as groups:

        def member(group: Group) -> list[list[float]]:
            summed = torch.full((1 << 20,), float(group.rank + 1), device="cuda")
            copied = torch.full((3,), float(group.rank), device="cuda")
            pieces, exchanged = torch.arange(2.0, device="cuda") + 10 * group.rank, torch.zeros(2, device="cuda")
            group.start_all_reduce(summed)
            work = group.start_all_to_all(exchanged, pieces, received=[1, 1], sent=[1, 1])
            group.wait_for(work, is_lost=never)
            doubled = exchanged * 2  # on the same stream, without waiting for the host
            group.start_broadcast(copied, 1)
            group.wait(is_lost=never)
            return [summed[:2].tolist(), doubled.tolist(), copied.tolist()]

        results = together([lambda group=group: member(group) for group in groups])  # type: ignore[misc]

    assert results == [[[3.0, 3.0], [2.0 * rank, 2.0 * (rank + 10)], [1.0] * 3] for rank in range(2)]


@needs_two
@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_a_gpu_for_each_task_is_used_over_nccl(mode: Mode) -> None:
    (alone,) = run_in(1, on_gpu.train, mode="exact", autocast=False)
    both = run_in(2, on_gpu.train, mode=mode, autocast=False, own_gpu=True)

    for one in both:
        assert one["carried by"] == "NcclBackend"
        assert one["note"] == ""
        if mode == "exact":
            assert one["weights"] == alone["weights"]


PEER = """
import sys, torch
from pliant.train.group.collectives import GroupSpec, connect

device = torch.device("cuda", 1)
torch.cuda.set_device(device)
print("here", flush=True)
spec = GroupSpec(number=1, rank=1, size=2, host="127.0.0.1", key=b"gpu", device=device)
group = connect(spec, address=("127.0.0.1", int(sys.argv[1])), prefix="1")
group.all_reduce([torch.ones(1, device=device)], is_lost=lambda: False)
print("connected", flush=True)
sys.stdin.read()
"""


@needs_two
@pytest.mark.parametrize("end", [lambda group: group.abort(), lambda group: None], ids=["aborted", "given up"])
def test_nccl_does_not_wait_for_a_process_that_stands_still(end: Callable[[Group], None]) -> None:
    rendezvous = RendezvousServer("127.0.0.1", key=b"gpu")
    command = [sys.executable, "-c", PEER, str(rendezvous.port)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as peer:
        try:
            assert peer.stdout is not None
            assert peer.stdout.readline() == "here\n"  # who connects does not wait long for one that still imports
            device = torch.device("cuda", 0)
            spec = GroupSpec(number=1, rank=0, size=2, host="127.0.0.1", key=b"gpu", device=device)
            group = connect(spec, address=("127.0.0.1", rendezvous.port), prefix="1")
            group.all_reduce([torch.ones(1, device=device)], is_lost=never)
            assert peer.stdout.readline() == "connected\n"
            peer.send_signal(signal.SIGSTOP)
            group.start_all_reduce(torch.ones(1 << 20, device=device))
            end(group)
            began = time.monotonic()
            with pytest.raises(GenerationLost):
                group.wait(is_lost=lambda: time.monotonic() - began > 1.0)
            group.drop()
            while num_closing_groups():
                assert time.monotonic() - began < 60
                time.sleep(0.05)  # between two looks
            assert torch.ones(4, device=device).sum().item() == 4.0, "the device works on"
        finally:
            peer.kill()
            rendezvous.close()


def test_a_stopwatch_measures_what_the_gpu_computes_while_the_host_goes_on() -> None:
    device = torch.device("cuda")
    matrix = torch.randn(4096, 4096, device=device)
    matrix @ matrix
    torch.cuda.synchronize()
    watch, begun_at = Stopwatch(time.monotonic), time.monotonic()
    watch.start(device)
    for _ in range(100):
        matrix @ matrix
    watch.stop()
    ordered_s = time.monotonic() - begun_at
    measured_s = watch.seconds()

    assert ordered_s < measured_s < 1.1 * (time.monotonic() - begun_at)
