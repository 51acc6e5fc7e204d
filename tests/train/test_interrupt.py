"""Ctrl-C in a terminal saves at a step boundary, and the same command goes on from there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.warm import run_script

SCRIPT = """
import sys, time
from pathlib import Path
import torch
from pliant.train import Run

torch.manual_seed(0)
data = [(torch.randn(4), torch.tensor(i % 3)) for i in range(64)]
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
run = Run(model, optimizer, data, batch_size=8, virtual_workers=1)
steps = open(sys.argv[1], "a", buffering=1)
for epoch in run.epochs(6):
    for x, y in run:
        print(run.num_steps_done, file=steps)
        run.step(torch.nn.functional.cross_entropy(model(x), y))
        while run.num_steps_done >= 11 and Path(sys.argv[2]).exists():
            time.sleep(0.001)
"""
NUM_STEPS = 48
DEADLINE_S = 100.0


def command(folder: Path, name: str, *, hold: Path) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "RESULT_DIR": str(folder / name), "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, str(script), str(folder / f"{name}.steps"), str(hold)]
    return subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True)


def play(folder: Path, name: str, *, hold: Path) -> None:
    """Run the same to its end, in a process that has imported torch."""
    env = {**os.environ, "RESULT_DIR": str(folder / name), "OMP_NUM_THREADS": "1"}
    done = run_script(folder / "script.py", str(folder / f"{name}.steps"), str(hold), folder=folder, env=env)
    assert (done.returncode, done.stderr) == (0, "")


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, said = process.communicate(timeout=DEADLINE_S)
    return process.returncode, said


def steps(folder: Path, name: str) -> list[int]:
    path = folder / f"{name}.steps"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def interrupted(folder: Path, hold: Path) -> subprocess.Popen[str]:
    """Return the command `broken`, which heard Ctrl-C after eleven steps and is held there while `hold` exists."""
    hold.touch()
    process = command(folder, "broken", hold=hold)
    deadline = time.monotonic() + DEADLINE_S
    while len(steps(folder, "broken")) < 11:
        assert time.monotonic() < deadline
        assert process.poll() is None, ended(process)
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "press Ctrl-C again" in process.stderr.readline()
    return process


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_same_command_goes_on_after_ctrl_c_and_ends_with_the_same_weights(tmp_path: Path) -> None:
    hold, never = tmp_path / "hold", tmp_path / "never"
    process = interrupted(tmp_path, hold)
    hold.unlink()
    code, said = ended(process)
    assert code == -signal.SIGINT, said
    done = steps(tmp_path, "broken")
    assert 11 <= len(done) <= 13

    play(tmp_path, "broken", hold=never)
    assert steps(tmp_path, "broken") == list(range(NUM_STEPS))
    play(tmp_path, "whole", hold=never)
    weights = [
        torch.load(tmp_path / name / "model" / "model.pt", weights_only=True)["weight"] for name in ("broken", "whole")
    ]
    assert torch.equal(*weights)
    assert list((tmp_path / "broken" / "checkpoint").iterdir()) == []  # the next time it starts anew


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    process = interrupted(tmp_path, hold)
    process.send_signal(signal.SIGINT)

    assert ended(process)[0] == -signal.SIGINT
    assert len(steps(tmp_path, "broken")) == 11
