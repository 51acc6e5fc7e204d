"""A task's large tensors lie in large pages, and what it has freed is kept, unless its job says otherwise."""

from pathlib import Path

import pytest
from tests.e2e.pool import Pool

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LOOKS = """
import ctypes
import resource
import torch
large = torch.ones(16 << 20)  # 64 MiB
inside = large.data_ptr() + (32 << 20)
with open("/proc/self/smaps") as maps:
    for line in maps:
        first, *rest = line.split()
        if "-" in first:
            begin, end = (int(address, 16) for address in first.split("-"))
        elif first == "VmFlags:" and begin <= inside < end:
            print("asked" if "hg" in rest else "did not ask")

ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: where all memory lies in large pages, few are new

def small():
    [torch.ones(256 << 10) for _ in range(24)]  # 1 MiB each, below what lies in large pages

for _ in range(3):
    small()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
small()
new = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print("kept" if new < 100 else "gave back")
"""
"""The flag hg of a mapping says that large pages were asked for there, whether the machine gives any or not."""


def looked(pool: Pool, client: Client, folder: Path, *options: str) -> list[str]:
    """Return what a task found, in words."""
    script = folder / "looks.py"
    script.write_text(LOOKS)
    job_id = pool.submit(script, "--fixed", "1", *options)
    job = client.wait(job_id, timeout_s=60)
    assert job.state == "completed", job.reason
    return pool.cli("logs", job_id, "--stream", "stdout").splitlines()


def test_large_tensors_lie_in_large_pages_and_what_is_freed_is_kept(pool: Pool, client: Client, tmp_path: Path) -> None:
    assert looked(pool, client, tmp_path) == ["asked", "kept"]


def test_a_job_may_have_it_otherwise(pool: Pool, client: Client, tmp_path: Path) -> None:
    otherwise = ("--env", "THP_MEM_ALLOC_ENABLE=0", "--env", "MALLOC_MMAP_THRESHOLD_=131072")
    assert looked(pool, client, tmp_path, *otherwise) == ["did not ask", "gave back"]
