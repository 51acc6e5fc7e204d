"""Carry frames between two network devices, each so many seconds late: `relay.py DEVICE DEVICE SECONDS`.

Not every kernel has `tc netem`, and a delay that differs from machine to machine tests two things; so this is the delay
everywhere. It runs as a script, without site-packages, and writes a line when it carries.

Frames are taken and given with the header of virtio, which says which checksums and which cuts into packets are still
to be made: a sender leaves both to its device, and a frame of 64 KiB passes whole. Frames keep their order. What finds
no room, or a device that is down, is lost, as on a wire.
"""

import select
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Final

_SOL_PACKET: Final = 263
_PACKET_VNET_HDR: Final = 15
_PACKET_IGNORE_OUTGOING: Final = 23
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_ALL_PROTOCOLS: Final = 3
_MAX_FRAME: Final = 70_000
_MAX_WAITING: Final = 20_000
_BUFFER_BYTES: Final = 64 * 2**20
_AT_ONCE: Final = 64
"""So many frames are taken from one side before the other one is looked at."""


def main() -> None:
    """Carry until killed."""
    first, second, seconds = sys.argv[1:]
    devices = (_open(first), _open(second))
    print("carries", flush=True)
    _carry(devices, float(seconds))


def _open(name: str) -> socket.socket:
    device = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    device.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    device.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    for buffer in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
        device.setsockopt(socket.SOL_SOCKET, buffer, _BUFFER_BYTES)
    device.setblocking(False)
    device.bind((name, _ALL_PROTOCOLS))
    return device


def _carry(devices: tuple[socket.socket, socket.socket], delay_s: float) -> None:
    waiting: deque[tuple[float, socket.socket, bytes]] = deque()  # of both sides: what came first is due first
    other = {devices[0]: devices[1], devices[1]: devices[0]}
    while True:
        timeout_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        readable, _, _ = select.select(devices, (), (), timeout_s)
        for device in readable:
            with suppress(OSError):  # nothing more is there, or the device is down
                for _ in range(_AT_ONCE):
                    frame = device.recv(_MAX_FRAME)
                    if len(waiting) < _MAX_WAITING:
                        waiting.append((time.monotonic() + delay_s, other[device], frame))
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, device, frame = waiting.popleft()
            with suppress(OSError):
                device.send(frame)


if __name__ == "__main__":
    main()
