"""Many connections through one tunnel: whole, apart from each other, and safe from who does not keep to the rules."""

import hashlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.tunnel.ends import both_connections, eventually
from websockets.exceptions import ConnectionClosed
from websockets.sync.connection import Connection

from pliant.core.errors import InvalidInput
from pliant.core.notebook import SOCKET, TOKEN_FILE, folder_of, read_token
from pliant.core.tunnel import (
    CHUNK_BYTES,
    MAX_CHANNELS,
    WHOLE_TUNNEL,
    WINDOW_BYTES,
    Frame,
    FrameKind,
    pack_for,
    unpack_channel,
)
from pliant.tunnel.channels import TunnelChannels
from pliant.tunnel.local_port import LocalPort
from pliant.tunnel.notebook import serve_notebook

Serve = Callable[[socket.socket], None]


@dataclass
class Way:
    """A port of this machine whose connections come out at a program, through a tunnel."""

    port: LocalPort
    outer: TunnelChannels
    inner: TunnelChannels
    served: list[socket.socket] = field(default_factory=list)

    def dial(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port.number), timeout=30)


@contextmanager
def way(serve: Serve) -> Iterator[Way]:
    """Yield a way to a program that serves each connection in a thread."""
    made: list[Way] = []

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        made[0].served.append(theirs)
        threading.Thread(target=serve, args=(theirs,), daemon=True).start()
        return ours

    with both_connections() as (outside, inside), ExitStack() as stack:
        one = Way(LocalPort(), TunnelChannels(outside), TunnelChannels(inside, connect=connect))
        made.append(one)
        stack.callback(one.port.close)
        threads = [threading.Thread(target=end.serve, daemon=True) for end in (one.outer, one.inner)]
        for thread in threads:
            thread.start()
        one.port.begin()
        one.port.lead(one.outer)
        yield one
        one.outer.close()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        eventually(lambda: len(one.outer) == len(one.inner) == 0)
        for served in one.served:
            served.close()


def echo(connection: socket.socket) -> None:
    with suppress(OSError):
        while data := connection.recv(CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)


def read_all(connection: socket.socket) -> bytes:
    got = b""
    while data := connection.recv(1 << 20):
        got += data
    return got


def test_what_goes_in_comes_out_whole_on_many_connections_at_once_and_each_direction_ends_by_itself() -> None:
    with way(echo) as to:
        sent = [os.urandom(1) * (number * WINDOW_BYTES // 3) + os.urandom(5000) for number in range(8)]
        got: dict[int, bytes] = {}

        def pass_through(number: int) -> None:
            with to.dial() as connection:
                reader = threading.Thread(target=lambda: got.update({number: read_all(connection)}))
                reader.start()
                connection.sendall(sent[number])
                connection.shutdown(socket.SHUT_WR)
                reader.join(30)

        threads = [threading.Thread(target=pass_through, args=(number,)) for number in range(len(sent))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        digests = [hashlib.sha256(got[number]).digest() for number in range(len(sent))]
        assert digests == [hashlib.sha256(data).digest() for data in sent]
        eventually(lambda: len(to.outer) == len(to.inner) == 0)


def test_a_connection_that_nobody_reads_holds_up_no_other() -> None:
    with way(echo) as to, to.dial() as stuck:
        stuck.settimeout(1.0)
        with pytest.raises(TimeoutError):
            stuck.sendall(b"x" * (64 << 20))  # the echo comes back, and nobody takes it
        with to.dial() as other:
            other.sendall(b"y" * (2 * WINDOW_BYTES))
            other.shutdown(socket.SHUT_WR)
            assert read_all(other) == b"y" * (2 * WINDOW_BYTES)


def test_a_connection_that_is_broken_at_one_end_is_broken_at_the_other() -> None:
    with way(lambda connection: connection.close()) as to, to.dial() as connection:
        assert read_all(connection) == b""
    with way(echo) as to:
        connection = to.dial()
        connection.sendall(b"a")
        assert connection.recv(1) == b"a"
        connection.close()
        eventually(lambda: len(to.inner) == 0)
        eventually(lambda: to.served[0].fileno() == -1 or to.served[0].recv(1) == b"")


def test_there_are_no_more_connections_than_may_be_and_one_that_ends_makes_room() -> None:
    with way(echo) as to, ExitStack() as stack:
        for number in range(MAX_CHANNELS):
            connection = stack.enter_context(to.dial())
            connection.sendall(b"a")
            assert connection.recv(1) == b"a", number
        with to.dial() as refused, suppress(ConnectionResetError):
            assert refused.recv(1) == b""
        connection.close()
        eventually(lambda: len(to.outer) < MAX_CHANNELS and len(to.inner) < MAX_CHANNELS)
        with to.dial() as taken:
            taken.sendall(b"b")
            assert taken.recv(1) == b"b"


def test_what_does_not_answer_inside_is_hung_up_on_outside() -> None:
    with both_connections() as (outside, inside):

        def refuse() -> socket.socket:
            raise ConnectionRefusedError

        outer, inner = TunnelChannels(outside), TunnelChannels(inside, connect=refuse)
        for end in (outer, inner):
            threading.Thread(target=end.serve, daemon=True).start()
        ours, theirs = socket.socketpair()
        outer.open(theirs)
        with ours:
            ours.settimeout(30)
            assert ours.recv(1) == b""
        outer.close()


def send(connection: Connection, messages: list[bytes]) -> None:
    with suppress(ConnectionClosed):
        for message in messages:
            connection.send(message)


FULL = Frame(FrameKind.DATA, b"x" * CHUNK_BYTES)


@pytest.mark.parametrize(
    "messages",
    [
        [b"", b"abc", pack_for(1, Frame(FrameKind.DATA, b"x"))[:4]],
        [b"\0\0\0\1?"],
        [pack_for(1, Frame(FrameKind.OPEN))],
        [pack_for(1, FULL)] * (4 * WINDOW_BYTES // CHUNK_BYTES),
        [pack_for(1, Frame(FrameKind.DATA))],
        [pack_for(1, Frame(FrameKind.END))] * 2,
        [pack_for(1, Frame(FrameKind.END)), pack_for(1, FULL)],
        [pack_for(1, Frame(FrameKind.GRANT, b"12345"))],
        [pack_for(1, Frame(FrameKind.EXIT, b"1234"))],
        [pack_for(WHOLE_TUNNEL, Frame(FrameKind.READY, b"<script>"))],
        [pack_for(WHOLE_TUNNEL, Frame(FrameKind.READY, b"a" * 129))],
    ],
)
def test_a_stranger_inside_who_does_not_keep_to_the_rules_is_left(messages: list[bytes]) -> None:
    with both_connections() as (outside, inside):

        def take(frame: Frame) -> None:
            read_token(frame.content)

        outer = TunnelChannels(outside, note=take)
        ours, theirs = socket.socketpair()
        with ours:
            outer.open(theirs)  # its number is 1, and nobody reads at our end
            threading.Thread(target=send, args=(inside, messages), daemon=True).start()
            with pytest.raises(ValueError, match=r"tunnel|channel|token|number|frame|FrameKind"):
                outer.serve()
            eventually(lambda: len(outer) == 0)


def test_what_comes_for_a_channel_that_is_over_is_forgotten() -> None:
    with both_connections() as (outside, inside):
        outer = TunnelChannels(outside)
        for number in (1, 7):
            inside.send(pack_for(number, FULL))
            inside.send(pack_for(number, Frame(FrameKind.RESET)))
        inside.close()
        outer.serve()
        assert len(outer) == 0


@pytest.mark.parametrize("numbers", [(1, 1), (2, 1), (0,)])
def test_a_number_is_not_used_again(numbers: tuple[int, ...]) -> None:
    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours

    with both_connections() as (outside, inside):
        inner = TunnelChannels(inside, connect=connect)
        for number in numbers:
            outside.send(pack_for(number, Frame(FrameKind.OPEN)))
        if WHOLE_TUNNEL in numbers:
            outside.close()
            inner.serve()  # it is said of the tunnel, and means nothing
        else:
            with pytest.raises(ValueError, match="must not be"):
                inner.serve()


def test_the_inner_end_says_with_its_token_when_the_notebook_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("a" * 120)  # the path of a socket is no longer than 107 bytes
    monkeypatch.chdir(tmp_path)
    assert folder_of({"JUPYTER_RUNTIME_DIR": str(folder), "HOME": "/x"}) == str(folder)
    with both_connections() as (outside, inside), socket.socket(socket.AF_UNIX) as listening:
        serving = threading.Thread(target=serve_notebook, args=(inside, folder), daemon=True)
        serving.start()
        eventually(folder.is_dir)
        (folder / TOKEN_FILE).write_text("t" * 43)
        with pytest.raises(TimeoutError):
            outside.recv(timeout=0.5)
        monkeypatch.chdir(folder)
        listening.bind(SOCKET)
        listening.listen(8)
        number, frame = unpack_channel(outside.recv(timeout=30))
        assert (number, frame) == (WHOLE_TUNNEL, Frame(FrameKind.READY, b"t" * 43))
        assert read_token(frame.content) == "t" * 43
        listening.accept()[0].close()  # the look whether it answers
        outside.send(pack_for(1, Frame(FrameKind.OPEN)))
        outside.send(pack_for(1, Frame(FrameKind.DATA, b"GET /")))
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.recv(5) == b"GET /"
        outside.close()
        serving.join(30)
        assert not serving.is_alive()


def test_a_port_that_is_taken_is_said_and_without_a_number_another_one_is_taken() -> None:
    first, second = LocalPort(), LocalPort()
    assert first.number != second.number
    with pytest.raises(InvalidInput, match=f"{first.number} cannot be used here: Address already in use; try another"):
        LocalPort(first.number)
    first.close()
    second.close()
