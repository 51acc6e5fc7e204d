"""A kernel whose gateway is on another machine: how it finds it, what it believes, and when it gives it up."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.serve.gateway.played_server import wait_until
from tests.serve.other_machine import cut, make_certificate, make_dead_socket, say_place
from tests.serve.runner.fake_gateway import FakeGateway, Listener, in_thread, listening
from tests.serve.runner.served import Function, echo, session_over
from tests.serve.runner.tls_gateway import listening_over_tls

from pliant.core.errors import Unavailable
from pliant.serve.protocol.frames import KernelFrameKind as Kind
from pliant.serve.protocol.kernel_place import KernelPlace, place_name, read_place
from pliant.serve.protocol.pem import MAX_CERTIFICATE
from pliant.serve.protocol.tcp_link import LOOK_EVERY_S, SILENT_S
from pliant.serve.runner import links
from pliant.serve.runner.channel import LocalChannel
from pliant.serve.runner.connection import GatewayFinder
from pliant.serve.runner.session import KernelSession
from pliant.serve.runner.tls_channel import OPEN_S, TlsChannel


@contextmanager
def serving_from_elsewhere(path: Path, model: Any = None, patience_s: float = 60.0) -> Iterator[list[BaseException]]:
    """Serve to the gateways that a folder tells of; yield what the session has raised."""
    raised: list[BaseException] = []
    with session_over(GatewayFinder(path).connect, patience_s) as (session, leave):

        def act(session: KernelSession = session) -> None:
            try:
                session.begin()
                session.serve(model or Function(echo))
            except Unavailable as error:
                raised.append(error)
            finally:
                session.close()

        with in_thread(act):
            try:
                yield raised
            finally:
                leave.ask()


def bodies(gateway: FakeGateway, *asked: bytes) -> list[bytes]:
    return [heard.body for heard in gateway.exchange(*asked)]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_kernel_answers_over_tls_as_it_does_over_a_socket(tmp_path: Path, host: str) -> None:
    at = "127.0.0.1" if host == "localhost" else host
    with listening_over_tls(tmp_path, tmp_path / "seen", host=at) as listener:
        say_place(tmp_path / "seen", listener.port, host=host)
        with serving_from_elsewhere(listener.path) as raised:
            gateway = listener.accept()
            assert gateway.welcome() == {"task": "job-1.1", "token": "secret"}
            assert gateway.expect(Kind.READY).header["metadata"]["platform"] == "test"
            large = bytes(range(256)) * (20 << 10)
            assert bodies(gateway, b"a", large, b"b") == [b"a", large, b"b"]
            gateway.send(Kind.PING, {})
            gateway.expect(Kind.PONG)
    assert not raised


def test_it_drains_over_tls(tmp_path: Path) -> None:
    began, go_on = threading.Event(), threading.Event()

    def act(batch: Any) -> None:
        began.set()
        assert go_on.wait(30)
        echo(batch)

    with (
        listening_over_tls(tmp_path, tmp_path / "seen") as listener,
        session_over(GatewayFinder(listener.path).connect) as (session, leave),
    ):

        def serve(session: KernelSession = session) -> None:
            session.begin()
            session.serve(Function(act))

        with in_thread(serve):
            gateway = listener.accept(batch_size=1)
            gateway.ready()
            begun, *rest = gateway.ask(b"a", b"b")
            assert began.wait(30)
            leave.ask()
            go_on.set()
            frames = [gateway.receive() for _ in range(3)]
            gateway.close()
    said = {frame.kind: frame.header for frame in frames}
    assert (said[Kind.RESULT]["id"], said[Kind.RETURN]["ids"]) == (begun, rest)
    assert Kind.DRAIN in said


def test_the_socket_is_taken_where_somebody_listens_at_it(tmp_path: Path) -> None:
    make_certificate(tmp_path)
    say_place(tmp_path, 1)
    with listening(tmp_path) as listener:
        channel = GatewayFinder(listener.path).connect()
        assert isinstance(channel, LocalChannel)
        channel.close()
    with pytest.raises(FileNotFoundError):
        GatewayFinder(tmp_path / "gateway").connect(1)


def test_without_a_file_beside_it_a_dead_socket_is_one_that_refuses(tmp_path: Path) -> None:
    make_dead_socket(tmp_path / "gateway")
    with pytest.raises(ConnectionRefusedError):
        GatewayFinder(tmp_path / "gateway").connect()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"host": "a"}',
        b'{"host": "", "port": 1}',
        b'{"host": "a", "port": true}',
        b'{"host": "a", "port": 65536}',
        b'{"host": 7, "port": 1}',
        b'{"host": "a", "port": 1, "server_name": 7}',
        b'{"host": "a", "port": 1, "certificate": 7}',
        b'{"host": "a", "port": 1, "certificate": ""}',
        b'{"host": "a", "port": 1, "certificate": "%s"}' % (b"x" * (MAX_CERTIFICATE + 1)),
        b"{" * 9000,
    ],
)
def test_a_file_that_says_nothing_of_use_is_told_so(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / place_name("gateway", 0)
    path.write_bytes(text)
    with pytest.raises(OSError, match="does not say where the gateway listens"):
        read_place(path)


def test_a_gateway_that_comes_back_at_another_port_is_found_and_several_are(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with (
        listening_over_tls(tmp_path, seen) as first,
        listening_over_tls(tmp_path, seen, number=1) as second,
        serving_from_elsewhere(first.path),
    ):
        gateways = [first.accept(), second.accept()]
        for gateway in gateways:
            gateway.ready()
        first.close()
        with listening_over_tls(tmp_path, seen) as again:
            assert again.port != first.port
            back = again.accept()
            back.ready()
            assert bodies(back, b"a") == [b"a"]
            assert bodies(gateways[1], b"b") == [b"b"]


def test_who_shows_another_certificate_is_told_nothing_and_the_kernel_says_why_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "LONGEST_PAUSE_S", 0.05)
    other = tmp_path / "other"
    other.mkdir()
    make_certificate(tmp_path)
    with (
        listening_over_tls(tmp_path, tmp_path / "seen", tls=make_certificate(other)) as stranger,
        serving_from_elsewhere(stranger.path, patience_s=2.0) as raised,
    ):
        for _ in range(3):
            assert stranger.refusal()
        wait_until(lambda: raised, "it gives up")
    printed = capsys.readouterr().err
    assert printed.count("does not show the certificate in server.pem") == 1
    assert f"127.0.0.1:{stranger.port}" in printed
    assert "it is told nothing" in str(raised[0])


def say_place_with(folder: Path, port: int, certificate: str) -> None:
    """Write where a gateway listens, and what it has to show."""
    place = KernelPlace(host="127.0.0.1", port=port, certificate=certificate)
    (folder / place_name("gateway", 0)).write_bytes(place.to_json())


def test_a_gateway_of_another_machine_shows_the_certificate_that_is_said_of_it(tmp_path: Path) -> None:
    other, seen = tmp_path / "other", tmp_path / "seen"
    other.mkdir()
    shown = make_certificate(other)
    make_certificate(tmp_path)
    with listening_over_tls(tmp_path, seen, tls=shown) as listener:
        say_place_with(seen, listener.port, shown.trusted.read_text())
        with serving_from_elsewhere(listener.path) as raised:
            gateway = listener.accept()
            gateway.ready()
            assert bodies(gateway, b"a") == [b"a"]
    assert not raised


def test_the_certificate_of_the_server_does_not_count_where_another_one_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "LONGEST_PAUSE_S", 0.05)
    other, seen = tmp_path / "other", tmp_path / "seen"
    other.mkdir()
    make_certificate(tmp_path)
    with listening_over_tls(tmp_path, seen) as listener:
        say_place_with(seen, listener.port, make_certificate(other).trusted.read_text())
        with serving_from_elsewhere(listener.path, patience_s=2.0) as raised:
            assert listener.refusal()
            wait_until(lambda: raised, "it gives up")
    printed = capsys.readouterr().err
    assert "does not show the certificate in its own file of the server's state folder" in printed
    assert "restart the agent of its machine" in printed


def test_a_certificate_that_is_none_is_no_way_to_a_gateway(tmp_path: Path) -> None:
    make_certificate(tmp_path)
    make_dead_socket(tmp_path / "gateway")
    say_place_with(tmp_path, 1, "junk")
    with pytest.raises(OSError, match=r"what is said of the gateway at 127\.0\.0\.1:1 is of no use"):
        GatewayFinder(tmp_path / "gateway").connect()


def test_nothing_of_the_kernels_is_sent_before_the_gateway_has_proved_itself(tmp_path: Path) -> None:
    with listening_over_tls(tmp_path, tmp_path / "seen") as listener, serving_from_elsewhere(listener.path):
        plain = listener.take()
        first = plain.recv(1 << 16)
        assert first[:1] == b"\x16"  # a handshake of TLS, and nothing after it
        plain.setblocking(False)
        with pytest.raises(BlockingIOError):
            plain.recv(1)
        assert b"secret" not in first


@pytest.mark.slow
def test_one_that_takes_connections_and_says_nothing_holds_nobody_up_and_is_given_up(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with (
        listening_over_tls(tmp_path, seen) as good,
        listening_over_tls(tmp_path, seen, number=1) as silent,
        serving_from_elsewhere(good.path),
    ):
        gateway = good.accept()
        gateway.ready()
        plain = silent.take()
        assert plain.recv(1 << 16)
        began = time.monotonic()
        assert bodies(gateway, b"a") == [b"a"]
        assert time.monotonic() - began < 1.0
        assert plain.recv(1) == b""
        assert time.monotonic() - began < OPEN_S + 2.0


@pytest.mark.slow
def test_a_gateway_that_is_cut_off_is_given_up_within_seconds_and_found_again(tmp_path: Path) -> None:
    with listening_over_tls(tmp_path, tmp_path / "seen") as listener, serving_from_elsewhere(listener.path):
        gateway = listener.accept()
        gateway.ready()
        assert bodies(gateway, b"a") == [b"a"]
        cut(gateway.channel.fileno())
        began = time.monotonic()
        back = listener.accept()
        assert time.monotonic() - began < SILENT_S + 1 + 4 * LOOK_EVERY_S
        back.ready()
        assert bodies(back, b"b") == [b"b"]


@pytest.mark.slow
def test_a_kernel_that_sends_much_to_a_gateway_that_is_cut_off_does_not_wait_for_ever(tmp_path: Path) -> None:
    large = bytes(32 << 20)

    def act(batch: Any) -> None:
        go_on.wait(30)
        echo(batch)

    go_on = threading.Event()
    with (
        listening_over_tls(tmp_path, tmp_path / "seen") as listener,
        serving_from_elsewhere(listener.path, Function(act)),
    ):
        gateway = listener.accept()
        gateway.ready()
        gateway.ask(large)
        cut(gateway.channel.fileno())
        began = time.monotonic()
        go_on.set()
        back = listener.accept()
        assert time.monotonic() - began < SILENT_S + 1 + 4 * LOOK_EVERY_S
        back.ready()


@pytest.mark.slow
def test_a_gateway_that_stands_still_is_waited_for_however_much_is_sent_to_it(tmp_path: Path) -> None:
    large = bytes(32 << 20)
    with listening_over_tls(tmp_path, tmp_path / "seen") as listener, serving_from_elsewhere(listener.path):
        gateway = listener.accept()
        gateway.ready()
        ids = gateway.ask(large)
        time.sleep(SILENT_S + 1.5)  # with its window closed, but its machine answers
        assert [heard.body for heard in gateway.answers(*ids)] == [large]


def test_a_port_where_nobody_listens_is_no_gateway(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    make_certificate(tmp_path)
    make_dead_socket(tmp_path / "address" / "gateway")
    say_place(tmp_path / "address", port)
    with serving_from_elsewhere(tmp_path / "address" / "gateway", patience_s=0.3) as raised:
        wait_until(lambda: raised, "it gives up")
    assert f"127.0.0.1:{port} cannot be reached" in str(raised[0])


def test_a_kernel_finds_its_way_between_the_machines_socket_and_tls(tmp_path: Path) -> None:
    with listening_over_tls(tmp_path, tmp_path / "seen") as remote, serving_from_elsewhere(remote.path):
        gateway = remote.accept()
        gateway.ready()
        local = Listener(tmp_path / "seen")
        remote.close()
        back = local.accept()
        back.ready()
        assert bodies(back, b"a") == [b"a"]
        local.close()


def test_a_channel_that_has_not_opened_is_closed_with_all_its_files(tmp_path: Path) -> None:
    with listening_over_tls(tmp_path, tmp_path / "seen") as listener:
        channel = GatewayFinder(listener.path).connect()
        assert isinstance(channel, TlsChannel)
        assert channel.is_opening
        channel.close()
        assert listener.take().recv(1) == b""
