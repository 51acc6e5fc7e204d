"""Frames over a real WebSocket: none is faster than it is dealt with, and who does not keep to the rules is left."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.tunnel.ends import both_connections, eventually

from pliant.core.tunnel import CHUNK_BYTES, WINDOW_BYTES, Frame, FrameKind, TunnelExit, WindowSize, unpack
from pliant.tunnel.stream import TunnelStream
from pliant.tunnel.window import TunnelClosed

DATA = Frame(FrameKind.DATA, b"x" * CHUNK_BYTES)


@contextmanager
def both_ends() -> Iterator[tuple[TunnelStream, TunnelStream]]:
    with both_connections() as (one, other):
        yield TunnelStream(one), TunnelStream(other)


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
        writer._window._may_send = 2 * WINDOW_BYTES
        for _ in range(WINDOW_BYTES // CHUNK_BYTES + 1):
            writer.send(DATA)
        with pytest.raises(ValueError, match="more comes"):
            list(reader.frames())


def test_data_that_hold_nothing_are_not_taken_since_no_window_holds_them_back() -> None:
    with both_ends() as (writer, reader):
        writer.send(Frame(FrameKind.DATA))
        with pytest.raises(ValueError, match="holds none"):
            list(reader.frames())


def test_frames_say_what_they_said() -> None:
    assert WindowSize.of(unpack(WindowSize(rows=3, columns=70_000).frame().pack())) == WindowSize(
        rows=3, columns=0xFFFF
    )
    assert TunnelExit.of(unpack(TunnelExit(code=-7, error="ü").frame().pack())) == TunnelExit(code=-7, error="ü")


@pytest.fixture
def _raising() -> Iterator[None]:
    """Let Ctrl-C raise, whatever a training in this process has made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_raising")
def test_a_signal_that_another_thread_is_given_ends_a_wait_in_which_nothing_comes() -> None:
    def interrupt() -> None:
        eventually(lambda: reader._connection.recv_messages.get_in_progress)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # as one just before the wait, it wakes up nobody

    with both_ends() as (reader, _):
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            list(reader.frames())
        thread.join(30)


@pytest.mark.parametrize("message", [b"", b"?", "d", b"d" * (CHUNK_BYTES + 2)])
def test_what_is_no_frame_is_refused(message: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"frame|FrameKind"):
        unpack(message)
