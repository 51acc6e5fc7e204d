"""A gateway that does what a test tells it, over real sockets; it speaks frames and knows the protocol's order."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pliant.serve.protocol.frames import KernelFrame, KernelFrameKind, KernelFrameReader, encode_frame

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer of a kernel."""

    status: int
    body: bytes
    header: Mapping[str, Any]


@dataclass(slots=True)
class FakeGateway:
    """One end of one connection to a kernel."""

    channel: socket.socket
    batch_size: int = 8
    latency_objective_s: float = 60.0
    reader: KernelFrameReader = field(default_factory=KernelFrameReader)
    frames: list[KernelFrame] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    num_asked: int = 0

    def receive(self) -> KernelFrame:
        """Return the next frame; fail if none comes in time or the kernel has closed."""
        self.channel.settimeout(TIMEOUT_S)
        while not self.frames:
            data = self.channel.recv(1 << 20)
            assert data, f"the kernel has closed the connection after {self.log}"
            self.frames += self.reader.feed(data)
        frame = self.frames.pop(0)
        self.log.append(frame.kind.name)
        return frame

    def expect(self, kind: KernelFrameKind) -> KernelFrame:
        """Return the next frame, which has to be of this kind."""
        frame = self.receive()
        assert frame.kind is kind, f"{frame.kind.name} {frame.header} instead of {kind.name}"
        return frame

    def is_closed(self) -> bool:
        """Wait until the kernel closes; anything else that it sends is a failure."""
        self.channel.settimeout(TIMEOUT_S)
        try:
            return not self.frames and self.channel.recv(1) == b""
        except ConnectionResetError:  # it has not read all that was sent
            return True

    def send(self, kind: KernelFrameKind, header: dict[str, Any], body: bytes = b"") -> None:
        self.channel.sendall(encode_frame(kind, header, body))

    def welcome(self, **more: Any) -> Mapping[str, Any]:
        """Welcome a kernel; return the header of its HELLO."""
        hello = self.expect(KernelFrameKind.HELLO)
        settings = {"batch_size": self.batch_size, "pipe_size": 2, "latency_objective_s": self.latency_objective_s}
        self.send(KernelFrameKind.WELCOME, settings | more)
        return hello.header

    def ready(self) -> Mapping[str, Any]:
        """Welcome a kernel and wait until it is ready; return what its model says of itself."""
        self.welcome()
        header = self.expect(KernelFrameKind.READY).header
        assert header["load_s"] >= 0
        return dict(header["metadata"])

    def ask(self, *bodies: bytes | str, api: str = "dlim", **header: Any) -> list[int]:
        """Send requests in one piece, so that they are in one batch; return their ids."""
        ids, sent = [], b""
        for body in bodies:
            self.num_asked += 1
            ids.append(self.num_asked)
            whole = body.encode() if isinstance(body, str) else body
            sent += encode_frame(KernelFrameKind.REQUEST, {"id": self.num_asked, "api": api, **header}, whole)
        self.channel.sendall(sent)
        return ids

    def answers(self, *ids: int) -> list[Heard]:
        """Return the answers to these requests, in this order; they may come in any, and PROGRESS before them."""
        found: dict[int, Heard] = {}
        while set(found) < set(ids):
            if (frame := self.receive()).kind is KernelFrameKind.PROGRESS:
                continue
            assert frame.kind is KernelFrameKind.RESULT, frame
            number = frame.header["id"]
            assert number in ids, f"an answer to {number}, which was answered before"
            assert number not in found, f"a second answer to {number}"
            found[number] = Heard(frame.header["status"], bytes(frame.body), frame.header)
        return [found[number] for number in ids]

    def exchange(self, *bodies: bytes | str, api: str = "dlim", **header: Any) -> list[Heard]:
        """Ask, and return the answers."""
        return self.answers(*self.ask(*bodies, api=api, **header))

    def close(self) -> None:
        self.channel.close()


class Listener:
    """The socket that kernels connect to, as the gateway of a number has it."""

    def __init__(self, folder: Path, number: int = 0) -> None:
        self.path = folder / (f"gateway-{number}" if number else "gateway")
        self.path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self.path))
        self._socket.listen()
        self._accepted: list[FakeGateway] = []

    def accept(self, **settings: Any) -> FakeGateway:
        self._socket.settimeout(TIMEOUT_S)
        self._accepted.append(FakeGateway(self._socket.accept()[0], **settings))
        return self._accepted[-1]

    def close(self) -> None:
        for gateway in self._accepted:
            gateway.close()
        self._socket.close()
        self.path.unlink(missing_ok=True)


@contextmanager
def listening(folder: Path, number: int = 0) -> Iterator[Listener]:
    listener = Listener(folder, number)
    try:
        yield listener
    finally:
        listener.close()


@contextmanager
def in_thread(act: Any) -> Iterator[threading.Thread]:
    """Run something beside a test; it has to end by itself when the block is left."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    yield thread
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
