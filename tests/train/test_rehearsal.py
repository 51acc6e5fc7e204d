"""What is done ahead of all tasks leaves no trace in what they compute, and nothing is done where torch knows GPUs."""

import json
import os
import subprocess
import sys

import pytest
import torch

from pliant.cluster.agent.devices import thread_limits

LOOKS = """
import json, os, sys
import torch
{before}
state = torch.random.get_rng_state()
import pliant.train.rehearsal
same = torch.equal(state, torch.random.get_rng_state())
done = any(name.startswith("torch.profiler._cupti") for name in sys.modules)
print(json.dumps([same, len(os.listdir("/proc/self/task")), done]))
"""
READS_VARIABLES = """
import os, sys
import torch
import pliant.train.rehearsal
if os.fork() == 0:
    os.environ["MKL_VERBOSE"] = "1"
    torch.ones(256, 256) @ torch.ones(256, 256)
    os._exit(0)
os.wait()
"""


def rehearsed(before: str) -> list[object]:
    """Return whether no random number was drawn, how many threads there are, and whether anything was done."""
    found: list[object] = json.loads(said_by(LOOKS.format(before=before)))
    return found


def said_by(program: str) -> str:
    """Return what a process prints whose threads are those of the zygote."""
    env = {**os.environ, **thread_limits(1)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=env).stdout


def test_no_random_number_is_drawn_and_no_thread_started() -> None:
    assert rehearsed("torch.version.cuda = None") == [True, 1, True]


@pytest.mark.parametrize("kind", ["cuda", "hip", "xpu"])
def test_nothing_is_done_where_torch_is_built_for_gpus(kind: str) -> None:
    assert rehearsed(f"torch.version.{kind} = '13.0'") == [True, 1, False]


@pytest.mark.skipif("USE_MKL=ON" not in torch.__config__.show(), reason="this torch computes without MKL")
def test_variables_of_the_libraries_that_compute_still_count_in_a_task() -> None:
    assert "MKL_VERBOSE" in said_by(READS_VARIABLES)
