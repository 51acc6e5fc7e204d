"""What a filtered process cannot call: about others of the same user, and about what would outlive it."""

import ctypes
import errno
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from pliant.isolation.call_filter import Architecture, architecture, program

X86: Final = Architecture(audit=0xC000003E, column=0, has_x32=True)
ARM: Final = Architecture(audit=0xC00000B7, column=1)
OWN: Final = 4711
ALLOWED: Final = "allowed"
TRIES: Final = """
import ctypes, errno, json, os, resource, sys, threading
from pliant.isolation.call_filter import architecture, refuse_calls
from pliant.isolation.system_calls import refuse_new_privileges

victim, filtered = int(sys.argv[1]), sys.argv[2] != "open"
own, libc = os.getpid(), ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
if filtered:
    refuse_new_privileges()
    assert refuse_calls(shares_user=sys.argv[2] == "filtered", leads_session=sys.argv[3] == "leads")

def tried(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def call(*arguments):
    if libc.syscall(*map(ctypes.c_long, arguments)) == -1:
        raise OSError(ctypes.get_errno(), "")

def made_and_removed(get, control, *arguments):
    made = libc.syscall(*map(ctypes.c_long, (get, 0, *arguments)))
    if made == -1:
        raise OSError(ctypes.get_errno(), "")
    call(control, made, 0, 0)  # IPC_RMID

def queue():
    opened = libc.mq_open(b"/pliant-test", os.O_RDWR | os.O_CREAT, 0o600, None)
    if opened == -1:
        raise OSError(ctypes.get_errno(), "")
    os.close(opened)
    libc.mq_unlink(b"/pliant-test")

def pinned():
    before = os.sched_getaffinity(victim)
    os.sched_setaffinity(victim, {min(before)})
    return "done" if len(before) == 1 or os.sched_getaffinity(victim) != before else "without effect"

def pin_thread():
    mask = ctypes.c_ulong(1 << min(os.sched_getaffinity(0)))
    number = libc.pthread_setaffinity_np(ctypes.c_ulong(threading.get_ident()), 8, ctypes.byref(mask))
    if number:
        raise OSError(number, "")

def keep_policy_of_thread():
    number = libc.pthread_setschedparam(ctypes.c_ulong(threading.get_ident()), os.SCHED_OTHER, bytes(4))
    if number:
        raise OSError(number, "")

def in_a_thread(act):
    found = []
    thread = threading.Thread(target=lambda: found.append(tried(act)))
    thread.start()
    thread.join()
    return found[0]

core = resource.RLIMIT_CORE
limits = resource.getrlimit(core)
scheduler = os.sched_param(0)
kept = [ctypes.create_string_buffer(b"\\x30" + bytes(15) + b"\\x01", 48), ctypes.create_string_buffer(16)]
attributes, zeros = map(ctypes.addressof, kept)
number = architecture().number
ioprio_set, sched_setattr, prlimit64, keyctl = map(number, ("ioprio_set", "sched_setattr", "prlimit64", "keyctl"))
shmget, shmctl, semget, semctl = map(number, ("shmget", "shmctl", "semget", "semctl"))
msgget, msgctl = map(number, ("msgget", "msgctl"))
idle = 3 << 13
nobody_at_all = 2_000_000_000  # never 0: without the filter that would change every process of this user
print(json.dumps({
    "its priority": tried(lambda: os.setpriority(os.PRIO_PROCESS, victim, 1)),
    "priority of all of a user": tried(lambda: os.setpriority(os.PRIO_USER, nobody_at_all, 5)),
    "priority of its group": tried(lambda: os.setpriority(os.PRIO_PGRP, os.getpgid(victim), 1)),
    "its turns at the disk": tried(lambda: call(ioprio_set, 1, victim, idle)),
    "its scheduler": tried(lambda: os.sched_setscheduler(victim, os.SCHED_BATCH, scheduler)),
    "its scheduler, the usual one": tried(lambda: os.sched_setscheduler(victim, os.SCHED_OTHER, scheduler)),
    "its parameters": tried(lambda: os.sched_setparam(victim, scheduler)),
    "its attributes": tried(lambda: call(sched_setattr, victim, attributes, 0)),
    "its limits": tried(lambda: resource.prlimit(victim, core, (0, 0))),
    "its limits, by a number with more bits": tried(lambda: call(prlimit64, victim | 1 << 40, core, zeros, 0)),
    "its processors": pinned(),
    "the keyring of the session": tried(lambda: call(keyctl, 0, -3, 1)),
    "shared memory of System V": tried(lambda: made_and_removed(shmget, shmctl, 4096, 0o600)),
    "semaphores of System V": tried(lambda: made_and_removed(semget, semctl, 1, 0o600)),
    "messages of System V": tried(lambda: made_and_removed(msgget, msgctl, 0o600)),
    "a queue of messages": tried(queue),
    "limits that are read": tried(lambda: resource.prlimit(victim, core)),
    "own priority": tried(lambda: os.nice(1)),
    "own priority, by number": tried(lambda: os.setpriority(os.PRIO_PROCESS, own, 5)),
    "own group": tried(lambda: os.setpriority(os.PRIO_PGRP, 0, 6)),
    "own turns at the disk": tried(lambda: call(ioprio_set, 1, 0, idle)),
    "own scheduler": tried(lambda: os.sched_setscheduler(0, os.SCHED_BATCH, scheduler)),
    "own limits": tried(lambda: resource.setrlimit(core, limits)),
    "own limits, by number": tried(lambda: resource.prlimit(own, core, limits)),
    "own processors": tried(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
    "processors of a thread": in_a_thread(pin_thread),
    "policy of a thread": in_a_thread(keep_policy_of_thread),
}))
"""
STRANGERS: Final = (
    *("its priority", "priority of all of a user", "priority of its group", "its turns at the disk"),
    *("its scheduler", "its parameters", "its attributes", "its limits", "its limits, by a number with more bits"),
)
UNKNOWN: Final = (
    *("the keyring of the session", "shared memory of System V", "semaphores of System V", "messages of System V"),
    "a queue of messages",
)
OWN_CALLS: Final = (
    *("limits that are read", "own priority", "own priority, by number", "own group", "own turns at the disk"),
    *("own scheduler", "own limits", "own limits, by number", "own processors", "processors of a thread"),
    "policy of a thread",
)

needs_filter = pytest.mark.skipif(architecture() is None, reason="the filter has no numbers for this processor")


@pytest.fixture
def victim() -> Iterator[int]:
    command = [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def tries(victim: int, *how: str) -> dict[str, str]:
    command = [sys.executable, "-X", "faulthandler", "-c", TRIES, str(victim), *how]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, start_new_session=True)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, str] = json.loads(ran.stdout)
    return found


@needs_filter
def test_calls_about_others_are_refused_and_those_about_itself_are_not(victim: int) -> None:
    os.sched_setscheduler(victim, os.SCHED_BATCH, os.sched_param(0))
    found = tries(victim, "filtered", "leads")

    assert {name: found[name] for name in STRANGERS} == dict.fromkeys(STRANGERS, "EPERM")
    assert {name: found[name] for name in OWN_CALLS} == dict.fromkeys(OWN_CALLS, "done")
    assert found["its scheduler, the usual one"] == "done"
    assert os.sched_getscheduler(victim) == os.SCHED_BATCH, "and nothing has happened"
    assert found["its processors"] == "without effect" or len(os.sched_getaffinity(victim)) == 1
    assert {name: found[name] for name in UNKNOWN} == dict.fromkeys(UNKNOWN, "ENOSYS")


@needs_filter
def test_without_the_filter_the_same_calls_succeed(victim: int) -> None:
    found = tries(victim, "open", "leads")

    assert found.pop("priority of all of a user") == "ESRCH", "the kernel has looked for them"
    assert {name: what for name, what in found.items() if what != "done"} == {}


@needs_filter
def test_a_process_of_its_own_user_lacks_only_what_would_outlive_it_and_keys(victim: int) -> None:
    found = tries(victim, "of its own user", "leads")

    assert found.pop("priority of all of a user") == "ESRCH"
    assert {name: what for name, what in found.items() if what != "done"} == dict.fromkeys(UNKNOWN, "ENOSYS")


@needs_filter
def test_a_process_whose_group_may_hold_others_cannot_change_the_priority_of_its_group(victim: int) -> None:
    found = tries(victim, "filtered", "follows")

    assert found["own group"] == "EPERM"
    assert found["own priority"] == "done"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="there are i386 and x32 on x86_64 alone")
def test_numbers_of_other_architectures_are_no_way_around() -> None:
    """What the kernel calls in the end is the same function, by another number."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(0x40000000 | 39) in (-1, os.getpid())
    answers = {number: answer(X86, number) for number in (39, 0x40000000 | 39, 0x40000000 | 141, 0x40000000 | 302)}

    assert answers == {39: ALLOWED} | dict.fromkeys(list(answers)[1:], "ENOSYS")


@pytest.mark.parametrize("here", [X86, ARM], ids=["x86_64", "aarch64"])
@pytest.mark.parametrize("audit", [0x40000003, 0x40000028, 0xC00000F3], ids=["i386", "arm", "riscv64"])
def test_every_call_of_another_architecture_is_unknown(here: Architecture, audit: int) -> None:
    assert {answer(here, number, audit=audit) for number in range(500)} == {"ENOSYS"}


@pytest.mark.parametrize("here", [X86, ARM], ids=["x86_64", "aarch64"])
def test_upper_halves_of_process_numbers_change_nothing(here: Architecture) -> None:
    """The kernel ignores them, so they must neither hide a stranger nor make one of oneself."""
    above = 1 << 40
    limits = here.number("prlimit64")

    assert answer(here, limits, 99 | above, 4, 1) == "EPERM"
    assert answer(here, limits, OWN | above, 4, 1) == ALLOWED
    assert answer(here, limits, above, 4, 1) == ALLOWED
    assert answer(here, limits, 99, 4, above) == "EPERM", "a pointer has 64 bits"
    assert answer(here, limits, 99, 4, 0) == ALLOWED
    assert answer(here, here.number("setpriority"), 2 | above, 0, 1) == "EPERM"


@pytest.mark.parametrize("here", [X86, ARM], ids=["x86_64", "aarch64"])
def test_what_is_not_in_the_table_is_allowed_whatever_its_arguments(here: Architecture) -> None:
    """Known to the kernel in advance, so that it costs nothing: no argument is looked at."""
    unknown = {*("shmget", "shmctl", "shmat", "semget", "semctl", "semop", "semtimedop")}
    unknown |= {*("msgget", "msgctl", "msgsnd", "msgrcv", "mq_open", "mq_unlink", "keyctl", "add_key", "request_key")}
    watched = {*("setpriority", "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr")}
    watched |= {"sched_setaffinity", "prlimit64"}
    listed = {here.number(name) for name in unknown | watched}

    assert {number for number in range(500) if answer(here, number, 99, 99, 99) != ALLOWED} == listed


def answer(here: Architecture, number: int, *arguments: int, audit: int | None = None) -> str:
    """Return what the filter of process 4711 answers, as the kernel's machine would work it out."""
    given = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("<IIQ6Q", number, here.audit if audit is None else audit, 0, *given)
    code = program(here, OWN, leads_session=True)
    loaded, at = 0, 0
    while True:
        kind, if_so, if_not, value = code[at]
        at += 1
        if kind == 0x20:
            loaded = struct.unpack_from("<I", data, value)[0]
        elif kind == 0x06:
            return _in_words(value)
        else:
            at += if_so if (loaded == value if kind == 0x15 else loaded >= value) else if_not


def _in_words(value: int) -> str:
    if value == 0x7FFF0000:
        return ALLOWED
    assert value >> 16 == 5
    return errno.errorcode[value & 0xFFFF] if value & 0xFFFF else "success"
