"""The examples are close to the loops they came from, run alone, and learn."""

import difflib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.warm import run_script

import pliant.ibm.modules

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
MAX_ADDED_LINES = 5
LIMIT_S = 170
"""Each takes a few seconds on a machine that is free."""
SHORT = ("--epochs", "9")
"""Enough to learn; what is trained by default learns no more."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S + 10)]
NATIVE = [
    "from pliant.train import Run",
    "run = Run(model, optimizer, train_set, batch_size=args.batch_size, seed=args.seed)",
    "for epoch in run.epochs(args.epochs):",
    "for x, y in run:",
    "run.step(loss, accuracy=(outputs.argmax(1) == y).float().mean())",
]
FABRIC = [
    "from fabric_model import FabricModel",
    "MAX_WORKERS = 8",
    "edt = FabricModel(model, get_datasets, F.cross_entropy, optimizer)",
    "edt.train(args.epochs, args.batch_size // MAX_WORKERS, MAX_WORKERS)",
]


def added(before: str, after: str) -> list[str]:
    """Return the lines of the second file that are not in the first, without indentation and empty ones."""
    old, new = ((DIGITS / name).read_text().splitlines() for name in (before, after))
    lines = difflib.unified_diff(old, new, n=0, lineterm="")
    return [
        line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++") and line[1:].strip()
    ]


def run(name: str, folder: Path, *args: str, cold: bool = True) -> str:
    """Run an example with nothing around it; return what it printed. One that is not cold finds torch imported."""
    modules = str(Path(pliant.ibm.modules.__file__).parent)
    env = {**os.environ, "PYTHONPATH": modules, "RESULT_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    if cold:
        command = [sys.executable, "-W", "error", str(DIGITS / name), *args]
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    else:
        done = run_script(DIGITS / name, *args, folder=folder, env=env, warnings_fail=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("before", "after", "lines"), [("plain.py", "elastic.py", NATIVE), ("plain_fabric.py", "fabric.py", FABRIC)]
)
def test_an_example_adds_at_most_five_lines_to_the_plain_loop(before: str, after: str, lines: list[str]) -> None:
    assert added(before, after) == lines
    assert len(lines) <= MAX_ADDED_LINES


@pytest.mark.parametrize("name", ["plain.py", "plain_fabric.py"])
def test_the_plain_loops_learn(tmp_path: Path, name: str) -> None:
    told = run(name, tmp_path, *SHORT, cold=False)

    assert float(told.splitlines()[-1].removeprefix("test accuracy ")) >= 0.97


def test_the_tutorial_with_fabric_learns(tmp_path: Path) -> None:
    told = run("fabric.py", tmp_path, *SHORT)

    accuracies = re.findall(r"tag test_accuracy, simple_value (\S+)", told)
    assert float(accuracies[-1]) >= 0.97


def test_the_elastic_loop_learns_and_its_saved_model_is_as_good_as_the_script_says(tmp_path: Path) -> None:
    told = run("elastic.py", tmp_path, *SHORT, "--width", "24", "--batch-size", "32")
    spec = importlib.util.spec_from_file_location("plain", DIGITS / "plain.py")
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)

    model = plain.make_model(24)
    model.load_state_dict(torch.load(tmp_path / "model" / "model.pt", weights_only=True))

    accuracy = plain.evaluate(model, plain.load_data()[1])
    assert told.splitlines()[-1] == f"test accuracy {accuracy:.4f}"
    assert accuracy >= 0.97


def test_the_readme_shows_the_lines_that_change() -> None:
    shown = (DIGITS / "README.md").read_text()

    assert [line for line in (*NATIVE, *FABRIC) if line not in shown] == []
