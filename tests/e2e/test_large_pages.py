"""Torch asks the kernel for large pages for a task's large tensors, unless its job says otherwise."""

from pathlib import Path

import pytest
from tests.e2e.pool import Pool

from pliant.client import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

LOOKS = """
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
"""
"""The flag hg of a mapping says that large pages were asked for there, whether the machine gives any or not."""


def looked(pool: Pool, client: Client, folder: Path, *options: str) -> str:
    """Return whether large pages were asked for in a task, in words."""
    script = folder / "looks.py"
    script.write_text(LOOKS)
    job_id = pool.submit(script, "--fixed", "1", *options)
    job = client.wait(job_id, timeout_s=60)
    assert job.state == "completed", job.reason
    return pool.cli("logs", job_id, "--stream", "stdout").strip()


def test_a_tasks_large_tensors_lie_in_large_pages(pool: Pool, client: Client, tmp_path: Path) -> None:
    assert looked(pool, client, tmp_path) == "asked"


def test_a_job_may_have_it_otherwise(pool: Pool, client: Client, tmp_path: Path) -> None:
    assert looked(pool, client, tmp_path, "--env", "THP_MEM_ALLOC_ENABLE=0") == "did not ask"
