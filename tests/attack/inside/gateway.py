"""Talks to the gateway's socket of kernels, which everybody may connect to: as another's kernel, as many, as none."""

import json
import os
import select
import socket
import struct
import time
from typing import Any

from probe import Facts, play, probe

HELLO, READY, RESULT, PART, RETURN, PONG, WELCOME, REQUEST = 1, 2, 3, 4, 5, 7, 16, 17
HELLO_S = 14.0
"""More than a stranger has to say who it is."""
MAX_UNASKED = 1000


def frame(kind: int, header: Any, body: bytes = b"", *, num_body: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("!IBI", len(text) + (len(body) if num_body is None else num_body), kind, len(text)) + text + body


def connect(facts: Facts) -> socket.socket:
    folder = os.open(os.path.dirname(facts["socket"]), os.O_PATH)
    channel = socket.socket(socket.AF_UNIX)
    try:
        channel.connect(f"/proc/self/fd/{folder}/{os.path.basename(facts['socket'])}")
    except OSError:
        channel.close()
        raise
    finally:
        os.close(folder)
    return channel


def sibling(facts: Facts, number: int) -> socket.socket:
    """Return a connection as a kernel of one's own job that there is not: the token of the job is enough for that."""
    channel = connect(facts)
    task = f"{facts['own_task'].rpartition('.')[0]}.{900_000 + number}"
    channel.sendall(frame(HELLO, {"task": task, "token": facts["own_token"]}))
    channel.settimeout(HELLO_S)
    if not channel.recv(1 << 16):
        raise ConnectionRefusedError
    return channel


def first_words(facts: Facts) -> dict[str, bytes]:
    """Return what a stranger says first, by its name; none of it shows that it is a kernel of a job."""
    adas, own, token = facts["adas_task"], facts["own_task"], facts["own_token"]

    def hello(task: Any, shown: Any) -> bytes:
        return frame(HELLO, {"task": task, "token": shown})

    return {
        "the place of another's kernel, with its own token": hello(adas, token),
        "the place of another's kernel, without a token": hello(adas, ""),
        "the place of another's kernel, with a token that is a list": hello(adas, [token]),
        "the place of another's kernel, with half a letter as its token": hello(adas, "\ud800"),
        "another's job, by a task that begins as its own": hello(f"{own}.{adas}", token),
        "its own job, with its token cut short": hello(own, token[:-1]),
        "a job that is not there": hello("job-999.1", token),
        "a task that is a path": hello("../../token", token),
        "a task with a line feed and an escape": hello(f"{adas}\n\x1b[31m", token),
        "a task of 40 digits": hello(f"job-{'9' * 40}.1", token),
        "a request in the place of its name": frame(REQUEST, {"id": 1, "api": "v2"}),
        "an answer in the place of its name": frame(RESULT, {"id": 1, "status": 200}, b"{}"),
        "a frame of 4 GiB": struct.pack("!IBI", 0xFFFFFFFF, HELLO, 10),
        "a header longer than its frame": struct.pack("!IBI", 4, HELLO, 4000) + b"{}{}",
        "a header that is no object": frame(HELLO, [1]),
        "a header, nested 2,000 deep": frame(HELLO, b"[" * 2000),
        "a kind that there is not": frame(255, {}),
        "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "nothing": b"",
    }


_heard: dict[str, str] = {}


def listen(facts: Facts) -> None:
    """Say all of it at once, and wait until the gateway has closed every connection, or has said something."""
    open_now = {}
    for name, said in first_words(facts).items():
        channel = connect(facts)
        channel.sendall(said)
        open_now[channel.fileno()] = (name, channel)
    end = time.monotonic() + HELLO_S
    while open_now and time.monotonic() < end:
        for number in select.select(list(open_now), (), (), 0.5)[0]:
            name, channel = open_now.pop(number)
            try:
                answer = channel.recv(1 << 16)
            except ConnectionResetError:
                answer = b""
            _heard[name] = f"was answered {answer[:60]!r}" if answer else "refused"
            channel.close()
    for name, channel in open_now.values():
        _heard[name] = "held open"
        channel.close()


def register(name: str) -> None:
    @probe(f"to the gateway: {name}")
    def hear(facts: Facts) -> str:
        if not _heard:
            listen(facts)
        return _heard[name]


BAD: dict[str, list[bytes]] = {
    "READY with a body": [frame(READY, {}, b"x")],
    "what only a gateway says": [frame(WELCOME, {})],
    "a request": [frame(REQUEST, {"id": 1, "api": "v2"})],
    "requests handed back before it leaves": [frame(RETURN, {"ids": [1]})],
    "an answer whose number is a text": [frame(RESULT, {"id": "1"}, b"x")],
    "an answer whose number has 5,000 digits": [frame(RESULT, b'{"id": ' + b"9" * 5000 + b"}")],
    "an answer of 300 MiB, announced": [frame(RESULT, {"id": 1}, num_body=300 << 20)],
    "a header of 2 MiB": [frame(RESULT, b"{" + b" " * (2 << 20) + b"}")],
    "1,001 answers that nobody has asked for": [frame(RESULT, {"id": -number}) for number in range(MAX_UNASKED + 1)],
    "1,001 signs of life": [frame(PONG, {})] * (MAX_UNASKED + 1),
    "1,002 times that it is ready": [frame(READY, {})] * (MAX_UNASKED + 2),
}


def send_bad(number: int, frames: list[bytes]) -> Any:
    def act(facts: Facts) -> str:
        with sibling(facts, number) as channel:
            try:
                for one in frames:
                    channel.sendall(one)
                while channel.recv(1 << 16):
                    pass
            except ConnectionError:
                return "cut off"
            except TimeoutError:
                return "borne"
        return "cut off"

    return act


@probe("answers to the requests of others, by their numbers")
def answer_others(facts: Facts) -> str:
    with sibling(facts, 100) as channel:
        for number in range(facts["num_answers"]):
            header = {"id": number, "status": 200, "type": "application/json"}
            channel.sendall(frame((PART, RESULT)[number % 2], header, b'{"value": "a lie"}'))
        time.sleep(0.2)  # so that the gateway reads before it is gone
    return "sent"


@probe("a flood of connections to the gateway's socket, for three seconds")
def flood(facts: Facts) -> str:
    held: list[socket.socket] = []
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        try:
            held.append(connect(facts))
        except OSError:
            time.sleep(0.01)  # its backlog is full
        while len(held) > 1500:
            held.pop(0).close()
    for channel in held:
        channel.close()
    return "done"


@probe("a flood of frames, for three seconds")
def flood_frames(facts: Facts) -> str:
    end, number = time.monotonic() + 3.0, 200
    piece = frame(PONG, {}) * 500 + frame(RESULT, {"id": 0}, bytes(1 << 20)) * 8
    while time.monotonic() < end:
        number += 1
        try:
            with sibling(facts, number) as channel:
                channel.sendall(piece)
        except OSError:
            continue
    return "done"


@probe("as many kernels of its own as the gateway takes")
def many_kernels(facts: Facts) -> str:
    held: list[socket.socket] = []
    try:
        while len(held) < facts["most_kernels"]:
            channel = connect(facts)
            held.append(channel)
            task = f"{facts['own_task'].rpartition('.')[0]}.{1_000_000 + len(held)}"
            channel.sendall(frame(HELLO, {"task": task, "token": facts["own_token"]}))
        time.sleep(HELLO_S)  # who is not let in by then is closed
        held = [channel for channel in held if lives(channel)]
        return f"{len(held)} taken"
    finally:
        for channel in held:
            channel.close()


def lives(channel: socket.socket) -> bool:
    channel.setblocking(False)
    try:
        return bool(channel.recv(1 << 16))
    except BlockingIOError:
        return True
    except OSError:
        return False


for _name in first_words({"adas_task": "", "own_task": "", "own_token": ""}):
    register(_name)
for _number, (_name, _frames) in enumerate(BAD.items()):
    probe(f"from a kernel: {_name}")(send_bad(_number, _frames))

play()
