"""The example with Lightning learns, alone, and its checkpoint is one that Lightning loads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

LIGHTNING = Path(__file__).parents[2] / "examples" / "lightning"
LIMIT_S = 170
pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S + 10)]


BOTH = """
import os, runpy, sys
for path in sys.argv[1:]:
    name, sys.argv = os.path.basename(path), [path, "--epochs", "5"]
    os.environ["RESULT_DIR"] = os.path.abspath(name)
    os.makedirs(name)
    os.chdir(name)
    print("---", name, flush=True)
    runpy.run_path(path, run_name="__main__")
    os.chdir("..")
"""
"""Both in one process: to import Lightning takes longer than they do."""
NAMES = ("elastic.py", "plain.py")


def test_the_examples_learn(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BOTH, *(str(LIGHTNING / name) for name in NAMES)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for name, told in zip(NAMES, done.stdout.split("--- ")[1:], strict=True):
        assert told.startswith(name)
        assert float(re.findall(r"test accuracy (\S+)", told)[-1]) >= 0.9
        (saved,) = (tmp_path / name).rglob("*.ckpt")
        weights = torch.load(saved, weights_only=True)["state_dict"]
        assert weights["net.0.weight"].shape == (16, 1, 3, 3)
    final = torch.load(tmp_path / "elastic.py" / "model" / "model.pt", weights_only=True)
    assert final.keys() == weights.keys()
