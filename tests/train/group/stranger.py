"""A process of somebody else on the host, which knows every port and no key.

    python stranger.py UID HOW PORT…      UID: `-`, or the user to become

It says what it has done in one line of JSON on its standard output. `flood` says it once it has begun, and ends with
its standard input.
"""

import contextlib
import errno
import json
import os
import select
import socket
import sys

WAIT_S = 1.0
KINDS = (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, bytes(1 << 16), b"\0\0\0\x0c\0\0\0\x08pliant 1")


def frame(*parts: bytes) -> bytes:
    body = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return len(body).to_bytes(4, "big") + body


def ask(port: int, sent: bytes) -> str:
    """Send something and return, in hex, all that is answered; why there is no answer otherwise."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
            connection.sendall(sent)
            answer = b""
            while data := connection.recv(1 << 16):
                answer += data
            return answer.hex()
    except TimeoutError:
        return "timed out"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))


def talk(ports: list[int]) -> None:
    """Say what a member said before it had to prove anything, and nonsense."""
    keys = [b"job-1/1/member/0", b"job-1/1/member/1", b"member/0", b"member/1", b"0", b"1"]
    said = [frame(b"get", key) for key in keys]
    said += [frame(b"set", key, b'["", "[\\"127.0.0.1\\", 9, \\"00\\"]"]') + frame(b"done") for key in keys]
    said += [bytes(20) + (3).to_bytes(8, "big") + b"bad", *KINDS[1:]]
    print(json.dumps([ask(port, one) for port in ports for one in said]))


def knock(ports: list[int]) -> None:
    """Say nothing but HTTP."""
    print(json.dumps([ask(port, KINDS[1]) for port in ports]))


def replay(ports: list[int]) -> None:
    """Say, word by word, what a member was heard to say."""
    words = [bytes.fromhex(word) for word in json.loads(sys.stdin.readline())]
    (port,) = ports
    heard = []
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        for word in words:
            try:
                connection.sendall(word)
                heard.append(connection.recv(1 << 16).hex())
            except OSError as error:
                heard.append(errno.errorcode.get(error.errno or 0, repr(error)))
    print(json.dumps(heard))


def flood(ports: list[int]) -> None:
    """Open connections as fast as this process can, and keep the newest few hundred; most say nothing that is whole."""
    held: list[socket.socket] = []
    num, told = 0, False
    while not select.select([sys.stdin], [], [], 0)[0]:
        for port in ports:
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
            with contextlib.suppress(OSError):
                connection.send(KINDS[num % len(KINDS)])
            held.append(connection)
            num += 1
        while len(held) > 400:
            held.pop(0).close()
        if num > 400 and not told:
            print(json.dumps("flooding"), flush=True)
            told = True
    print(json.dumps(num), flush=True)


if __name__ == "__main__":
    user, how, *rest = sys.argv[1:]
    "127.0.0.1".encode("idna")  # the module is read from a folder that another user may not be allowed to read
    if user != "-":
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    {"knock": knock, "talk": talk, "replay": replay, "flood": flood}[how]([int(port) for port in rest])
