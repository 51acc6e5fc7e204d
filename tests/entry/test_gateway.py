"""The gateway's process, and how a server starts it, finds it again, and ends it: real processes and sockets."""

import logging
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.entry.gateway_world import ADA, World, ask, call
from tests.serve.gateway.played_server import KEY, wait_until

from pliant.api.trust import Trust
from pliant.core.job import TaskId
from pliant.core.serving import GatewayHello, KernelReady, Load, Retire
from pliant.entry.gateway_process import GatewayProcess
from pliant.entry.server.http.limits import HttpLimits
from pliant.entry.server.tls import TlsSettings, prepare
from pliant.isolation.variables import allowed
from pliant.serve.gateway.gateway_files import KEY_VARIABLE, SECOND
from pliant.serve.gateway.kernel_socket import KERNEL_SOCKET


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(tmp_path, stack)


def test_a_gateway_serves_on_without_its_server_and_is_taken_over_by_the_next_one(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first = world.serve()
    starter = GatewayProcess(world.options())
    starter.ensure()
    starter.ensure()
    said = wait_until(lambda: first.of(GatewayHello), "it says hello")[0]
    pid, url = said.pid, said.http_url
    assert (world.record()["pid"], world.record()["url"]) == (pid, url)
    assert os.getsid(pid) == pid
    wait_until(lambda: ask(url).text == '["ada", ["digits"]]', "it serves")
    assert call(said.grpc_address) == ["ada", ["digits"]]

    starter.close(retire=False)  # as far as it goes, the server is killed
    first.close(abruptly=True)
    assert ask(url).json() == ["ada", ["digits"]]
    assert world.connect_kernel() == b"welcome"

    second = world.serve(answers={"s3cr3t": ADA, "new": ADA, "worthless": None})
    taker = world.gateway()
    taker.ensure()
    hello = wait_until(lambda: second.of(GatewayHello), "it says hello to the next one")[0]
    assert hello == replace(said, ready=(TaskId("job-1.1"),))
    wait_until(lambda: second.of(KernelReady), "it says again what it knows")
    assert ask(url, token="new").status_code == 200
    assert ask(url, token="worthless").status_code == 401
    wait_until(lambda: f"serves on at {url}" in caplog.text, "it is taken over")
    assert taker.pid == pid

    taker.close()
    assert world.is_over(pid)
    assert taker.pid is None
    assert not (world.server_file.parent / KERNEL_SOCKET).exists()
    assert KEY not in world.log()


def test_a_gateway_that_dies_is_started_again_and_its_socket_is_replaced(world: World) -> None:
    server = world.serve()
    gateway = world.gateway()
    gateway.ensure()
    pid = wait_until(lambda: server.of(GatewayHello), "it says hello")[0].pid
    socket_file = world.server_file.parent / KERNEL_SOCKET
    assert stat.S_IMODE(socket_file.stat().st_mode) == 0o666
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: len(server.of(GatewayHello)) == 2, "another one says hello")
    assert gateway.pid not in (None, pid)
    assert world.connect_kernel() == b"welcome"


def test_a_second_gateway_ends_at_once_and_disturbs_nothing(world: World) -> None:
    server = world.serve()
    world.gateway().ensure()
    url = wait_until(lambda: server.of(GatewayHello), "it says hello")[0].http_url
    record = world.record()
    options = world.options()
    second = subprocess.run(
        options.command(), env={**options.env, KEY_VARIABLE: KEY}, capture_output=True, text=True, timeout=60
    )
    assert second.returncode == SECOND
    assert "another gateway" in second.stderr
    assert world.record() == record
    assert ask(url).status_code == 200
    assert world.connect_kernel() == b"welcome"


def test_a_server_that_retires_lets_the_gateway_finish_what_it_has(world: World) -> None:
    server = world.serve()
    starter = GatewayProcess(world.options())
    starter.ensure()
    hello = wait_until(lambda: server.of(GatewayHello), "it says hello")[0]
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(ask(hello.http_url, "/slow").status_code))
    calling = threading.Thread(target=lambda: answers.append(call(hello.grpc_address, "Slow")[0]))
    asking.start()
    calling.start()
    wait_until(lambda: server.of(Load), "it says what waits")
    wait_until(lambda: ask(hello.http_url, "/waiting").json() == 2, "both have come")
    starter.close(retire=False)
    wait_until(lambda: ask(hello.http_url).status_code == 200, "it has learned whose the token is")
    server.send(Retire())
    wait_until(lambda: "finishes what it has" in world.log(), "it retires")
    assert not world.is_over(hello.pid)
    assert world.connect_kernel() == b"welcome"
    asking.join(30)
    calling.join(30)
    assert sorted(answers, key=str) == [200, "ada"]
    wait_until(lambda: world.is_over(hello.pid), "it ends")
    os.waitpid(hello.pid, 0)


def test_a_port_that_is_taken_is_replaced_by_a_free_one(world: World) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        server = world.serve()
        world.gateway(port=port, grpc_port=port).ensure()
        hello = wait_until(lambda: server.of(GatewayHello), "it says hello")[0]
        assert not hello.http_url.endswith(f":{port}")
        assert not hello.grpc_address.endswith(f":{port}")
        assert ask(hello.http_url).status_code == 200
        assert call(hello.grpc_address) == ["ada", ["digits"]]
        assert f"port {port} of 127.0.0.1 is taken; the gateway listens" in world.log()
        assert f"port {port} of 127.0.0.1 is taken; gRPC" in world.log()


def test_it_serves_with_the_certificate_of_the_server(world: World) -> None:
    tls = prepare(TlsSettings(names=()), world.home, now=time.time())
    server = world.serve()
    world.gateway(certificate=tls.certificate, key_file=tls.key, public_host="localhost").ensure()
    hello = wait_until(lambda: server.of(GatewayHello), "it says hello")[0]
    assert hello.http_url.startswith("https://localhost:")
    assert hello.grpc_address.startswith("localhost:")
    assert ask(hello.http_url, verify=Trust(certificate=tls.trusted).context()).json() == ["ada", ["digits"]]
    assert call(hello.grpc_address, certificate=tls.trusted) == ["ada", ["digits"]]

    for made_before in (tls.certificate, tls.key):
        made_before.unlink()
    newer = prepare(TlsSettings(names=()), world.home, now=time.time())
    assert newer.fingerprint != tls.fingerprint
    wait_until(lambda: "it is shown from now on" in world.log(), "it takes the certificate that was renewed")
    assert ask(hello.http_url, verify=Trust(certificate=newer.trusted).context()).json() == ["ada", ["digits"]]
    for _ in range(2):
        assert call(hello.grpc_address, certificate=newer.trusted) == ["ada", ["digits"]]
    assert len(server.of(GatewayHello)) == 1, "it is the same process"


def test_a_gateway_that_was_started_with_other_settings_is_replaced(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    server = world.serve()
    starter = GatewayProcess(world.options())
    starter.ensure()
    before = wait_until(lambda: server.of(GatewayHello), "it says hello")[0]
    starter.close(retire=False)
    world.gateway(public_host="localhost").ensure()
    after = wait_until(lambda: server.of(GatewayHello)[1:], "another one says hello")[0]
    assert after.http_url.startswith("http://localhost:")
    assert f"at {before.http_url} (pid {before.pid}) has other settings" in caplog.text


def test_the_key_is_in_no_command_line_and_not_in_the_environment_of_what_it_starts(world: World) -> None:
    assert KEY not in " ".join(world.options().command())
    assert KEY not in repr(world.options())
    nothing = subprocess.run(world.options().command(), env=allowed(os.environ), capture_output=True, timeout=60)
    assert nothing.returncode == 2
    assert KEY_VARIABLE in nothing.stderr.decode()


def test_a_head_that_is_too_long_is_refused_as_the_server_does(world: World) -> None:
    server = world.serve()
    world.gateway().ensure()
    url = httpx.URL(wait_until(lambda: server.of(GatewayHello), "it says hello")[0].http_url)
    with socket.create_connection((url.host, url.port or 0)) as sock:
        sock.settimeout(30)
        sock.sendall(b"GET /who HTTP/1.1\r\nX: " + b"x" * (HttpLimits().max_head_bytes + 1))
        assert b" 431 " in sock.recv(1000)


def test_a_gateway_without_a_server_for_long_ends_by_itself(world: World) -> None:
    options = world.options()
    ended = subprocess.run(
        [*options.command(), "--orphan-s=0.2"], env={**options.env, KEY_VARIABLE: KEY}, capture_output=True, timeout=60
    )
    assert ended.returncode == 0
    assert "no server was there for 0.2 s" in world.log()
