"""What is seen of a host on its network."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.hosts.host import Host

_ALL_PROTOCOLS: Final = 3
_SO_RCVBUFFORCE: Final = 33
_BUFFER_BYTES: Final = 64 << 20
_LOOK_S: Final = 0.05


class Capture:
    """The frames that came to a host and went from it, each whole."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def shows(self, text: bytes) -> bool:
        """Tell whether a frame has this in it."""
        return any(text in frame for frame in self.frames)


@contextmanager
def captured(host: Host) -> Iterator[Capture]:
    """Keep what a host sends and receives until the block ends."""
    capture, ends = Capture(), threading.Event()
    with host.inside():
        device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    device.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    device.bind(("eth0", _ALL_PROTOCOLS))
    device.settimeout(_LOOK_S)

    def run() -> None:
        while True:
            try:
                capture.frames.append(device.recv(1 << 17))
            except TimeoutError:
                if ends.is_set():
                    return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield capture
    finally:
        ends.set()
        thread.join()
        device.close()
