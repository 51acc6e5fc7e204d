"""Searches its own process for what the server was started with and what other jobs were given."""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress

from probe import Facts, play, probe

TOKEN = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def memory() -> Iterator[bytes]:
    """Yield the parts of this process's memory that it can write."""
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as mem:
        for line in maps.readlines():
            bounds, modes = line.split()[:2]
            if not modes.startswith("rw") or line.rstrip().endswith("[vvar]"):
                continue
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            with suppress(OSError, ValueError, OverflowError):
                mem.seek(begin)
                yield mem.read(min(end - begin, 1 << 28))


def sha256(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


@probe("variables of the server")
def variables(facts: Facts) -> str:
    found = [name for name, value in os.environ.items() if sha256(value.encode()) == facts["key_hash"]]
    return f"found {found[0]}" if found else "nothing"


@probe("variables of the server's start, as the kernel shows them")
def first_variables(facts: Facts) -> str:
    with open("/proc/self/environ", "rb") as file:
        found = [each for each in file.read().split(b"\0") if sha256(each.partition(b"=")[2]) == facts["key_hash"]]
    return f"found {found[0].decode()}" if found else "nothing"


@probe("tokens of other jobs, and the server's key, in its memory")
def remembered(facts: Facts) -> str:
    wanted = {facts["token_hash"]: "the token of another job", facts["key_hash"]: "a variable of the server"}
    for part in memory():
        for match in TOKEN.finditer(part):
            if what := wanted.get(sha256(match.group())):
                return f"found {what}"
    return "nothing"


@probe("descriptors that it was left")
def descriptors(facts: Facts) -> str:
    own = os.path.dirname(os.environ["RESULT_DIR"])
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if target.startswith(facts["home"]) and not target.startswith(own):
                found.append(target.removeprefix(facts["home"]))
    return f"found {found[0]}" if found else "nothing"


play()
