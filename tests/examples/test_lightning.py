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


@pytest.mark.parametrize("name", ["elastic.py", "plain.py"])
def test_the_example_learns(tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(LIGHTNING / name), "--epochs", "5"],
        cwd=tmp_path,
        env={**os.environ, "RESULT_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert float(re.findall(r"test accuracy (\S+)", done.stdout)[-1]) >= 0.9
    (saved,) = tmp_path.rglob("*.ckpt")
    weights = torch.load(saved, weights_only=True)["state_dict"]
    assert weights["net.0.weight"].shape == (16, 1, 3, 3)
    if name == "elastic.py":
        final = torch.load(tmp_path / "model" / "model.pt", weights_only=True)
        assert final.keys() == weights.keys()
