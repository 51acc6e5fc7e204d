"""Lays hands on what belongs to the server's user and is neither a file that it may read nor a process."""

import ctypes
import os
import socket
from collections.abc import Callable

from probe import Facts, play, probe

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_NUMBERS = {
    "x86_64": {"add_key": 248, "keyctl": 250, "shmat": 30, "shmctl": 31, "semctl": 66, "msgctl": 71, "prlimit64": 302},
    "aarch64": {
        "add_key": 217,
        "keyctl": 219,
        "shmat": 196,
        "shmctl": 195,
        "semctl": 191,
        "msgctl": 187,
        "prlimit64": 261,
    },
}
_NUMBER = _NUMBERS[os.uname().machine]
_SEARCH, _READ, _USER_KEYRING, _SESSION_KEYRING = 10, 11, -4, -3
_X32 = 0x40000000


def call(number: int, *arguments: object) -> int:
    made = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if made == -1:
        raise OSError(ctypes.get_errno(), "")
    return made


def change_mode(path: str) -> str:
    os.chmod(path, 0o777)
    return "changed"


def change_time(path: str) -> str:
    os.utime(path, (0, 0))
    return "changed"


def change_attribute(path: str) -> str:
    os.setxattr(path, "user.planted", b"x")
    return "changed"


for _name, _change in (("mode", change_mode), ("time", change_time), ("attribute", change_attribute)):
    for _what, _where in (("file", "file"), ("folder", "folder")):

        def act(facts: Facts, change: Callable[[str], str] = _change, where: str = _where) -> str:
            return change(facts["outside"][where])

        probe(f"the {_name} of a {_what} that everybody may read")(act)


@probe("a named socket of a service")
def connect(facts: Facts) -> str:
    with socket.socket(socket.AF_UNIX) as service:
        service.connect(facts["outside"]["socket"])
        return f"heard {service.recv(16).decode()}"


@probe("a terminal of the user's")
def write_to_terminal(facts: Facts) -> str:
    with open(facts["outside"]["terminal"], "r+b", buffering=0) as terminal:
        terminal.write(b"hello")
    return "written"


def read_key(keyring: int, description: str) -> str:
    found = call(
        _NUMBER["keyctl"],
        ctypes.c_long(_SEARCH),
        ctypes.c_long(keyring),
        ctypes.c_char_p(b"user"),
        ctypes.c_char_p(description.encode()),
        ctypes.c_long(0),
    )
    taken = ctypes.create_string_buffer(64)
    call(_NUMBER["keyctl"], ctypes.c_long(_READ), ctypes.c_long(found), taken, ctypes.c_long(64))
    return f"read {taken.value.decode()}"


@probe("a key of the user's keyring")
def of_user(facts: Facts) -> str:
    return read_key(_USER_KEYRING, facts["outside"]["key"])


@probe("a key of the session's keyring")
def of_session(facts: Facts) -> str:
    return read_key(_SESSION_KEYRING, facts["outside"]["key"])


@probe("shared memory of System V, read")
def attach(facts: Facts) -> str:
    place = call(_NUMBER["shmat"], ctypes.c_long(facts["outside"]["shared_memory"]), None, ctypes.c_long(0o10000))
    return f"read {ctypes.string_at(place).decode()}"


def removed(name: str, what: str, number_of_arguments: int) -> None:
    @probe(f"{what} of System V, removed")
    def remove(facts: Facts) -> str:
        key = what.replace(" ", "_")
        call(_NUMBER[name], ctypes.c_long(facts["outside"][key]), *(ctypes.c_long(0),) * number_of_arguments)
        return "removed"


removed("semctl", "semaphores", 2)
removed("msgctl", "messages", 1)
removed("shmctl", "shared memory", 1)


@probe("limits of the server, by a number of x32")
def by_x32(facts: Facts) -> str:
    limits = (ctypes.c_uint64 * 2)(0, 0)
    number = _NUMBER["prlimit64"] | _X32
    call(number, ctypes.c_long(facts["server"]), ctypes.c_long(4), ctypes.byref(limits), None)
    return "limited"


@probe("limits of the server, by a number with more bits")
def by_upper_half(facts: Facts) -> str:
    limits = (ctypes.c_uint64 * 2)(0, 0)
    call(_NUMBER["prlimit64"], ctypes.c_long(facts["server"] | 1 << 40), ctypes.c_long(4), ctypes.byref(limits), None)
    return "limited"


play()
