"""Several processes of a gateway side by side, and the one that keeps them: real processes and sockets."""

import errno
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.entry.gateway_world import World, ask, call
from tests.process_state import state_of
from tests.serve.gateway.played_server import PlayedServer, wait_until

from pliant.core.serving import GatewayHello, Retire
from pliant.entry.gateway.sockets import shares_grpc
from pliant.entry.gateway_process import GatewayProcess
from pliant.serve.gateway.gateway_files import RECORD

NUM = 3


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path, stack)


def number_at(url: str) -> int:
    """Return which process a new connection has come to, which knows then whose the token is."""
    with httpx.Client(trust_env=False, timeout=30, headers={"Authorization": "Bearer s3cr3t"}) as client:
        assert client.get(f"{url}/who").status_code == 200
        return int(client.get(f"{url}/number").json())


def hellos(server: PlayedServer, num: int = NUM) -> list[GatewayHello]:
    """Return what the processes have said of themselves, once all have."""
    found: list[GatewayHello] = wait_until(
        lambda: len(said := server.of(GatewayHello)) >= num and said, "all say hello"
    )
    return found


def await_end(world: World, pid: int) -> None:
    wait_until(lambda: world.is_over(pid), f"process {pid} has ended")


def stop(pid: int) -> None:
    """Stop a process, and return when it is."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T", f"process {pid} is stopped")


def all_answer(url: str) -> None:
    """Wait until every process has answered somebody."""
    seen: set[int] = set()

    def look() -> bool:
        seen.add(number_at(url))
        return len(seen) == NUM

    wait_until(look, f"all processes answer at {url}")


def test_several_processes_answer_at_one_address_and_end_together(world: World) -> None:
    server = world.serve()
    gateway = world.gateway(num_processes=NUM)
    gateway.ensure()
    said = hellos(server)
    assert len({one.pid for one in said}) == NUM
    assert {(one.http_url, one.grpc_address) for one in said} == {(said[0].http_url, said[0].grpc_address)}
    assert sorted(set(server.names)) == ["local", "local-1", "local-2"]
    all_answer(said[0].http_url)
    assert [world.connect_kernel(number) for number in range(NUM)] == [b"welcome"] * NUM
    assert gateway.pid not in {one.pid for one in said}, "another one keeps them"

    gateway.close()
    for one in said:
        await_end(world, one.pid)
    assert not (world.home / "gateway" / RECORD).exists()
    assert not list(world.server_file.parent.glob("gateway*"))


def test_one_that_dies_is_started_again_and_the_others_do_not_notice(world: World) -> None:
    server = world.serve()
    world.gateway(num_processes=NUM).ensure()
    said = hellos(server)
    url = said[0].http_url
    keeper = world.record()["pid"]
    all_answer(url)
    with closing(httpx.Client(trust_env=False, timeout=30)) as kept:
        at = kept.get(f"{url}/pid").json()
        lost = next(one.pid for one in said if one.pid != at)
        os.kill(lost, signal.SIGKILL)
        again = wait_until(lambda: server.of(GatewayHello)[NUM:], "another one says hello")[0]
        assert kept.get(f"{url}/pid").json() == at, "the connection has lived on"
    assert again.pid not in {one.pid for one in said}
    assert world.record()["pid"] == keeper
    wait_until(lambda: f"(pid {lost}) has ended with code -9; it is started again" in world.log(), "it is told")
    all_answer(url)
    assert [world.connect_kernel(number) for number in range(NUM)] == [b"welcome"] * NUM


def test_all_die_with_the_one_that_keeps_them_and_others_take_their_places(world: World) -> None:
    server = world.serve()
    gateway = world.gateway(num_processes=NUM)
    gateway.ensure()
    said = hellos(server)
    os.kill(world.record()["pid"], signal.SIGKILL)
    for one in said:
        await_end(world, one.pid)
    later = hellos(server, 2 * NUM)[NUM:]
    assert not {one.pid for one in said} & {one.pid for one in later}
    all_answer(later[0].http_url)


def test_a_connection_waits_at_none_that_is_stopped(world: World) -> None:
    server = world.serve()
    world.gateway(num_processes=NUM).ensure()
    said = hellos(server)
    all_answer(said[0].http_url)
    stopped = [one.pid for one in said[1:]]
    for pid in stopped:
        stop(pid)
    try:
        assert len({number_at(said[0].http_url) for _ in range(20)}) == 1
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def test_a_server_that_retires_lets_all_finish_what_they_have(world: World) -> None:
    server = world.serve()
    starter = GatewayProcess(world.options(num_processes=NUM))
    starter.ensure()
    said = hellos(server)
    url, keeper = said[0].http_url, world.record()["pid"]
    all_answer(url)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(ask(url, "/slow").status_code))
    asking.start()
    wait_until(lambda: ask(url, "/waiting").json() == 1, "it waits at one of them")
    starter.close(retire=False)
    server.send(Retire())
    wait_until(lambda: sum(world.is_over(one.pid) for one in said) == NUM - 1, "those with nothing to do have ended")
    assert not world.is_over(keeper)
    os.kill(keeper, signal.SIGTERM)  # as the server does then: it hurries nobody
    wait_until(lambda: "all processes are to end" in world.log(), "the keeper has heard it")
    for number in range(NUM):
        try:
            world.connect_kernel(number)
        except OSError:  # it has ended
            continue
    asking.join(30)
    assert answers == [200]
    wait_until(lambda: world.is_over(keeper), "all have ended")
    os.waitpid(keeper, 0)


@pytest.mark.skipif(not shares_grpc(), reason="only root shares the port of gRPC")
def test_grpc_is_spoken_by_all_at_one_port(world: World) -> None:
    server = world.serve()
    world.gateway(num_processes=NUM).ensure()
    address = hellos(server)[0].grpc_address
    seen: set[int] = set()

    def look() -> bool:
        seen.add(call(address, "Number"))
        return len(seen) == NUM

    wait_until(look, "all speak gRPC")


@pytest.mark.skipif(not shares_grpc(), reason="only root can be another user")
def test_another_user_cannot_take_part_in_the_port_of_grpc(world: World) -> None:
    server = world.serve()
    world.gateway(num_processes=NUM).ensure()
    port = int(hellos(server)[0].grpc_address.rpartition(":")[2])
    pid = os.fork()
    if not pid:
        code = 1
        with suppress(BaseException):
            os.setuid(65534)
            with socket.socket() as thief:
                for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                    thief.setsockopt(socket.SOL_SOCKET, option, 1)
                try:
                    thief.bind(("127.0.0.1", port))
                except OSError as error:
                    code = 0 if error.errno == errno.EADDRINUSE else 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_port_of_grpc_that_is_taken_is_not_shared_with_whoever_has_it(world: World) -> None:
    with closing(socket.socket()) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = world.serve()
        world.gateway(num_processes=NUM, grpc_port=port).ensure()
        said = hellos(server)
    assert len({one.grpc_address for one in said}) == 1
    assert not said[0].grpc_address.endswith(f":{port}")
    assert f"port {port} of 127.0.0.1 is taken; gRPC" in world.log()
    assert call(said[0].grpc_address) == ["ada", ["digits"]]
