"""What strangers send to the server's port."""

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from tests.attack.attack import Attack
from tests.attack.target import Target

from pliant.client import Client
from pliant.core.errors import PliantError

HEADERS: Final = ("x-content-type-options: nosniff", "cache-control: no-store", "content-security-policy:")


def exchange(address: tuple[str, int], request: bytes, timeout_s: float = 5.0) -> bytes:
    """Return all that a server answers to bytes, until it closes the connection or says no more."""
    answer = b""
    with socket.create_connection(address, timeout=timeout_s) as connection:
        try:
            connection.sendall(request)
        except OSError:
            return b"broken off"
        try:
            while data := connection.recv(1 << 16):
                answer += data
        except TimeoutError:
            return answer + b" (and stays open)"
        except ConnectionResetError:
            return answer
    return answer


def _status(answer: bytes) -> str:
    return answer[9:12].decode(errors="replace") if answer.startswith(b"HTTP/1.1 ") else "nothing"


def _smuggled(head: bytes) -> Callable[[Target], str]:
    """Return what sends one request that hides another, and says how many are answered."""

    def play(target: Target) -> str:
        hidden = b"GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
        answer = exchange(target.address, b"POST /v1/logoff HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n0\r\n\r\n" + hidden)
        return f"{answer.count(b'HTTP/1.1 ')} answered, {'open' if answer.endswith(b'(and stays open)') else 'closed'}"

    return play


def _headers(target: Target) -> str:
    answer = exchange(target.address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").lower()
    missing = [header for header in HEADERS if header.encode() not in answer]
    return f"without {missing[0]}" if missing else "there"


def _half_a_head(target: Target) -> str:
    """Send half a head, and say whether the server waits for the rest for half a minute."""
    answer = exchange(target.address, b"GET / HTTP/1.1\r\nHost:", timeout_s=30.0)
    return "held open" if answer.endswith(b"(and stays open)") else "closed"


def _many_open(target: Target) -> str:
    """Hold 300 connections open, and say whether somebody else is served."""
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(target.address, timeout=5.0))
        began = time.monotonic()
        if not target.ada.healthy():
            return "nobody else is served"
        return "others are served" if time.monotonic() - began < 5.0 else "others wait"


def _locked_out(target: Target) -> str:
    """Guess Ada's password from Bob's side many times, and say whether her session still opens."""
    host, port = target.address
    for number in range(12):
        with Client(f"http://{host}:{port}", None) as stranger:
            try:
                stranger.people.log_on("ada", f"a wrong guess {number}")
            except PliantError:
                continue
    return "still in" if target.ada.people.me().name == "ada" else "locked out"


def _oracle(target: Target) -> str:
    """Say whether Bob is told of files that only the server may read that they exist."""
    words = []
    for path in (target.home / "token", target.home / "no-such-file"):
        try:
            target.submit("bob", "nothing.py", {}, weights=str(path))
            words.append("taken")
        except PliantError as error:
            words.append(str(error).replace(str(path), "FILE").replace(path.name, "FILE"))
    return "the same" if words[0] == words[1] else f"differs: {words}"


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="HTTP", name=name, expected=expected, play=play)


ATTACKS: Final = (
    _attack(
        "two lengths of one body",
        "1 answered, closed",
        _smuggled(b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
    ),
    _attack("half a head", "closed", _half_a_head),
    _attack("300 connections held open", "others are served", _many_open),
    _attack("headers that protect a browser", "there", _headers),
    _attack("12 wrong passwords of another", "still in", _locked_out),
    _attack("whether a file of the server's exists", "the same", _oracle),
)
