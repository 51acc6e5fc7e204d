"""Programs of the classic BPF that tell a port of the bridge which frames to lose, as `tc filter … bpf` takes them.

A program that returns 2 loses the frame (TC_ACT_SHOT); one that returns -1 leaves it to the next program
(TC_ACT_UNSPEC). Offsets count from the first byte of the Ethernet header: 12 is the type, 14 the first byte of an IP
header.
"""

import ipaddress
from typing import Final

Instruction = tuple[int, int, int, int]
"""What to do, how far to jump if true, if false, and with which number."""

_LOAD_WORD, _LOAD_HALF, _LOAD_BYTE = 32, 40, 48  # from an offset of the frame
_IF_EQUAL, _IF_AT_LEAST, _RETURN = 21, 53, 6
_RANDOM: Final = 0xFFFFF000 + 56  # an offset (SKF_AD_OFF + SKF_AD_RANDOM) where the kernel gives a random number
_LOSE: Final = (_RETURN, 0, 0, 2)
_PASS: Final = (_RETURN, 0, 0, 0xFFFFFFFF)
_IPV4, _IPV6, _ICMPV6 = 0x800, 0x86DD, 58
_ROUTER_SOLICITATION: Final = 133
"""The first message of ICMPv6 by which neighbours find each other; those from here on do what ARP does for IPv4."""


def lose_all() -> str:
    """Return the program that loses every frame."""
    return _written([_LOSE])


def lose_share(share: float) -> str:
    """Return the program that loses each frame with this probability."""
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"a share of {share} cannot be lost: give one from 0 to 1")
    least = min(round((1.0 - share) * 2**32), 2**32 - 1)
    return _written([(_LOAD_WORD, 0, 0, _RANDOM), (_IF_AT_LEAST, 0, 1, least), _LOSE, _PASS])


def lose_address(address: str, address6: str, *, sender: bool) -> str:
    """Return the program that loses the packets of IP from an address, or to it.

    Neighbours still find each other (ARP, neighbour discovery): a firewall between them says nothing, and does not make
    them unreachable. Of an IPv6 address only the last 32 bits are compared.
    """
    v4, v6 = int(ipaddress.IPv4Address(address)), int(ipaddress.IPv6Address(address6)) & 0xFFFFFFFF
    return _written(
        [
            (_LOAD_HALF, 0, 0, 12),
            (_IF_EQUAL, 0, 2, _IPV4),
            (_LOAD_WORD, 0, 0, 26 if sender else 30),
            (_IF_EQUAL, 7, 8, v4),
            (_IF_EQUAL, 0, 7, _IPV6),
            (_LOAD_WORD, 0, 0, 34 if sender else 50),
            (_IF_EQUAL, 0, 5, v6),
            (_LOAD_BYTE, 0, 0, 20),
            (_IF_EQUAL, 0, 2, _ICMPV6),
            (_LOAD_BYTE, 0, 0, 54),
            (_IF_AT_LEAST, 1, 0, _ROUTER_SOLICITATION),
            _LOSE,
            _PASS,
        ]
    )


def _written(program: list[Instruction]) -> str:
    return ",".join([str(len(program)), *(" ".join(map(str, instruction)) for instruction in program)])
