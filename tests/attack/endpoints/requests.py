"""What strangers send to the gateway: bodies that lie, bombs, heads without end, paths with tricks."""

import gzip
import json
import socket
import struct
import time
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from tests.attack.attack import Attack
from tests.attack.endpoints.stage import ADAS, MAX_BODY_BYTES, SERVICE, Stage, stage_of
from tests.attack.target import Target

_INFER: Final = f"/v2/models/{ADAS}/infer"
_LENGTH: Final = "Inference-Header-Content-Length"
_TOO_LONG: Final = MAX_BODY_BYTES + 1
GOOD: Final = {"name": "x", "datatype": "FP32", "shape": [2]}
_HIDDEN: Final = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


def _tensor(**lies: Any) -> bytes:
    return json.dumps({"inputs": [GOOD | {"data": [1.0, 2.0]} | lies]}).encode()


def _binary(raw: bytes, size: Any = 8, **lies: Any) -> tuple[bytes, dict[str, str]]:
    head = json.dumps({"inputs": [GOOD | {"parameters": {"binary_data_size": size}} | lies]}).encode()
    return head + raw, {_LENGTH: str(len(head))}


def _bomb(num_mib: int, *, times: int = 1, gzipped: bool = True) -> Callable[[], bytes]:
    return lambda: (gzip.compress if gzipped else zlib.compress)(bytes(num_mib << 20)) * times


BODIES: Final[dict[str, tuple[str, bytes | Callable[[], bytes], dict[str, str]]]] = {
    "a shape of 2^62 by 2^62": ("HTTP 400", _tensor(shape=[1 << 62, 1 << 62]), {}),
    "a shape of a billion, and two numbers": ("HTTP 400", _tensor(shape=[10**9]), {}),
    "a shape below zero": ("HTTP 400", _tensor(shape=[-1]), {}),
    "a shape of no numbers": ("HTTP 400", _tensor(shape=["2", None]), {}),
    "a shape of 10,000 dimensions": ("HTTP 400", _tensor(shape=[1] * 10_000), {}),
    "a shape with a number of 5,000 digits": (
        "HTTP 400",
        _tensor(shape=["N"]).replace(b'"N"', b"9" * 5000),
        {},
    ),
    "a type that is none": ("HTTP 400", _tensor(datatype="OBJECT"), {}),
    "numbers that are none": ("HTTP 400", _tensor(data=["1", {}]), {}),
    "the same input twice": ("HTTP 400", json.dumps({"inputs": [GOOD | {"data": [1, 2]}] * 2}).encode(), {}),
    "JSON, nested 100,000 deep": ("HTTP 400", b"[" * 100_000, {}),
    "an object, nested 50,000 deep": ("HTTP 400", b'{"inputs":' * 50_000, {}),
    "data, nested 400 deep": ("HTTP 400", _tensor(data=json.loads("[" * 400 + "]" * 400)), {}),
    "JSON that is not UTF-8": ("HTTP 400", b'{"inputs": "\xff\xfe"}', {}),
    "nothing": ("HTTP 400", b"", {}),
    "a binary tensor shorter than it says": ("HTTP 400", *_binary(bytes(4))),
    "a binary tensor longer than it says": ("HTTP 400", *_binary(bytes(12))),
    "a binary tensor of 2^63 bytes": ("HTTP 400", *_binary(bytes(8), 1 << 63)),
    "a binary tensor of -8 bytes": ("HTTP 400", *_binary(bytes(8), -8)),
    "a binary tensor of true bytes": ("HTTP 400", *_binary(bytes(8), True)),
    "texts whose lengths lie": ("HTTP 400", *_binary(struct.pack("<I", 0xFFFFFFFF) + b"abcd", datatype="BYTES")),
    "a head of -1 bytes": ("HTTP 400", _tensor(), {_LENGTH: "-1"}),
    "a head longer than the body": ("HTTP 400", _tensor(), {_LENGTH: "100000000000"}),
    "a head of ² bytes": ("HTTP 400", _tensor(), {_LENGTH: "%B2"}),
    "a body longer than its endpoint takes": ("HTTP 413", b" " * _TOO_LONG, {}),
    "256 MiB in 256 KiB of gzip": ("HTTP 413", _bomb(256), {"Content-Encoding": "gzip"}),
    "256 MiB in 256 KiB of deflate": ("HTTP 413", _bomb(256, gzipped=False), {"Content-Encoding": "deflate"}),
    "a bomb in a thousand members": ("HTTP 413", _bomb(1, times=1000), {"Content-Encoding": "gzip"}),
    "gzip that breaks off": ("HTTP 400", gzip.compress(_tensor())[:-9], {"Content-Encoding": "gzip"}),
    "an encoding of encodings": ("HTTP 400", b"x", {"Content-Encoding": "gzip, gzip"}),
    "a time that is no number": ("HTTP 400", _tensor(), {"X-Request-Timeout-S": "nan"}),
}
_RAW: Final[dict[str, tuple[str, bytes]]] = {
    "two framings of one body": (
        "1 answered, closed",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    "two lengths of one body": ("1 answered, closed", b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n"),
    "a list of lengths": ("1 answered, closed", b"Content-Length: 0, 44\r\n\r\n"),
    "a length with a sign": ("1 answered, closed", b"Content-Length: +0\r\n\r\n"),
    "a length of 40 digits": ("1 answered, closed", b"Content-Length: " + b"9" * 40 + b"\r\n\r\n"),
    "an encoding that is not quite chunked": ("1 answered, closed", b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    "chunked twice": ("1 answered, closed", b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    "a blank before the colon": ("1 answered, closed", b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    "a header that is folded": ("1 answered, closed", b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    "a NUL in a header": ("1 answered, closed", b"X-A: a\0b\r\nContent-Length: 0\r\n\r\n"),
    "a chunk of 2^68 bytes": ("1 answered, closed", b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n"),
    "a chunk of -1 bytes": ("1 answered, closed", b"Transfer-Encoding: chunked\r\n\r\n-1\r\n"),
    "10,000 headers": ("1 answered, closed", b"X-A: b\r\n" * 10_000 + b"\r\n"),
    "a header of a megabyte": ("1 answered, closed", b"X-A: " + b"b" * (1 << 20) + b"\r\n\r\n"),
}
"""What follows the first lines of a request; behind it another one is hidden."""
PATHS: Final = {
    "through the folder above": f"/v2/models/x/../{ADAS}",
    "through the folder above, encoded": f"/v2/models/x/%2e%2e/{ADAS}",
    "an encoded slash": f"/v2/models/{ADAS}%2fready",
    "an encoded way up": "/v2/models/..%2f..%2f..%2fetc%2fpasswd",
    "a NUL behind the name": f"/v2/models/{ADAS}%00",
    "an empty name": f"/v2/models//{ADAS}/ready",
    "other letters of the same look": "/v2/models/%D0%B0d%D0%B0s",
    "wide letters": "/v2/models/%EF%BD%81das",
    "capitals": "/v2/models/ADAS",
    "a parameter behind the name": f"/v2/models/{ADAS};v=1",
    "bytes that are no letters": "/v2/models/%ff%fe",
    "line feeds and a header": "/v2/models/x%0d%0aSet-Cookie:%20a=b",
    "a version below zero": f"/v2/models/{ADAS}/versions/-1",
    "a version of 40 digits": f"/v2/models/{ADAS}/versions/{'9' * 40}",
    "a version of Arabic digits": f"/v2/models/{ADAS}/versions/%D9%A1",
    "60,000 letters": "/v2/models/" + "a" * 60_000,
    "another server's address": f"http://127.0.0.1:1/v2/models/nono/{ADAS}",
}


def _sent(body: bytes | Callable[[], bytes], headers: dict[str, str]) -> Callable[[Target], str]:
    """Return what asks Ada's endpoint as Ada; it says the status, if the answer is what it should be."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        answer = stage.post(_INFER, body if isinstance(body, bytes) else body(), headers=headers)
        said = answer.json().get("error", "") if answer.status_code >= 400 else ""
        if said and not said.isprintable():
            return f"HTTP {answer.status_code}, and says {said[:80]!r}"
        return f"HTTP {answer.status_code}" if stage.answers() else "it does not answer any more"

    return play


def _raw(rest: bytes) -> Callable[[Target], str]:
    """Return what sends a request that hides another one, and says how many are answered."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        token = target.tokens["ada"].encode()
        first = b"POST " + _INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + b"\r\n"
        answer = stage.exchange(first + rest + _HIDDEN)
        state = "open" if answer.endswith(b"(and stays open)") else "closed"
        if answer == b"broken off":
            return "1 answered, closed" if stage.answers() else "it does not answer any more"
        return f"{answer.count(b'HTTP/1.1 ')} answered, {state}"

    return play


def _path(path: str) -> Callable[[Target], str]:
    """Return what asks for a path as Bob, as it is written, and says whether anything was there."""

    def play(target: Target) -> str:
        token = target.tokens["bob"].encode()
        head = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + token + b"\r\n\r\n"
        answer = stage_of(target).exchange(b"GET " + path.encode() + head)
        head, _, body = answer.partition(b"\r\n\r\n")
        if b"\nSet-Cookie" in head or any(byte < 32 for byte in body):
            return f"comes back: {answer[:80]!r}"
        return "nothing is there" if answer[9:12] in (b"400", b"404") else f"{answer[:60]!r}"

    return play


def _without_end(target: Target) -> str:
    """Send a chunked body that never ends; say how it is answered before 64 MiB of it were taken."""
    stage, num_sent, answer = stage_of(target), 0, b""
    head = f"POST {_INFER} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {target.tokens['ada']}\r\n"
    chunk = b"10000\r\n" + bytes(1 << 16) + b"\r\n"
    with socket.create_connection(stage.address, timeout=10.0) as connection:
        connection.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            while num_sent < 64 << 20:
                connection.sendall(chunk)
                num_sent += len(chunk)
            answer = connection.recv(1 << 16)
        except OSError:
            return "cut off"
    return f"took {num_sent >> 20} MiB, and said {answer[:20]!r}"


def _unread_giant(target: Target) -> str:
    """Announce a terabyte, and say whether any of it is waited for."""
    head = f"POST {_INFER} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {target.tokens['ada']}\r\n"
    answer = stage_of(target).exchange(head.encode() + b"Content-Length: 1099511627776\r\n\r\n")
    return answer[9:12].decode() + (", and stays open" if answer.endswith(b"(and stays open)") else ", closed")


def _stranger_giant(target: Target) -> str:
    """The same without a token."""
    answer = stage_of(target).exchange(
        f"POST {_INFER} HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n".encode()
    )
    return answer[9:12].decode() + (", and stays open" if answer.endswith(b"(and stays open)") else ", closed")


def _slow(head: bytes) -> Callable[[Target], str]:
    """Return what sends so much and then a byte every two seconds, and says whether that is borne for a minute."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        given = head.replace(b"TOKEN", target.tokens["ada"].encode())
        with socket.create_connection(stage.address, timeout=2.0) as connection:
            connection.sendall(given)
            end = time.monotonic() + 70.0
            while time.monotonic() < end:
                try:
                    connection.sendall(b"a")
                    if connection.recv(1 << 16):
                        return "ended"
                except TimeoutError:
                    continue
                except OSError:
                    return "ended"
                else:
                    return "ended"
        return "borne"

    return play


def _many_open(target: Target) -> str:
    """Hold 300 connections open, and say whether Ada is answered."""
    stage = stage_of(target)
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(stage.address, timeout=5.0))
        return "Ada is answered" if stage.answers() else "nobody is answered"


def _grpc(name: str, **request: Any) -> Attack:
    def play(target: Target) -> str:
        stage = stage_of(target)
        code = stage.infer_over_grpc(request)
        return code if stage.answers() else "it does not answer any more"

    return _attack(f"gRPC: {name}", "INVALID_ARGUMENT", play)


def _garbage(message: bytes) -> Callable[[Target], str]:
    return lambda target: stage_of(target).call(f"{SERVICE}ModelInfer", message)


def _metadata(target: Target) -> str:
    flood = tuple((f"x-{number}", "b" * 1000) for number in range(100))
    code = stage_of(target).call(f"{SERVICE}ServerMetadata", b"", metadata=flood)
    return "refused" if code in ("RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE") else code


def _crlf(target: Target) -> str:
    """Say whether what a stranger writes in a request comes into the gateway's log as it is."""
    stage: Stage = stage_of(target)
    for path in ("/v2/models/\x1b[31mred%0a2026 fake/infer", "/v2/models/%1b%5b31mred%0a/infer"):
        stage.exchange(
            b"POST " + path.encode() + b" HTTP/1.1\r\nHost: x\r\nUser-Agent: \x1b[31m\r\n\r\n", timeout_s=2.0
        )
    log = (target.home / "gateway" / "log").read_bytes()
    return (
        "one line of letters each"
        if all(byte >= 32 or byte == 10 for byte in log) and b"fake" not in log
        else "it is there"
    )


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="endpoints", name=name, expected=expected, play=play)


_TENSOR: Final = {"name": "x", "datatype": "FP32", "shape": [2]}
_SLOW_HEAD: Final = b"POST " + _INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nX-A: "
_SLOW_BODY: Final = (
    b"POST " + _INFER.encode() + b" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 1000\r\n\r\n"
)

ATTACKS: Final = (
    *(_attack(f"a body: {name}", expected, _sent(body, more)) for name, (expected, body, more) in BODIES.items()),
    *(_attack(f"framing: {name}", expected, _raw(rest)) for name, (expected, rest) in _RAW.items()),
    *(_attack(f"a path: {name}", "nothing is there", _path(path)) for name, path in PATHS.items()),
    _attack("a chunked body without end", "cut off", _without_end),
    _attack("a body of a terabyte, announced", "413, closed", _unread_giant),
    _attack("a body of 60 MB, announced without a token", "401, closed", _stranger_giant),
    _attack("a head, a byte every two seconds", "ended", _slow(_SLOW_HEAD)),
    _attack("a body, a byte every two seconds", "ended", _slow(_SLOW_BODY)),
    _attack("300 connections to the gateway held open", "Ada is answered", _many_open),
    _grpc("fewer bytes than its shape has", inputs=[_TENSOR], raw_input_contents=[bytes(4)]),
    _grpc("a shape of 2^62 by 2^62", inputs=[_TENSOR | {"shape": [1 << 62, 1 << 62]}], raw_input_contents=[bytes(8)]),
    _grpc("more contents than inputs", inputs=[_TENSOR], raw_input_contents=[bytes(8)] * 1000),
    _grpc("texts whose lengths lie", inputs=[_TENSOR | {"datatype": "BYTES"}], raw_input_contents=[b"\xff" * 8]),
    _attack("gRPC: a message that is none", "INVALID_ARGUMENT", _garbage(b"\xff" * 1000)),
    _attack("gRPC: a field of 2^60 bytes", "INVALID_ARGUMENT", _garbage(b"\x0a" + b"\xff" * 8 + b"\x0f")),
    _attack("gRPC: groups in groups, 10,000 deep", "INVALID_ARGUMENT", _garbage(b"\x2b" * 10_000)),
    _attack("gRPC: 100 KB of metadata", "refused", _metadata),
    _attack("control characters for the gateway's log", "one line of letters each", _crlf),
)
