"""Groups over real connections: what travels, and how they end."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest
import torch

from pliant.train.errors import GenerationLost
from pliant.train.group import collectives, gloo
from pliant.train.group.collectives import Group, GroupSpec, connect, num_closing_groups
from pliant.train.group.rendezvous import RendezvousServer
from pliant.train.group.staged import StagedBackend
from pliant.train.sum.buckets import BucketLayout
from pliant.train.sum.memory import SumMemory

ROOT = Path(__file__).parents[3]
PATIENCE_S = 30.0
KEY = b"the key of job-1"
Result = TypeVar("Result")


def never() -> bool:
    return False


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for: {what}"
        time.sleep(0.01)  # between two looks


def together(actions: Sequence[Callable[[], Result]]) -> list[Result]:
    """Run them side by side; return what they return, or raise what one of them raised."""
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def run(place: int) -> None:
        try:
            results[place] = actions[place]()
        except BaseException as error:  # noqa: BLE001 (raised again below)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(actions))]


@contextmanager
def patient_gloo() -> Iterator[None]:
    """Let a slow machine connect: for a job the coordinator announces the generation again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collectives, "_MESH_TIMEOUT_S", PATIENCE_S)
        yield


@contextmanager
def groups_of(*hosts: str, number: int = 1) -> Iterator[list[Group]]:
    """Connect one member for every host, at a rendezvous of the first."""
    rendezvous = RendezvousServer(hosts[0], key=KEY)
    address = (rendezvous.host, rendezvous.port)

    def member(rank: int) -> Callable[[], Group]:
        spec = GroupSpec(number=number, rank=rank, size=len(hosts), host=hosts[rank], key=KEY)
        return lambda: connect(spec, address=address, prefix=f"job-1/{number}")

    with patient_gloo():
        made = together([member(rank) for rank in range(len(hosts))])
    rendezvous.close()
    yield made
    for group in made:
        group.drop()
    wait_until(lambda: num_closing_groups() == 0, "all groups are gone")


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


THREE = ("127.0.0.1",) * 3


@pytest.mark.parametrize(
    "hosts",
    [
        pytest.param(THREE, id="one address"),
        pytest.param(("127.0.0.1", "127.0.0.2", "127.0.0.3"), id="an address each"),
        pytest.param(("localhost",) * 3, id="a name"),
        pytest.param(("::1",) * 3, id="IPv6", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    ],
)
def test_every_collective_gives_every_member_what_it_should(hosts: tuple[str, ...]) -> None:
    with groups_of(*hosts) as groups:

        def member(group: Group) -> list[list[float]]:
            rank = group.rank
            summed = torch.full((4,), float(rank + 1))
            group.start_all_reduce(summed)
            pieces, exchanged = torch.arange(6.0) + 10 * rank, torch.empty(2 * (rank + 1) + rank + 1)
            received, sent = [rank + 1] * 3, [1, 2, 3]
            work = group.start_all_to_all(exchanged, pieces, received=received, sent=sent)
            group.wait_for(work, is_lost=never)
            copied = torch.full((2,), float(rank))
            group.start_broadcast(copied, 1)
            group.wait(is_lost=never)
            passed = torch.zeros(3)
            if rank == 0:
                group.send(torch.tensor([7.0, 8.0, 9.0]), 2)
            elif rank == 2:
                group.receive(passed, 0)
            return [summed.tolist(), exchanged.tolist(), copied.tolist(), passed.tolist()]

        results = together([lambda group=group: member(group) for group in groups])  # type: ignore[misc]

    firsts = [[0.0], [1.0, 2.0], [3.0, 4.0, 5.0]]
    assert results == [
        [
            [6.0] * 4,
            [value + 10 * other for other in range(3) for value in firsts[rank]],
            [1.0, 1.0],
            [7.0, 8.0, 9.0] if rank == 2 else [0.0] * 3,
        ]
        for rank in range(3)
    ]


def test_a_group_of_one_does_nothing_and_needs_no_rendezvous() -> None:
    group = connect(GroupSpec(number=4, rank=0, size=1, host="127.0.0.1", key=KEY), address=("", 0), prefix="job-1/4")
    tensor = torch.ones(2)

    group.wait_for(group.start_all_reduce(tensor), is_lost=never)
    group.wait(is_lost=never)
    group.abort()
    group.drop()

    assert tensor.tolist() == [1.0, 1.0]
    assert (group.number, group.num_started) == (4, 0)


def test_two_generations_live_side_by_side() -> None:
    with groups_of(*THREE[:2], number=1) as old, groups_of(*THREE, number=2) as new:
        tensors = [torch.ones(1) for _ in range(5)]
        together(
            [
                lambda group=group, tensor=tensor: group.all_reduce([tensor], is_lost=never)  # type: ignore[misc]
                for group, tensor in zip([*old, *new], tensors, strict=True)
            ]
        )

    assert [tensor.item() for tensor in tensors] == [2.0, 2.0, 3.0, 3.0, 3.0]


def test_who_waits_for_a_member_that_left_is_told() -> None:
    with groups_of(*THREE[:2]) as (leaver, waiter):
        leaver.drop()
        with pytest.raises(GenerationLost):
            waiter.all_reduce([torch.ones(1)], is_lost=never)


def test_what_was_dropped_cannot_be_used() -> None:
    with groups_of(*THREE[:2]) as (first, _):
        first.drop()
        uses: list[Callable[[], object]] = [
            lambda: first.start_all_reduce(torch.ones(1)),
            lambda: first.send(torch.ones(1), 1),
            lambda: first.receive(torch.ones(1), 1),
            lambda: first.wait(is_lost=never),
        ]
        for use in uses:
            with pytest.raises(GenerationLost):
                use()


def test_a_rendezvous_that_died_is_noticed_while_forming() -> None:
    rendezvous = RendezvousServer("127.0.0.1", key=KEY)
    spec = GroupSpec(number=3, rank=1, size=2, host="127.0.0.1", key=KEY)
    connecting = threading.Event()

    def is_cancelled() -> bool:
        connecting.set()
        return False

    def form() -> str:
        with pytest.raises(GenerationLost) as lost:
            connect(spec, address=(rendezvous.host, rendezvous.port), prefix="job-1/3", is_cancelled=is_cancelled)
        return str(lost.value)

    def die() -> str:
        assert connecting.wait(PATIENCE_S)
        rendezvous.close()
        return ""

    began = time.monotonic()
    message, _ = together([form, die])

    assert message.startswith(f"generation 3 did not connect: the rendezvous at 127.0.0.1:{rendezvous.port} is gone")
    assert time.monotonic() - began < collectives.CONNECT_TIMEOUT_S / 2


def test_an_address_that_is_not_this_machines_is_named_with_what_to_do() -> None:
    rendezvous = RendezvousServer("127.0.0.1", key=KEY)
    right, wrong = (
        GroupSpec(number=1, rank=rank, size=2, host=host, key=KEY)
        for rank, host in enumerate(("127.0.0.1", "192.0.2.7"))
    )
    is_cancelled = threading.Event()

    def form(spec: GroupSpec) -> str:
        with pytest.raises(GenerationLost) as lost:
            connect(spec, address=(rendezvous.host, rendezvous.port), prefix="1", is_cancelled=is_cancelled.is_set)
        is_cancelled.set()
        return str(lost.value)

    _, message = together([lambda: form(right), lambda: form(wrong)])
    rendezvous.close()

    assert "cannot use its address 192.0.2.7" in message
    assert "PLIANT_HOST" in message


# -- a peer that stands still ---------------------------------------------------------------------------------------

PEER = """
import sys, torch
from pliant.train.group import collectives
from pliant.train.group.collectives import GroupSpec, connect

collectives._MESH_TIMEOUT_S = float(sys.argv[2])
print("here", flush=True)
spec = GroupSpec(number=1, rank=1, size=2, host="127.0.0.1", key=b"the key of job-1")
group = connect(spec, address=("127.0.0.1", int(sys.argv[1])), prefix="1")
group.all_reduce([torch.ones(1)], is_lost=lambda: False)
group.receive(torch.ones(1), 0)
print("connected", flush=True)
"""
STANDS = "sys.stdin.read()"
STOPS_IN_A_MESSAGE = """
import os, signal
output = torch.zeros(1 << 24)
group.start_all_to_all(output, torch.ones(1 << 24), received=[1 << 23] * 2, sent=[1 << 23] * 2)
while not output[0]:
    pass
os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def stopped_peer(then: str = STANDS) -> Iterator[Group]:
    """Yield a group whose other member is a process that was stopped in it, or stops itself."""
    rendezvous = RendezvousServer("127.0.0.1", key=KEY)
    command = [sys.executable, "-c", PEER + then, str(rendezvous.port), str(PATIENCE_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as peer:
        try:
            assert peer.stdout is not None
            assert peer.stdout.readline() == "here\n"  # who connects does not wait long for one that still imports
            spec = GroupSpec(number=1, rank=0, size=2, host="127.0.0.1", key=KEY)
            with patient_gloo():
                group = connect(spec, address=("127.0.0.1", rendezvous.port), prefix="1")
            group.all_reduce([torch.ones(1)], is_lost=never)
            group.send(torch.ones(1), 1)
            assert peer.stdout.readline() == "connected\n"
            if then == STANDS:
                peer.send_signal(signal.SIGSTOP)
            yield group
            group.drop()
            wait_until(lambda: num_closing_groups() == 0, "the group is gone while its peer still stands")
            assert peer.poll() is None
        finally:
            peer.kill()
            rendezvous.close()


def lost_in(action: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        with pytest.raises(GenerationLost):
            action()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda group, tensor: group.all_reduce([tensor], is_lost=never), id="all-reduce"),
        pytest.param(lambda group, tensor: group.receive(tensor, 1), id="receive"),
        pytest.param(lambda group, tensor: group.send(tensor, 1), id="send to one that takes no more"),
    ],
)
@pytest.mark.timeout(120)
def test_an_abort_ends_what_waits_for_a_process_that_stands_still(use: Callable[[Group, torch.Tensor], None]) -> None:
    with stopped_peer() as group:
        thread = lost_in(lambda: use(group, torch.ones(1 << 24)))
        thread.join(0.3)  # the condition is that it waits
        assert thread.is_alive()

        group.abort()

        thread.join(PATIENCE_S)
        assert not thread.is_alive()


@pytest.mark.timeout(120)
def test_nothing_is_written_any_more_once_a_lost_group_is_gone() -> None:
    with stopped_peer() as group:
        tensor = torch.ones(1 << 20)
        with pytest.raises(GenerationLost):
            group.all_reduce([tensor], is_lost=lambda: True)
        assert not group.has_ended

        group.drop()

        wait_until(lambda: group.has_ended, "all that the group did is over")
        before = tensor.clone()
    assert torch.equal(tensor, before)  # the peer was killed meanwhile


@pytest.mark.timeout(120)
def test_what_was_in_the_middle_of_a_message_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """gloo tells operations that have not begun to send that their connection has ended, and no others.

    Meanwhile the next step uses the pages of its tensors.
    """
    monkeypatch.setattr(gloo, "OPERATION_TIMEOUT", timedelta(seconds=2))
    layout = BucketLayout([torch.nn.Parameter(torch.zeros(1 << 24))], num_tail=0, bytes_at_most=1 << 26)
    memory = SumMemory(layout)
    with stopped_peer(STOPS_IN_A_MESSAGE) as group:
        memory.begin(1)
        sent, output = memory.sets[0].buffers[0].fill_(1), memory.received(0, 0, 1 << 24)
        group.start_all_to_all(output, sent, received=[1 << 23] * 2, sent=[1 << 23] * 2)
        with suppress(GenerationLost):  # on a slow machine the peer may have stopped when all was sent
            group.wait(is_lost=lambda: True)

        group.drop()
        memory.put_aside(group)

        memory.begin(1)
        used = [memory.sets[0].buffers[0].fill_(7), memory.received(0, 0, 1 << 24).fill_(7)]
        wait_until(lambda: group.has_ended, "its time is over")
    assert all(bool((buffer == 7).all()) for buffer in used), "it wrote to what the next step uses"


@pytest.mark.timeout(120)
def test_an_abort_touches_no_connection_of_anybody_else() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as near,
        listener.accept()[0] as far,
        groups_of(*THREE[:2], number=7) as others,
        stopped_peer() as group,
    ):
        group.abort()

        near.sendall(b"still here")
        assert far.recv(64) == b"still here"
        tensors = [torch.ones(1), torch.ones(1)]
        together(
            [
                lambda rank=rank: others[rank].all_reduce([tensors[rank]], is_lost=never)  # type: ignore[misc]
                for rank in range(2)
            ]
        )
        assert [tensor.item() for tensor in tensors] == [2.0, 2.0]
        with pytest.raises(GenerationLost):
            group.all_reduce([torch.ones(1)], is_lost=never)


@pytest.mark.timeout(120)
def test_python_ends_well_after_a_lost_group() -> None:
    code = f"""
import subprocess, sys, threading
sys.path.insert(0, "tests/train")
from tests.train.group.test_collectives import GenerationLost, lost_in, never, stopped_peer, torch
with stopped_peer() as group:
    thread = lost_in(lambda: group.all_reduce([torch.ones({1 << 20})], is_lost=never))
    group.abort()
    thread.join({PATIENCE_S})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


# -- tensors of a device --------------------------------------------------------------------------------------------


def test_staged_collectives_equal_plain_ones() -> None:
    """Staging copies from any device to the host; here both are the CPU."""
    with groups_of(*THREE) as groups:

        def member(group: Group) -> list[list[float]]:
            assert group.backend is not None
            group.device_backend = staged = StagedBackend(group.backend, rank=group.rank, number=1)
            summed, copied = torch.full((2,), float(group.rank)), torch.full((2,), float(group.rank))
            pieces, exchanged = torch.arange(3.0) + 10 * group.rank, torch.zeros(3)
            operations = [
                staged.all_reduce(summed),
                staged.all_to_all(exchanged, pieces, received=[1, 1, 1], sent=[1, 1, 1]),
                staged.broadcast(copied, 2),
            ]
            assert summed.tolist() == [float(group.rank)] * 2, "the exchange works on copies"
            for operation in operations:
                operation.finish(never)
                operation.finish(never)
            return [summed.tolist(), exchanged.tolist(), copied.tolist()]

        results = together([lambda group=group: member(group) for group in groups])  # type: ignore[misc]

    assert results == [[[3.0, 3.0], [rank, 10.0 + rank, 20.0 + rank], [2.0, 2.0]] for rank in range(3)]


def test_staged_collective_of_a_dropped_group_is_lost_and_leaves_its_tensor_alone() -> None:
    with groups_of(*THREE[:2]) as (first, second):
        assert first.backend is not None
        first.device_backend = staged = StagedBackend(first.backend, rank=0, number=1)
        tensor = torch.ones(2)
        second.drop()
        operation = staged.all_reduce(tensor)
        with pytest.raises(GenerationLost):
            operation.finish(never)

    assert tensor.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("gpus", "why"),
    [
        (["", ""], ""),
        (["A", "B"], ""),
        (["A", "A"], "2 tasks share 1 GPU, and NCCL wants one for each task"),
        (["A", "B", "A"], "3 tasks share 2 GPUs, and NCCL wants one for each task"),
        (["A", ""], "task 2 of 2 has no GPU"),
        (["A", "none"], "task 2 of 2 has no NCCL, or PLIANT_NCCL=0 there"),
    ],
)
def test_why_gradients_do_not_go_from_gpu_to_gpu_is_said(gpus: list[str], why: str) -> None:
    said = collectives._why_staged(gpus)

    assert said == (
        f"gradients travel through the host's memory (gloo), not from GPU to GPU (NCCL): {why}" if why else ""
    )
