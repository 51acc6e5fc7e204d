"""A host's port of the bridge, and what is wrong with it: programs that lose frames, a delay, a cable that is out.

What is wrong is of the port, not of the host: a host that was killed and comes back finds it as it was.

    without a delay    eth0 of the host ═══ v1, in the bridge; the programs stand there
    with a delay       eth0 of the host ═══ v1 ─ relay ─ y1 ═══ x1, in the bridge; the programs stand there
"""

import os
import sys
from pathlib import Path
from typing import Final, Literal

from tests.hosts.namespaces import PATIENCE_S, HostProcess, Namespaces, is_readable

BRIDGE: Final = "bridge"
Way = Literal["to", "from"]
"""To the host, or from the host."""

_RELAY: Final = Path(__file__).with_name("relay.py")
_SIDES: Final[dict[Way, str]] = {"to": "egress", "from": "ingress"}  # as the bridge sees it


class Port:
    """One port; all commands run where the bridge is."""

    def __init__(self, hub: Namespaces, number: int, frame_bytes: int) -> None:
        self._hub = hub
        self._pair = f"mtu {frame_bytes} type veth peer mtu {frame_bytes}"
        self._device, self._outer, self._inner = f"v{number}", f"x{number}", f"y{number}"
        self._is_plugged = False
        self._relay: HostProcess | None = None
        self._last = 0
        self._programs: dict[int, tuple[Way, str]] = {}
        """By the preference of their filters, which is also what they are known by."""
        self._delays: dict[int, float] = {}
        self._num_taken_out = 0

    def plug(self, pid: int, mac: str) -> None:
        """Connect a host: make its eth0, which is down and has no address yet.

        Args:
            pid: the host's first process, by its number where the bridge is.
            mac: the Ethernet address of its eth0.
        """
        self._ip(f"link add {self._device} {self._pair} name eth0 address {mac} netns {pid}")
        self._is_plugged = True
        self._connect()
        self._set_link()

    def remove(self) -> None:
        """Disconnect a host that is gone."""
        self._drop_relay()
        self._hub.run(["ip", "link", "del", self._device], check=False)  # the kernel may have done it
        self._is_plugged = False

    def add_program(self, way: Way, program: str) -> int:
        """Lose frames by a program; returns what it is known by."""
        self._last += 1
        self._programs[self._last] = (way, program)
        if self._is_plugged:
            self._tc(self._adding(self._last))
        return self._last

    def remove_program(self, known_by: int) -> None:
        """Lose no more frames by that program."""
        way, _ = self._programs.pop(known_by)
        if self._is_plugged:
            self._tc(f"filter del dev {self._in_bridge} {_SIDES[way]} pref {known_by}")

    def add_delay(self, delay_s: float) -> int:
        """Let every frame come so much later, on either way; delays add up."""
        self._last += 1
        self._delays[self._last] = delay_s
        self._connect()
        return self._last

    def remove_delay(self, known_by: int) -> None:
        """Undo one delay; frames that are on their way are lost."""
        del self._delays[known_by]
        self._connect()

    def take_out(self) -> None:
        """Take the cable out: the host sees its link go down."""
        self._num_taken_out += 1
        self._set_link()

    def put_back(self) -> None:
        """Put the cable back, if nobody else wants it out."""
        self._num_taken_out -= 1
        self._set_link()

    def fall_silent(self) -> None:
        """Let nothing of this host out any more; the next one that is plugged in speaks again."""
        self._ip(f"link set {self._device} down")

    @property
    def _in_bridge(self) -> str:
        return self._device if self._relay is None else self._outer

    def _connect(self) -> None:
        """Connect the device to the bridge, by a relay if there is a delay; the programs are there before a frame."""
        if not self._is_plugged:
            return
        self._drop_relay()
        self._hub.run(["tc", "qdisc", "del", "dev", self._device, "clsact"], check=False)  # there may be none
        if delay_s := sum(self._delays.values()):
            self._ip(f"link add {self._outer} {self._pair} name {self._inner}", f"link set {self._inner} up")
            self._ip(f"link set {self._outer} up", f"link set {self._device} nomaster")
            self._relay = self._started(delay_s)
        self._tc(f"qdisc add dev {self._in_bridge} clsact", *map(self._adding, self._programs))
        self._ip(f"link set {self._in_bridge} master {BRIDGE}")

    def _set_link(self) -> None:
        if self._is_plugged:
            self._ip(f"link set {self._device} {'down' if self._num_taken_out else 'up'}")

    def _started(self, delay_s: float) -> HostProcess:
        says, said = os.pipe()
        argv = [sys.executable, "-I", "-S", str(_RELAY), self._device, self._inner, str(delay_s)]
        try:
            relay = self._hub.popen(argv, streams=(None, said, 2))
        finally:
            os.close(said)
        with os.fdopen(says, "rb") as pipe:
            if not is_readable(says, PATIENCE_S) or not pipe.read(1):
                raise RuntimeError(f"the relay of {self._device} did not start; it wrote why to the standard error")
        return relay

    def _drop_relay(self) -> None:
        """Leave the device in no bridge."""
        self._hub.run(["ip", "link", "set", self._in_bridge, "nomaster"], check=False)  # its host may be gone
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
            self._relay = None
            self._ip(f"link del {self._outer}")

    def _adding(self, known_by: int) -> str:
        way, program = self._programs[known_by]
        place = f"dev {self._in_bridge} {_SIDES[way]} pref {known_by}"
        return f'filter add {place} protocol all bpf da bytecode "{program}"'

    def _ip(self, *lines: str) -> None:
        self._hub.run(["ip", "-batch", "-"], stdin="\n".join(lines) + "\n")

    def _tc(self, *lines: str) -> None:
        self._hub.run(["tc", "-batch", "-"], stdin="\n".join(lines) + "\n")
