"""The examples with Keras learn, alone, and save a model that Keras loads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pliant.ibm.modules

KERAS = Path(__file__).parents[2] / "examples" / "keras"
LIMIT_S = 170
pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S + 10)]
SAID = {"fit.py": r"val_accuracy (\S+),", "fabric.py": r"tag test_accuracy, simple_value (\S+)"}
BOTH = """
import os, runpy, sys
from pliant.integrations.keras import keras
for path in sys.argv[1:]:
    name, sys.argv = os.path.basename(path), [path, "--epochs", "8"]
    os.environ["RESULT_DIR"] = os.path.abspath(name)
    print("---", name, flush=True)
    runpy.run_path(path, run_name="__main__")
    model = keras.models.load_model(os.path.join(name, "model", "model.keras"))
    print("loaded", model.input_shape)
"""
"""Both in one process: to import Keras takes longer than they do."""


def test_the_examples_learn_and_save_their_models(tmp_path: Path) -> None:
    paths = [str(KERAS / name) for name in SAID]
    done = subprocess.run(
        [sys.executable, "-c", BOTH, *paths],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(pliant.ibm.modules.__file__).parent),
            "OMP_NUM_THREADS": "1",
            "PLIANT_VIRTUAL_WORKERS": "8",  # as a job of up to eight tasks learns; eight epochs are few
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for name, told in zip(SAID, done.stdout.split("--- ")[1:], strict=True):
        assert told.startswith(name)
        assert float(re.findall(SAID[name], told)[-1]) >= 0.9
        assert told.endswith("loaded (None, 8, 8, 1)\n")
