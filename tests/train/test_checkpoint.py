"""A checkpoint is whole or not there at all, and never the only one."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pliant.train import checkpoint
from pliant.train.errors import TrainingError


def state(step: int) -> dict[str, Any]:
    return {"step": step, "model": {"w": torch.full((64, 64), float(step))}, "optimizer": {"state": {0: {"lr": 0.5}}}}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def step_of(folder: Path) -> int | None:
    newest = checkpoint.newest(folder)
    return None if newest is None else int(newest["step"])


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    path = checkpoint.save(tmp_path / "new" / "folder", state(3), step=3)

    read = checkpoint.newest(path.parent)

    assert read is not None
    assert torch.equal(read.pop("model")["w"], state(3)["model"]["w"])
    assert read == {"step": 3, "optimizer": {"state": {0: {"lr": 0.5}}}, "format": checkpoint.FORMAT}


def test_nothing_saved_is_nothing_found(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path) is None
    assert checkpoint.newest(tmp_path / "missing") is None


def test_newest_two_are_kept(tmp_path: Path) -> None:
    for step in (9, 10, 99, 100):
        checkpoint.save(tmp_path, state(step), step=step)

    assert names(tmp_path) == ["step-000000000099.pt", "step-000000000100.pt"]
    assert step_of(tmp_path) == 100


def test_other_files_are_neither_read_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "step-notes.pt").write_text("mine")
    for step in (1, 2, 3):
        checkpoint.save(tmp_path, state(step), step=step)

    assert step_of(tmp_path) == 3
    assert (tmp_path / "step-notes.pt").read_text() == "mine"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_torn_file_falls_back_to_the_one_before(tmp_path: Path, share: float) -> None:
    checkpoint.save(tmp_path, state(1), step=1)
    newest = checkpoint.save(tmp_path, state(2), step=2)
    os.truncate(newest, int(newest.stat().st_size * share))

    assert step_of(tmp_path) == 1


@pytest.mark.parametrize("content", [b"\0" * 4096, b"hello", b"PK\x03\x04" + b"\0" * 100], ids=["zeros", "text", "zip"])
def test_file_of_something_else_falls_back_to_the_one_before(tmp_path: Path, content: bytes) -> None:
    checkpoint.save(tmp_path, state(1), step=1)
    (tmp_path / "step-000000000002.pt").write_bytes(content)

    assert step_of(tmp_path) == 1


def test_saved_value_that_is_no_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, state(1), step=1)
    torch.save(torch.zeros(3), tmp_path / "step-000000000002.pt")

    assert step_of(tmp_path) == 1


def test_checkpoint_of_another_version_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "step-000000000002.pt"
    checkpoint.write(path, {"step": 2, "format": 99})

    with pytest.raises(TrainingError) as caught:
        checkpoint.newest(tmp_path)

    assert str(caught.value) == (
        f"{path} has checkpoint format 99, this Pliant reads 1; "
        f"train on with the version that wrote it, or move the file away to start anew"
    )


class Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("as_zip", [True, False], ids=["torch file", "pickle"])
def test_file_that_would_run_code_is_refused(tmp_path: Path, as_zip: bool) -> None:
    folder, target = tmp_path / "checkpoint", tmp_path / "exploded"
    checkpoint.save(folder, state(1), step=1)
    path = folder / "step-000000000002.pt"
    if as_zip:
        torch.save({"step": 2, "format": 1, "x": Bomb(target)}, path)
    else:
        path.write_bytes(pickle.dumps({"step": 2, "format": 1, "x": Bomb(target)}))

    assert step_of(folder) == 1
    assert not target.exists()


FULL_DISK = """
import resource, sys
from pathlib import Path
import torch
from pliant.train import checkpoint

folder, kind = Path(sys.argv[1]), sys.argv[2]
checkpoint.save(folder, {"step": 1, "w": torch.zeros(1000)}, step=1)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    checkpoint.save(folder, {"step": 2, "w": torch.zeros(1_000_000)}, step=2)
except OSError as error:
    print("refused", error.errno)
print(checkpoint.newest(folder)["step"], sorted(path.name for path in folder.iterdir()))
"""


@pytest.mark.parametrize("limit", [0, 100, 9000, 2_000_000])
def test_full_disk_is_an_error_and_leaves_the_last_good_checkpoint_alone(tmp_path: Path, limit: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path), "save", str(limit)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert ended.stderr == ""
    assert ended.stdout.splitlines() == ["refused 27", "1 ['step-000000000001.pt']"]
    assert step_of(tmp_path) == 1
