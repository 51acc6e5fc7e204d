"""What is done ahead of all tasks leaves no trace in what they compute, and nothing is done where torch knows GPUs."""

import json
import os
import subprocess
import sys

import pytest

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


def rehearsed(before: str) -> list[object]:
    """Return whether no random number was drawn, how many threads there are, and whether anything was done."""
    env = {**os.environ, **thread_limits(1)}  # as the zygote has it
    command = [sys.executable, "-c", LOOKS.format(before=before)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120, env=env)
    found: list[object] = json.loads(done.stdout)
    return found


def test_no_random_number_is_drawn_and_no_thread_started() -> None:
    assert rehearsed("torch.version.cuda = None") == [True, 1, True]


@pytest.mark.parametrize("kind", ["cuda", "hip", "xpu"])
def test_nothing_is_done_where_torch_is_built_for_gpus(kind: str) -> None:
    assert rehearsed(f"torch.version.{kind} = '13.0'") == [True, 1, False]
