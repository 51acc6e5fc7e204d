"""Attacks the ports of another job's tasks: talks as a member did, says nonsense, fills the queue."""

import socket
import time
from collections.abc import Callable

from probe import Facts, play, probe


def frame(*parts: bytes) -> bytes:
    body = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return len(body).to_bytes(4, "big") + body


def answer_to(port: int, said: bytes) -> bytes:
    """Return what is answered first."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.5) as connection:
            connection.sendall(said)
            return connection.recv(1 << 16)
    except OSError:
        return b""


def of_each_port(said: Callable[[Facts], list[bytes]]) -> Callable[[Facts], str]:
    def talk(facts: Facts) -> str:
        for port in facts["ports"]:
            for one in said(facts):
                if answered := answer_to(port, one):
                    return f"was answered {answered[:40]!r}"
        return "refused" if facts["ports"] else "no port was found"

    return talk


def keys(facts: Facts) -> list[bytes]:
    prefixes = [f"{facts['victim']}/{number}/".encode() for number in (1, 2, 3)] + [b""]
    return [prefix + f"member/{rank}".encode() for prefix in prefixes for rank in (0, 1)]


probe("addresses of a generation")(of_each_port(lambda facts: [frame(b"get", key) for key in keys(facts)]))
probe("an address put into a generation")(
    of_each_port(lambda facts: [frame(b"set", key, b'["", "[]"]') + frame(b"get", key) for key in keys(facts)])
)
probe("a transfer with a guessed token")(of_each_port(lambda _: [bytes(20) + (1).to_bytes(8, "big") + b"x"]))
probe("nonsense")(of_each_port(lambda _: [b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 4096]))


@probe("a flood of connections, for three seconds")
def flood(facts: Facts) -> str:
    held: list[socket.socket] = []
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        for port in facts["ports"]:
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
            held.append(connection)
        while len(held) > 400:
            held.pop(0).close()
    return "done"


play()
