"""What a person's script must not reach: files, processes, variables, and life after its job."""

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.attack.attack import REFUSED, Attack, from_inside
from tests.attack.target import Target

from pliant.control.jobs.orders import job_token
from pliant.core.job import JobId

PLANTED_VARIABLE: Final = "ATTACK_CLOUD_KEY"
"""In the environment that the server is started with; set before that."""

READING: Final = (
    "the server's token",
    "the server's secret",
    "the server's pliant.db",
    "another's result",
    "another's code",
    "another's temporary file",
    "another's shared memory",
    "a list of the server's folder",
    "a list of the jobs",
    "a list of another's folder",
    "through a link of its own",
    "through a hard link of its own",
    "by moving it here",
    "upwards from its own folder",
    "by a descriptor without rights, opened again",
    "through the server's root folder",
    "through another task's working folder",
    "/proc/PID/environ",
    "/proc/PID/maps",
    "/proc/PID/mem",
    "/proc/PID/fd",
)
PLANTED_FILES: Final = {"a file in the server's folder": "home", "a file in another's folder": "victim_folder"}
WORK: Final = (
    "a file of its result",
    "a file moved from its result to its log",
    "a temporary file",
    "a program",
    "a connection with itself",
    "a name looked up",
    "a DataLoader with workers, by files",
    "a DataLoader with workers, by descriptors",
    "memory shared with a child",
    "its own priority and processors",
    "its own limits",
    "threads that are told their processors",
    "modes and times of its own files",
    "its own name, and its turn to be ended",
    "devices and terminals",
)
ACTS: Final = (
    "a signal",
    "a signal by descriptor",
    "tracing",
    "reading memory",
    "another priority",
    "other processors",
    "other limits",
    "an earlier end when memory runs out",
)
BELONGINGS: Final = (
    *(
        f"the {what} of a {of} that everybody may read"
        for what in ("mode", "time", "attribute")
        for of in ("file", "folder")
    ),
    "a named socket of a service",
    "a terminal of the user's",
    "a key of the user's keyring",
    "a key of the session's keyring",
    "shared memory of System V, read",
    "shared memory of System V, removed",
    "semaphores of System V, removed",
    "messages of System V, removed",
    "limits of the server, by a number of x32",
    "limits of the server, by a number with more bits",
)
WHOSE: Final = ("the server", "the zygote", "another's task")
MEMORY: Final = (
    "variables of the server",
    "variables of the server's start, as the kernel shows them",
    "tokens of other jobs, and the server's key, in its memory",
    "descriptors that it was left",
)
WAYS: Final = (
    "a child",
    "a session of its own",
    "two forks",
    "two forks and no environment",
    "a process that stands still",
    "a process that hears no signal",
)


def plant_variable() -> None:
    """Put a key into this environment, as a person does who starts the server beside a cloud's tools."""
    os.environ[PLANTED_VARIABLE] = secrets.token_hex(32)


def _in_memory(name: str) -> Callable[[Target], str]:
    def seen(target: Target) -> str:
        return target.seen_inside("environment.py", name, hashes(target))

    return seen


def hashes(target: Target, job_id: str = "") -> dict[str, str]:
    """Return what a script knows a secret by that it has found; it is not told the secret.

    Args:
        job_id: whose token is meant; empty: that of Ada's training.
    """
    secret = (target.home / "secret").read_bytes()
    return {
        "token_hash": _sha256(job_token(secret, JobId(job_id or target.victim))),
        "key_hash": _sha256(os.environ[PLANTED_VARIABLE]),
    }


def _belonging(name: str) -> Callable[[Target], str]:
    return lambda target: target.seen_inside("belongings.py", name, {"outside": target.belongings.facts()})


def _left(name: str, place: str) -> Callable[[Target], str]:
    """Return what lets the script write there, and says whether it is there: it may have written in a cover of it."""

    def seen(target: Target) -> str:
        said = target.seen_inside("reading.py", name)
        there = (Path(target.facts()[place]) / "planted").exists()
        return "it is there" if there else "nothing" if said in (REFUSED, "written") else said

    return seen


def _outlives(name: str, number: int) -> Callable[[Target], str]:
    def seen(target: Target) -> str:
        seconds = 5_000_000 + target.server_pid
        begun = target.seen_inside("outliving.py", name, {"seconds": seconds})
        if begun != "begun":
            return begun
        ended = target.becomes(lambda: not sleepers(f"{seconds}.{number}"), timeout_s=10.0)
        for pid in (left := sleepers(f"{seconds}.{number}")):
            os.kill(pid, 9)
        return "has ended" if ended else f"lives on, as {left}"

    return seen


def sleepers(argument: str) -> list[int]:
    """Return the processes that have this argument."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if argument.encode() in line.read_bytes().split(b"\0"):
                found.append(int(line.parent.name))
    return found


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


ATTACKS: Final = (
    *from_inside("read by path", "reading.py", dict.fromkeys(READING, REFUSED)),
    *(
        Attack(group="read by path", name=f"{name}, as the server sees it", expected="nothing", play=_left(name, place))
        for name, place in PLANTED_FILES.items()
    ),
    *from_inside("processes", "processes.py", {f"{act}: {who}": REFUSED for act in ACTS for who in WHOSE}),
    *(Attack(group="belongings", name=name, expected=REFUSED, play=_belonging(name)) for name in BELONGINGS),
    *from_inside("must work", "working.py", dict.fromkeys(WORK, "works")),
    *(Attack(group="environment", name=name, expected="nothing", play=_in_memory(name)) for name in MEMORY),
    *(
        Attack(group="outlive", name=name, expected="has ended", play=_outlives(name, number))
        for number, name in enumerate(WAYS, start=1)
    ),
)
