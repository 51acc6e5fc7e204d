"""Frames over a real WebSocket: none is faster than it is dealt with, and who does not keep to the rules is left."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from websockets.sync.client import connect
from websockets.sync.server import ServerConnection, serve

from pliant.core.tunnel import CHUNK_BYTES, WINDOW_BYTES, Frame, FrameKind, TunnelExit, WindowSize, unpack
from pliant.tunnel.stream import TunnelClosed, TunnelStream

DATA = Frame(FrameKind.DATA, b"x" * CHUNK_BYTES)


@contextmanager
def both_ends() -> Iterator[tuple[TunnelStream, TunnelStream]]:
    accepted: list[ServerConnection] = []
    there, over = threading.Event(), threading.Event()

    def hold(connection: ServerConnection) -> None:
        accepted.append(connection)
        there.set()
        over.wait(30)

    with serve(hold, "127.0.0.1", 0, compression=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with connect(f"ws://127.0.0.1:{server.socket.getsockname()[1]}", compression=None) as connection:
            assert there.wait(30)
            yield TunnelStream(connection), TunnelStream(accepted[0])
            over.set()
        server.shutdown()


def test_no_more_than_a_window_is_sent_before_it_is_dealt_with() -> None:
    with both_ends() as (writer, reader):
        sent: list[int] = []
        grants = threading.Thread(target=lambda: list(writer.frames()), daemon=True)
        grants.start()

        def write() -> None:
            with suppress(TunnelClosed):
                while len(sent) < 100:
                    writer.send(DATA)
                    sent.append(len(DATA.content))

        writing = threading.Thread(target=write, daemon=True)
        writing.start()
        frames = reader.frames()
        for _ in range(WINDOW_BYTES // CHUNK_BYTES):
            assert next(frames) == DATA
        writing.join(0.5)
        assert sum(sent) == WINDOW_BYTES, "nothing was dealt with"
        reader.deal(WINDOW_BYTES)
        for _ in range(100 - WINDOW_BYTES // CHUNK_BYTES):
            assert next(frames) == DATA
            reader.deal(CHUNK_BYTES)
        writing.join(30)
        assert len(sent) == 100
        reader.close()
        grants.join(30)
        with pytest.raises(TunnelClosed):
            writer.send(DATA)


def test_more_than_was_granted_is_not_taken() -> None:
    with both_ends() as (writer, reader):
        writer._may_send = 2 * WINDOW_BYTES
        for _ in range(WINDOW_BYTES // CHUNK_BYTES + 1):
            writer.send(DATA)
        with pytest.raises(ValueError, match="more comes"):
            list(reader.frames())


def test_frames_say_what_they_said() -> None:
    assert WindowSize.of(unpack(WindowSize(rows=3, columns=70_000).frame().pack())) == WindowSize(
        rows=3, columns=0xFFFF
    )
    assert TunnelExit.of(unpack(TunnelExit(code=-7, error="ü").frame().pack())) == TunnelExit(code=-7, error="ü")


@pytest.mark.parametrize("message", [b"", b"?", "d", b"d" * (CHUNK_BYTES + 2)])
def test_what_is_no_frame_is_refused(message: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"frame|FrameKind"):
        unpack(message)
