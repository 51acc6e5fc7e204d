"""A network of hosts on one bridge, and what can go wrong between them."""

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Literal, Self

from tests.hosts import filters
from tests.hosts.host import Host
from tests.hosts.namespaces import Namespaces
from tests.hosts.port import BRIDGE, Way

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
_MAX_HOSTS: Final = 254


class Fault:
    """Something that is wrong with a network until it is healed; a `with` block heals it at its end."""

    def __init__(self, *undo: Callable[[], None]) -> None:
        self._undo = ExitStack()
        for one in undo:
            self._undo.callback(one)

    def heal(self) -> None:
        """Undo it; nothing happens if it is healed already."""
        self._undo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()


class Network:
    """A bridge in a network namespace of its own, and hosts on it; nothing of it is seen on this machine's network.

    Networks side by side have the same addresses and do not meet. All ends with the `with` block, and with this
    process, whatever ends it: the namespaces are inside those of one process, which ends with this one.

    Args:
        only_six: hosts have addresses of IPv6 alone; else of IPv4 as well.
        frame_bytes: the longest frame. A card cuts what is longer, and joins it, for nothing; here a processor does it.
    """

    def __init__(self, *, only_six: bool = False, frame_bytes: int = 1500) -> None:
        self._only_six = only_six
        self._frame_bytes = frame_bytes
        self._hub: Namespaces | None = None
        self._hosts: dict[str, Host] = {}
        self._faults: list[Fault] = []

    def __enter__(self) -> Self:
        sysctls = {f"net/ipv6/conf/{where}/disable_ipv6": "1" for where in ("all", "default")}
        hub = Namespaces.outermost({"tmpfs": {"/dev/shm": "1m"}, "names": True, "sysctls": sysctls})
        try:
            bridge = f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0"
            hub.run(["ip", "-batch", "-"], stdin=f"{bridge}\nlink set {BRIDGE} up\n")
        except BaseException:
            hub.close()
            raise
        self._hub = hub
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        hub, self._hub = self._opened(), None
        hub.kill()
        for host in self._hosts.values():
            host.close()
        hub.close()

    def add(self, name: str, *, shm: str = "256m", tmpfs: Mapping[str, str] | None = None) -> Host:
        """Add a host, which is up.

        Args:
            name: its host name, by which the others find it, too.
            shm: the size of its `/dev/shm`.
            tmpfs: folders, which exist outside, in whose place it has an empty file system in memory, each with its
                size; `{"/var/lib/pliant": "64m"}` is a disk that is soon full. The mode is 1777.
        """
        number = len(self._hosts) + 1
        if not _NAME.fullmatch(name) or name in self._hosts or name == "localhost" or number > _MAX_HOSTS:
            raise ValueError(f"no host can be called {name!r} here: give small letters and digits, and no name twice")
        hub = self._opened()
        folders = {"/dev/shm": shm, **(tmpfs or {})}
        host = Host(hub, number, name, folders, frame_bytes=self._frame_bytes, only_six=self._only_six)
        addresses = dict.fromkeys((host.address, host.address6))
        hub.run(["tee", "-a", "/etc/hosts"], stdin="".join(f"{address} {name}\n" for address in addresses))
        self._hosts[name] = host
        return host

    def cut(self, host: Host, way: Way | Literal["both"] = "both") -> Fault:
        """Lose all that is sent to a host, from it, or both; no host sees more of it than silence."""
        return self._lost_by(filters.lose_all(), host, *_WAYS[way])

    def unplug(self, host: Host) -> Fault:
        """Take a host's cable out: the host sees that its link is down, and forgets all Ethernet addresses.

        TCP then tries twice a second. The addresses are asked for once a second, counted from the first packet that
        could not be sent: a cable that is out for 1.01 s may cost 2 s. See `cut`.
        """
        host.port.take_out()
        return self._noted(Fault(host.port.put_back))

    def cut_between(self, one: Host, other: Host) -> Fault:
        """Lose what two hosts send each other, as a firewall does; each still reaches all others."""
        return self._noted(
            Fault(
                self._lost_by(filters.lose_address(other.address4, other.address6, sender=True), one, "to").heal,
                self._lost_by(filters.lose_address(other.address4, other.address6, sender=False), one, "from").heal,
            )
        )

    def lose(self, host: Host, share: float) -> Fault:
        """Lose this share (0.05: one in twenty) of the frames to a host, and of those from it, at random.

        One frame may be up to 64 KiB of a stream of TCP, as it is between two hosts on one machine.
        """
        return self._lost_by(filters.lose_share(share), host, *_WAYS["both"])

    def delay(self, host: Host, delay_s: float) -> Fault:
        """Let every round trip between a host and the others last so many seconds longer: half on each way.

        Delays of two hosts add up. When it begins and ends, frames that are on their way may be lost.
        """
        known_by = host.port.add_delay(delay_s / 2)
        return self._noted(Fault(lambda: host.port.remove_delay(known_by)))

    def heal(self) -> None:
        """Undo all that is wrong."""
        while self._faults:
            self._faults.pop().heal()

    def _lost_by(self, program: str, host: Host, *ways: Way) -> Fault:
        fault = Fault(*(_removal(host, host.port.add_program(way, program)) for way in ways))
        return self._noted(fault)

    def _noted(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def _opened(self) -> Namespaces:
        if self._hub is None:
            raise RuntimeError("the network is not there: use it in a `with` block")
        return self._hub


_WAYS: Final[dict[Way | Literal["both"], tuple[Way, ...]]] = {"to": ("to",), "from": ("from",), "both": ("to", "from")}


def _removal(host: Host, known_by: int) -> Callable[[], None]:
    return lambda: host.port.remove_program(known_by)
