"""Programs that wait to be looked at: each says on its standard output that it is there, and goes on when it may."""

from typing import Final

_WAITS: Final = """
import os, time
def wait(gate):
    print("here", flush=True)
    while not os.path.exists(gate):
        time.sleep(0.05)
"""

OPTIMIZER: Final = """
import time
from plugins.core.base_plugin_opt import BasePluginOptimizer

class PluginOptimizer(BasePluginOptimizer):
    def search(self, number_samples, last_exp_results=None):
        time.sleep(600)
"""
"""An algorithm that is asked, and answers later than anybody waits."""
ELASTIC: Final = (
    _WAITS
    + """
import sys, torch
from torch.utils.data import TensorDataset
from pliant.train import Run

model = torch.nn.Linear(4, 2)
rows = TensorDataset(torch.zeros(256, 4), torch.zeros(256, dtype=torch.long))
run = Run(model, torch.optim.SGD(model.parameters(), 0.1), rows, batch_size=32, checkpoint_freq=0)
for _ in run.epochs(100_000):
    for x, y in run:
        if run.size == 2:
            wait(sys.argv[1])
            sys.exit()
        run.step(torch.nn.functional.cross_entropy(model(x), y))
"""
)
"""An elastic training: its two tasks wait before the first step that both take part in."""

FIXED: Final = (
    _WAITS
    + """
import subprocess, sys
import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
with subprocess.Popen(["sh", "-c", 'until test -e "$0"; do sleep 0.1; done', sys.argv[1]]):
    wait(sys.argv[1])
dist.destroy_process_group()
"""
)
"""Processes of a fixed size, which start a program each."""

ALONE: Final = _WAITS + "import sys\nwait(sys.argv[1])\n"
"""One process that does nothing else."""

PLUGIN: Final = """
import json, os, time
while not os.path.exists(os.path.join(os.environ["DLI_SHARED_FS"], "go")):
    time.sleep(0.05)
print(json.dumps({"CMD": "true"}))
"""
"""A plug-in's script."""

INTERPRETER: Final = (
    """import os, sys, time; exec("while not os.path.exists(sys.prefix + '/go'): time.sleep(0.05)")\n"""
)
"""A line of a `.pth` file: an interpreter waits before it does anything."""
