"""Scripts written for IBM's product run unmodified, as they are on a task's path."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ibm.modules import scripts
from tests.warm import run_script

import pliant.ibm.modules

HOME = Path(pliant.ibm.modules.__file__).parent
LIMIT_S = 110
"""Each takes a few seconds on a machine that is free."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S + 10)]


def run(folder: Path, script: str, *, command: tuple[str, ...] = (), **environment: str) -> str:
    """Run a script in a folder of its own with the environment of a task; return what it printed.

    With a command it is run by an interpreter, as where a job names one, else by a process that has imported torch.
    """
    for name in ("code", "result", "log"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "code" / "main.py").write_text(script)
    (folder / "code" / "mycallbacks.py").write_text(scripts.CALLBACKS)
    of_a_task = {
        "PYTHONPATH": str(HOME),
        "FABRIC_HOME": str(HOME),
        "RESULT_DIR": str(folder / "result"),
        "LOG_DIR": str(folder / "log"),
        "DATA_DIR": str(folder),
        "TRAINING_ID": "job-3",
        "OMP_NUM_THREADS": "1",
    }
    code, env = folder / "code", {**os.environ, **of_a_task, **environment}
    if command:
        program = [sys.executable, *command, "main.py"]
        done = subprocess.run(program, cwd=code, env=env, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    else:
        done = run_script(code / "main.py", folder=code, env=env, warnings_fail=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_batch_script_with_callbacks_of_its_own_runs(tmp_path: Path) -> None:
    told = run(tmp_path, scripts.BATCH, command=("-W", "error"))

    assert "> fabric loaded from " in told
    assert told.endswith("Job job-3 finishes with state FINISHED.\n")
    metrics = [json.loads(line) for line in (tmp_path / "log" / "evaluation-metrics.txt").read_text().splitlines()]
    assert len(metrics) == 3 * 47  # 47 steps of 32 samples an epoch
    assert metrics[-1]["etimes"]["iteration"] == {"type": 2, "value": str(3 * 47 * 16)}
    assert float(metrics[-1]["values"]["accuracy"]["value"]) > 0.9
    text = (tmp_path / "log" / "stdout").read_text()
    assert f"epoch 2 of 3 in {tmp_path / 'result' / 'model'}" in text
    assert text.count("Test,\tTimestamp: ") == 3
    assert (tmp_path / "result" / "model" / "train" / "model_epoch_final.pth").exists()


def test_a_keras_script_runs_where_there_is_no_tensorflow(tmp_path: Path) -> None:
    told = run(tmp_path, scripts.KERAS, command=("-P", "-m", "pliant.entry.alone"))

    assert told.endswith("Job job-3 finishes with state FINISHED.\n")
    accuracies = [float(line.split()[-1]) for line in told.splitlines() if "tag test_accuracy" in line]
    assert len(accuracies) == 3
    assert accuracies[-1] > 0.8
    assert (tmp_path / "result" / "model" / "model.keras").is_file()


def test_a_script_with_steps_of_its_own_runs(tmp_path: Path) -> None:
    told = run(tmp_path, scripts.OWN_STEPS)

    rates = [float(line.split("=")[-1]) for line in told.splitlines() if line.startswith("epoch=")]
    assert rates == pytest.approx([0.4, 0.04, 0.004])
    assert "enable_onnx: " in told
    assert told.count("tag test_loss") == 1
    assert [path.name for path in (tmp_path / "result" / "model" / "train").iterdir() if "final" not in path.name] == []


def test_a_script_with_settings_from_a_form_runs(tmp_path: Path) -> None:
    (tmp_path / "form").mkdir()
    (tmp_path / "form" / "ps.conf").write_text("optimizer=Adam\nbase_lr=0.01\nepoch=2\nbatch_size=16\n")

    told = run(tmp_path, scripts.FROM_FORM, PS_PATH=str(tmp_path / "form" / "ps.conf"))

    assert f"train data in {tmp_path}" in told
    assert "Total iterations: 192" in told  # 24 steps of 64 samples, 4 virtual workers, 2 epochs


def test_a_trial_of_a_search_leaves_its_metrics(tmp_path: Path) -> None:
    run(tmp_path, scripts.SEARCH)

    records = json.loads((tmp_path / "result" / "val_dict_list.json").read_text())
    assert [record["steps"] for record in records] == [0, 1]
    assert records[-1]["accuracy"] > 0.8


def test_a_script_sent_without_its_helper_files_finds_ours(tmp_path: Path) -> None:
    run(tmp_path, scripts.WITHOUT_COPIES)

    lines = (tmp_path / "log" / "evaluation-metrics.txt").read_text().splitlines()
    assert {json.loads(line)["grouplabel"] for line in lines} == {"train", "test"}
    assert "training took" in (tmp_path / "log" / "stdout").read_text()


def test_the_folder_that_old_scripts_look_for_exists() -> None:
    assert (HOME / "libs").is_dir()
