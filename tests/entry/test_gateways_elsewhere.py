"""Gateways of another machine than the server's: which numbers they have, and what they leave alone; real processes."""

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.entry.gateway_world import World, ask
from tests.serve.gateway.played_server import KEY, PlayedServer, wait_until
from tests.serve.other_machine import make_certificate, make_dead_socket, say_place

from pliant.core.serving import GatewayHello, Retire
from pliant.entry.gateway.arguments import read_arguments
from pliant.entry.gateway_process import GatewayProcess, retire_left
from pliant.entry.server.tls import Tls
from pliant.serve.protocol.kernel_place import place_name, read_place
from pliant.serve.protocol.pem import first_certificate

NUM = 2


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path, stack)


def hellos(server: PlayedServer, num: int) -> list[GatewayHello]:
    found: list[GatewayHello] = wait_until(
        lambda: len(said := server.of(GatewayHello)) >= num and said, f"{num} say hello"
    )
    return sorted(found, key=lambda one: one.number)


def elsewhere(world: World, tls: Tls, num: int = NUM) -> GatewayProcess:
    """Return the gateways of the first machine beside the server's own, which has as many."""
    return world.gateway(
        num_processes=num,
        first=num,
        of=2 * num,
        machine="gpu3",
        kernel_host="127.0.0.1",
        certificate=tls.certificate,
        key_file=tls.key,
    )


def test_they_say_which_they_are_and_leave_alone_what_is_of_other_machines(world: World) -> None:
    address, tls = world.server_file.parent, make_certificate(world.home)
    others = ["gateway", "gateway-1"]
    for name in others:
        make_dead_socket(address / name)
    for number in range(4):
        say_place(address, 1, number)
    places = [place_name("gateway", number) for number in range(4)]
    server = world.serve()
    gateway = elsewhere(world, tls)
    gateway.ensure()
    said = hellos(server, NUM)
    assert [(one.number, one.machine) for one in said] == [(2, "gpu3"), (3, "gpu3")]
    assert sorted(set(server.names)) == ["gpu3-2", "gpu3-3"]
    assert [world.connect_kernel(number) for number in (2, 3)] == [b"welcome"] * NUM
    entries = [one.kernels for one in said if one.kernels is not None]
    assert [(one.host, one.server_name) for one in entries] == [("127.0.0.1", None)] * NUM
    assert {one.certificate for one in entries} == {first_certificate(tls.certificate.read_text())}
    assert len({one.port for one in entries}) == NUM
    assert (world.log("log-0"), world.log("log-1")) != ("", "")

    gateway.close()
    assert sorted(path.name for path in address.glob("gateway*")) == sorted([*others, *places])
    assert {read_place(address / name).port for name in places} == {1}


def test_one_of_several_needs_nobody_to_keep_it(world: World) -> None:
    server = world.serve()
    gateway = elsewhere(world, make_certificate(world.home), num=1)
    gateway.ensure()
    (said,) = hellos(server, 1)
    assert (said.number, said.machine, said.pid) == (1, "gpu3", gateway.pid)
    assert world.connect_kernel(1) == b"welcome"


def test_where_another_certificate_is_shown_the_server_hears_of_it(world: World) -> None:
    tls, other = make_certificate(world.home), world.home / "other"
    other.mkdir()
    newer = make_certificate(other)
    server = world.serve()
    elsewhere(world, tls, num=1).ensure()
    hellos(server, 1)
    for was, is_now in ((tls.key, newer.key), (tls.certificate, newer.certificate)):
        shutil.copy(is_now, was.with_name("draft"))
        was.with_name("draft").rename(was)
    later = wait_until(lambda: server.of(GatewayHello)[1:], "it says hello again")[0]
    assert later.kernels is not None
    assert later.kernels.certificate == first_certificate(newer.certificate.read_text())


def test_a_gateway_that_was_told_to_end_stays_ended_until_one_is_wanted(world: World) -> None:
    server = world.serve()
    gateway = world.gateway(restarts_after_end=False, asked_for_s=0.0)
    gateway.ensure()
    (said,) = hellos(server, 1)
    server.send(Retire())
    wait_until(lambda: world.is_over(said.pid), "it has ended")
    wait_until(lambda: not _is_watched(), "nobody starts it again")
    assert gateway.pid is None
    gateway.ensure()
    wait_until(lambda: len(server.of(GatewayHello)) == 2, "another one says hello")


def test_one_that_was_asked_for_just_now_is_started_again(world: World) -> None:
    server = world.serve()
    gateway = world.gateway(restarts_after_end=False)
    gateway.ensure()
    hellos(server, 1)
    gateway.ensure()  # for a server that comes after the one that lets it retire
    server.send(Retire())
    wait_until(lambda: len(server.of(GatewayHello)) == 2, "another one says hello")


def test_what_was_left_of_an_earlier_keeper_is_ended(world: World) -> None:
    server = world.serve()
    starter = GatewayProcess(world.options())
    starter.ensure()
    (said,) = hellos(server, 1)
    starter.close(retire=False)
    assert ask(said.http_url).status_code == 200
    assert retire_left(world.home / "gateway")
    assert world.is_over(said.pid)
    assert not retire_left(world.home / "gateway")
    with pytest.raises(ChildProcessError):  # none is left to be reaped
        os.waitpid(said.pid, os.WNOHANG)


def _is_watched() -> bool:
    return any(thread.name == "pliant-gateway" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--first=1",), "--first=1 --of=1: 1 from there on are to be among those"),
        (("--first=-1", "--of=3"), "are to be among those"),
        (("--first=3", "--of=4", "--processes=2"), "2 from there on are to be among those"),
        (("--first=1", "--of=17"), "a server has 16 at most"),
        (("--of=2", "--machine=gpu3"), "and --first; the server's own has 0"),
        (("--first=1", "--of=2", "--machine=gpu 3"), "give the name of a machine"),
    ],
)
def test_numbers_that_no_gateway_can_have_are_refused(
    capsys: pytest.CaptureFixture[str], given: tuple[str, ...], said: str
) -> None:
    with pytest.raises(SystemExit):
        read_arguments(["--server-file=f", "--state=s", *given], KEY)
    assert said in capsys.readouterr().err
