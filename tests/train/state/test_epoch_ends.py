"""The states at ends of epochs are there before training goes on, and the newest are kept."""

from pathlib import Path

import pytest
import torch

from pliant.train.state import checkpoint, epoch_ends
from pliant.train.state.epoch_ends import EpochEnds


def ends_of(folder: Path, every: int = 2) -> tuple[EpochEnds, list[tuple[int, str]]]:
    failed: list[tuple[int, str]] = []
    return EpochEnds(folder=folder, every=every, on_failed=lambda step, why: failed.append((step, why))), failed


def keep(ends: EpochEnds, num_epochs: int) -> None:
    state = {"step": 10 * num_epochs, "w": torch.full((4,), float(num_epochs))}
    ends.keep(lambda: state, step=10 * num_epochs, num_epochs=num_epochs)


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("epoch-*"))


def test_every_so_many_epochs_a_state_is_kept_beside_the_checkpoints(tmp_path: Path) -> None:
    ends, failed = ends_of(tmp_path)
    for num_epochs in range(1, 6):
        keep(ends, num_epochs)

    assert kept(tmp_path) == ["epoch-2", "epoch-4"]
    found = checkpoint.newest(tmp_path / "epoch-4")
    assert found is not None
    assert found["w"].tolist() == [4.0] * 4
    assert checkpoint.newest(tmp_path) is None
    assert not failed


def test_the_newest_two_are_kept_and_more_while_they_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, _ = ends_of(tmp_path / "small", every=1)
    for num_epochs in range(1, 12):
        keep(ends, num_epochs)
    monkeypatch.setattr(epoch_ends, "KEPT_BYTES", 16)
    large, _ = ends_of(tmp_path / "large", every=1)
    for num_epochs in range(1, 12):
        keep(large, num_epochs)

    assert len(kept(tmp_path / "small")) == 11
    assert kept(tmp_path / "large") == ["epoch-10", "epoch-11"]


def test_what_is_lacking_is_noticed(tmp_path: Path) -> None:
    ends, _ = ends_of(tmp_path)
    keep(ends, 2)

    assert not ends.lacks(step=20, num_epochs=2)
    assert ends.lacks(step=21, num_epochs=2)
    assert ends.lacks(step=40, num_epochs=4)
    assert not ends.lacks(step=30, num_epochs=3)


def test_training_goes_on_if_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "epoch-2").write_text("a file in its place")
    ends, failed = ends_of(tmp_path)
    keep(ends, 2)

    ((step, why),) = failed
    assert step == 20
    assert why.startswith("the state at the end of epoch 2, for other trials: ")
