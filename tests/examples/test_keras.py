"""The examples with Keras learn, alone, and save a model that Keras loads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pliant.integrations.keras import keras

KERAS = Path(__file__).parents[2] / "examples" / "keras"
LIMIT_S = 170
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(LIMIT_S + 10),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # Keras, when it loads
]


SAID = {"fit.py": r"val_accuracy (\S+),", "fabric.py": r"tag test_accuracy, simple_value (\S+)"}


@pytest.mark.parametrize("name", list(SAID))
def test_an_example_learns_and_saves_its_model(tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pliant.cli.app", "run", str(KERAS / name), "--epochs", "8"],
        cwd=tmp_path,
        env={**os.environ, "RESULT_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert float(re.findall(SAID[name], done.stdout)[-1]) >= 0.9
    assert keras.models.load_model(tmp_path / "model" / "model.keras").input_shape == (None, 8, 8, 1)
