"""A process keeps what it has freed, unless its environment says otherwise; counted in pages that are new to it."""

import json
import os
import subprocess
import sys

import pytest

BYTES = 3 * (8 << 20)
SCRIPT = f"""
import ctypes, json, resource, sys
from pliant.entry.heap import keep_freed_memory
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: where all memory lies in large pages, few are new
if said := sys.argv[1:]:
    keep_freed_memory(json.loads(said[0]))

def blocks():
    three = [bytearray({BYTES // 3}) for _ in range(3)]
    for block in three:
        block[::4096] = bytes(len(block[::4096]))

for _ in range(3):
    blocks()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
blocks()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
ALL_PAGES = BYTES // os.sysconf("SC_PAGE_SIZE")


def new_pages(env: dict[str, str] | None) -> int:
    """Return how many pages are new when blocks are made again that were made and freed before.

    Args:
        env: what the process is told of its environment, as a fork is, whose library has not looked there; None if it
            keeps nothing.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    argv = [sys.executable, "-c", SCRIPT, *([] if env is None else [json.dumps(env)])]
    done = subprocess.run(argv, env=own, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_freed_memory_is_kept() -> None:
    assert new_pages(None) > ALL_PAGES // 2
    assert new_pages({}) < ALL_PAGES // 100


@pytest.mark.parametrize(
    "said",
    [
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
        {"MALLOC_MMAP_THRESHOLD_": "131072"},
        {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"},
    ],
    ids=lambda said: next(iter(said)),
)
def test_what_the_environment_says_counts(said: dict[str, str]) -> None:
    assert new_pages(said) > ALL_PAGES // 2


def test_what_is_no_number_is_as_if_it_were_not_said() -> None:
    assert new_pages({"MALLOC_TRIM_THRESHOLD_": "much"}) < ALL_PAGES // 100
