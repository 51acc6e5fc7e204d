"""A task's large tensors lie in large pages where the machine gives them, unless its job says otherwise."""

from pathlib import Path

import pytest
from tests.e2e.pool import Pool

from pliant.client import Client

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
"""Of the kernel; `madvise` on most machines: large pages for those who ask."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        not SETTING.exists() or "[madvise]" not in SETTING.read_text(),
        reason="this machine gives large pages to everybody, or to nobody",
    ),
]

LOOKS = """
import torch
def kib():
    with open("/proc/self/smaps") as maps:
        return sum(int(line.split()[1]) for line in maps if line.startswith("AnonHugePages"))
before = kib()
large = torch.ones(16 << 20)  # 64 MiB
print((kib() - before) >> 10)
"""


def looked(pool: Pool, client: Client, folder: Path, *options: str) -> int:
    """Return how many MiB of a tensor of 64 a task found in large pages."""
    script = folder / "looks.py"
    script.write_text(LOOKS)
    job_id = pool.submit(script, "--fixed", "1", *options)
    job = client.wait(job_id, timeout_s=60)
    assert job.state == "completed", job.reason
    return int(pool.cli("logs", job_id, "--stream", "stdout").split()[-1])


def test_a_tasks_large_tensors_lie_in_large_pages(pool: Pool, client: Client, tmp_path: Path) -> None:
    assert looked(pool, client, tmp_path) > 0, "the kernel may have had few, but not none"


def test_a_job_may_have_it_otherwise(pool: Pool, client: Client, tmp_path: Path) -> None:
    assert looked(pool, client, tmp_path, "--env", "THP_MEM_ALLOC_ENABLE=0") == 0
