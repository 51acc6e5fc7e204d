"""Another process on the host, of another user and of the same one, against the ports of a running generation."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.group.test_collectives import PATIENCE_S, never, patient_gloo, together, wait_until

from pliant.train.group.applicants import MAX_APPLICANTS
from pliant.train.group.collectives import Group, GroupSpec, connect, num_closing_groups
from pliant.train.group.handshake import PeerName
from pliant.train.group.mesh import _listens_at, _open_sockets
from pliant.train.group.rendezvous import RendezvousServer
from pliant.train.group.rendezvous_client import RendezvousClient

KEY = b"the key of job-1"
STRANGER = Path(__file__).with_name("stranger.py")
NOBODY = 65534
USERS = [
    pytest.param("-", id="same user"),
    pytest.param(
        str(NOBODY),
        id="another user",
        marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user"),
    ),
]
PROMPT_S = 10.0
"""For a machine that is flooded; without a stranger it takes milliseconds."""

pytestmark = [pytest.mark.timeout(120), pytest.mark.parametrize("user", USERS)]


@contextmanager
def stranger(user: str, how: str, ports: Sequence[int]) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-I", str(STRANGER), user, how, *map(str, ports)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def form(rendezvous: RendezvousServer, number: int, size: int = 2) -> list[Group]:
    address = (rendezvous.host, rendezvous.port)

    def member(rank: int) -> Callable[[], Group]:
        spec = GroupSpec(number=number, rank=rank, size=size, host="127.0.0.1", key=KEY)
        return lambda: connect(spec, address=address, prefix=f"job-1/{number}")

    return together([member(rank) for rank in range(size)])


def compute(groups: Sequence[Group]) -> list[float]:
    """Sum a tensor over the members, and let the first send one to the second."""

    def member(group: Group) -> float:
        tensor = torch.full((1000,), float(group.rank + 1))
        group.all_reduce([tensor], is_lost=never)
        passed = torch.full((1000,), 7.0)
        if group.rank == 0:
            group.send(passed, 1)
        elif group.rank == 1:
            group.receive(passed := torch.zeros(1000), 0)
        return float(tensor.mean() + passed.mean())

    return together([lambda group=group: member(group) for group in groups])  # type: ignore[misc]


@pytest.fixture
def rendezvous() -> Iterator[RendezvousServer]:
    made = RendezvousServer("127.0.0.1", key=KEY)
    with patient_gloo():
        yield made
    made.close()
    wait_until(lambda: num_closing_groups() == 0, "all groups are gone")


def listening_ports() -> set[int]:
    """Return the ports that this process listens at; everybody on the host can see them in /proc/net/tcp."""
    return {port[1] for each in _open_sockets() if (port := _listens_at(each))}


def transfer_ports(groups: Sequence[Group]) -> set[int]:
    return {json.loads(group.channels.address)[1] for group in groups if group.channels is not None}


def test_who_proves_nothing_reads_nothing_and_joins_nothing(user: str, rendezvous: RendezvousServer) -> None:
    groups = form(rendezvous, 1)
    ports = [rendezvous.port, *transfer_ports(groups)]

    with stranger(user, "talk", ports) as process:
        answers = told(process)

    assert len(answers) == 51
    assert set(answers) <= {"", "ECONNRESET", "EPIPE"}, "they are cut off without an answer"
    assert compute(groups) == [10.0, 10.0]
    for group in groups:
        group.drop()


def test_nobody_can_connect_with_gloo_once_a_generation_is_whole(user: str, rendezvous: RendezvousServer) -> None:
    before = listening_ports()
    groups = form(rendezvous, 1)
    ports = listening_ports() - before - transfer_ports(groups)
    assert len(ports) == 2, "gloo of each member listens"

    with stranger(user, "knock", sorted(ports)) as process:
        answers = told(process)

    assert answers == ["timed out"] * 2
    assert compute(groups) == [10.0, 10.0]
    for group in groups:
        group.drop()


class Tap:
    """Stands between a member and its rendezvous, and hears all that the member says."""

    def __init__(self, port: int) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._port = port
        self.port: int = self._listener.getsockname()[1]
        self.words: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with (
            self._listener,
            self._listener.accept()[0] as near,
            socket.create_connection(("127.0.0.1", self._port)) as far,
        ):
            back = threading.Thread(target=self._pass_on, args=(far, near), daemon=True)
            back.start()
            while data := near.recv(1 << 16):
                self.words.append(data.hex())
                far.sendall(data)
            far.shutdown(socket.SHUT_WR)
            back.join(PATIENCE_S)

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(1 << 16):
            target.sendall(data)

    def close(self) -> None:
        self._thread.join(PATIENCE_S)


def test_what_a_member_was_heard_to_say_opens_nothing(user: str, rendezvous: RendezvousServer) -> None:
    tap, name = Tap(rendezvous.port), PeerName(group="job-1/1", member="0")
    with RendezvousClient(
        ("127.0.0.1", tap.port), key=KEY, name=name, timeout_s=PATIENCE_S, is_cancelled=never
    ) as member:
        member.set("secret", b"10.0.0.4")
        assert member.get("secret") == [b"10.0.0.4"]
    tap.close()
    assert len(tap.words) >= 3

    with stranger(user, "replay", [rendezvous.port]) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(tap.words) + "\n")
        process.stdin.flush()
        heard = told(process)

    challenge, *rest = heard
    assert b"10.0.0.4".hex() not in challenge
    assert set(rest) <= {"", "ECONNRESET", "EPIPE"}


def test_a_flood_keeps_no_member_out_and_nothing_of_it_stays(user: str, rendezvous: RendezvousServer) -> None:
    first, second = form(rendezvous, 1), form(rendezvous, 2)
    assert compute(first) == compute(second) == [10.0, 10.0]
    num_before = len(os.listdir("/proc/self/fd"))
    for group in second:
        group.drop()
    ports = [rendezvous.port, *transfer_ports(first)]
    with ExitStack() as stack:
        process = stack.enter_context(stranger(user, "flood", ports))
        assert told(process) == "flooding"
        began = time.monotonic()
        second = form(rendezvous, 3)
        took_s = time.monotonic() - began
        assert compute(first) == compute(second) == [10.0, 10.0]
        num_open = len(os.listdir("/proc/self/fd"))
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        num = told(process)

    print(f"{num} connections in {time.monotonic() - began:.2f} s; the generation took {took_s:.3f} s")
    assert took_s < PROMPT_S
    assert num_open < 3 * MAX_APPLICANTS + 200
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= num_before, "nothing of the flood stays open")
    for group in (*first, *second):
        group.drop()
