"""A checkpoint is whole or not there at all, and never the only one."""

import os
import pickle
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.train.errors import DamagedCheckpoint, TrainingError
from pliant.train.state import checkpoint
from pliant.train.state.snapshot import SnapshotBuffer


def state(step: int) -> dict[str, Any]:
    return {"step": step, "model": {"w": torch.full((64, 64), float(step))}, "optimizer": {"state": {0: {"lr": 0.5}}}}


def save(folder: Path, step: int) -> Path:
    return checkpoint.save(folder, SnapshotBuffer().take(state(step)), step=step)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def step_of(*folders: Path) -> int | None:
    newest = checkpoint.newest(*folders)
    return None if newest is None else int(newest["step"])


def equal(one: Any, other: Any) -> bool:
    match one:
        case torch.Tensor():
            same = (one.dtype, one.shape) == (other.dtype, other.shape)
            return same and one.contiguous().numpy(force=True).tobytes() == other.numpy(force=True).tobytes()
        case dict():
            return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
        case list() | tuple():
            pairs = zip(one, other, strict=True)
            return type(one) is type(other) and all(equal(*pair) for pair in pairs)
        case _:
            return type(one) is type(other) and bool(one == other)


# what is written and read


def test_what_was_saved_is_read_back(tmp_path: Path) -> None:
    path = save(tmp_path / "new" / "folder", 3)

    assert equal(checkpoint.newest(path.parent), state(3))
    assert equal(checkpoint.load(path), state(3))


def test_every_kind_of_value_comes_back_as_it_was(tmp_path: Path) -> None:
    tree = {
        "transposed": torch.arange(200_000.0).reshape(400, 500).T,
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "bits": torch.tensor([True, False]),
        "large": torch.arange(100_000, dtype=torch.int64),
        5: [None, True, -3, 2.5, float("inf"), "ö\n", (1, [2])],
    }
    path = checkpoint.save(tmp_path, SnapshotBuffer().take(tree), step=1)

    assert equal(checkpoint.load(path), tree)


def test_halves_come_back_with_their_bits(tmp_path: Path) -> None:
    values = torch.tensor([1.0, -0.0, float("nan"), 3e38]).to(torch.bfloat16)
    path = checkpoint.save(tmp_path, SnapshotBuffer().take({"w": values}), step=1)

    read = checkpoint.load(path)["w"]
    assert read.dtype is torch.bfloat16
    assert torch.equal(read.view(torch.int16), values.view(torch.int16))


def test_what_cannot_travel_cannot_be_saved() -> None:
    with pytest.raises(TrainingError, match=r"state at extras\.mine is a set"):
        SnapshotBuffer().take({"extras": {"mine": {1, 2}}})


def test_if_none_can_be_read_nothing_begins_again_at_step_0(tmp_path: Path) -> None:
    notes: list[str] = []
    os.truncate(save(tmp_path, 4), 100)
    with pytest.raises(TrainingError, match=r"the only checkpoint cannot be read \(.*step-0+4\.ckpt.*at step 0; put"):
        checkpoint.newest(tmp_path, note=notes.append)
    os.truncate(save(tmp_path, 5), 100)
    with pytest.raises(TrainingError, match=r"none of the 2 checkpoints can be read \(.*step-000000000005"):
        checkpoint.newest(tmp_path, note=notes.append)

    assert notes == []


def test_nothing_saved_is_nothing_found(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path) is None
    assert checkpoint.newest(tmp_path / "missing") is None


def test_newest_two_are_kept(tmp_path: Path) -> None:
    for step in (9, 10, 99, 100):
        save(tmp_path, step)

    assert names(tmp_path) == ["step-000000000099.ckpt", "step-000000000100.ckpt"]
    assert step_of(tmp_path) == 100


def test_a_good_checkpoint_is_never_dropped_for_torn_ones_of_later_steps(tmp_path: Path) -> None:
    for step in (3, 4, 5):
        save(tmp_path, step)
    for step in (4, 5):
        os.truncate(tmp_path / f"step-{step:012d}.ckpt", 50)
    save(tmp_path, 3)

    assert step_of(tmp_path) == 3


def test_other_files_are_neither_read_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "step-notes.ckpt").write_text("mine")
    for step in (1, 2, 3):
        save(tmp_path, step)

    assert step_of(tmp_path) == 3
    assert (tmp_path / "step-notes.ckpt").read_text() == "mine"


def test_the_newest_of_two_folders_wins_and_the_first_if_they_are_equal(tmp_path: Path) -> None:
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    save(disk, 5)
    assert step_of(memory, disk) == 5
    save(memory, 7)
    assert step_of(memory, disk) == 7
    checkpoint.save(disk, SnapshotBuffer().take({"step": 7, "from": "disk"}), step=7)
    newest = checkpoint.newest(disk, memory)
    assert newest is not None
    assert newest["from"] == "disk"
    os.truncate(memory / "step-000000000007.ckpt", 100)
    assert step_of(memory, disk) == 7


def test_what_a_killed_writer_left_behind_is_removed_by_a_later_checkpoint(tmp_path: Path) -> None:
    for step in (3, 9):
        (tmp_path / f".step-{step:012d}.ckpt.123.456").write_bytes(b"half")
    save(tmp_path, 5)

    assert names(tmp_path) == [".step-000000000009.ckpt.123.456", "step-000000000005.ckpt"]
    checkpoint.clear(tmp_path)
    assert names(tmp_path) == []


# what happens to files


@given(share=st.floats(0, 1, exclude_max=True) | st.sampled_from([0.0, 0.001, 0.999]), data=st.data())
@settings(max_examples=80)
def test_a_torn_file_falls_back_to_the_one_before_and_is_named(share: float, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        save(folder, 1)
        newest = save(folder, 2)
        size = newest.stat().st_size
        borders = [0, 8, 27, 28, 31, 32, 33, size - 5, size - 4, size - 1]
        length = data.draw(st.sampled_from(borders) | st.just(int(size * share)))
        os.truncate(newest, length)
        if data.draw(st.booleans()):
            os.truncate(newest, size)  # the end is there, as zeros: blocks that never reached the disk
        notes: list[str] = []
        read = checkpoint.newest(folder, note=notes.append)

        assert read is not None
        assert read["step"] == 1
        assert len(notes) == 1
        assert str(newest) in notes[0]
        assert "that of step 1 is used" in notes[0]


@given(at=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255))
@settings(max_examples=80)
def test_a_flipped_byte_anywhere_is_found(at: float, mask: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = save(Path(root), 1)
        content = bytearray(path.read_bytes())
        content[int(at * len(content))] ^= mask
        path.write_bytes(content)

        with pytest.raises(DamagedCheckpoint):
            checkpoint.load(path)


CONTENTS = {"zeros": b"\0" * 4096, "text": b"hello", "magic": checkpoint.MAGIC, "zip": b"PK\x03\x04" + b"\0" * 100}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=list(CONTENTS))
def test_a_file_of_something_else_falls_back_to_the_one_before(tmp_path: Path, content: bytes) -> None:
    save(tmp_path, 1)
    (tmp_path / "step-000000000002.ckpt").write_bytes(content)

    assert step_of(tmp_path) == 1


@pytest.mark.parametrize("skeleton", ["[1, 2]", "{", '{"t": ["float32", [5]]}', '{"t": ["nonsense", [0]]}', '"x"'])
def test_a_whole_file_without_a_state_in_it_falls_back_to_the_one_before(tmp_path: Path, skeleton: str) -> None:
    save(tmp_path, 1)
    taken = SnapshotBuffer().take({})
    checkpoint.save(tmp_path, type(taken)(skeleton=skeleton, data=taken.data), step=2)

    assert step_of(tmp_path) == 1


def test_a_folder_in_place_of_a_checkpoint_is_skipped(tmp_path: Path) -> None:
    save(tmp_path, 1)
    (tmp_path / "step-000000000002.ckpt").mkdir()

    assert step_of(tmp_path) == 1


def test_a_checkpoint_of_another_version_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "step-000000000002.ckpt"
    prefix = struct.pack("<8sIQQ", checkpoint.MAGIC, 99, 0, 0)
    path.write_bytes(prefix + struct.pack("<I", zlib.crc32(prefix)))

    with pytest.raises(TrainingError) as caught:
        checkpoint.newest(tmp_path)

    assert str(caught.value) == (
        f"{path} has checkpoint format 99, this Pliant reads 2; "
        f"train on with the version that wrote it, or move the file away to start anew"
    )


def test_a_checkpoint_of_format_1_says_what_to_do(tmp_path: Path) -> None:
    checkpoint.write(tmp_path / "step-000000000002.pt", {"step": 2, "format": 1})

    with pytest.raises(TrainingError, match=r"step-000000000002\.pt has checkpoint format 1, this Pliant reads 2"):
        checkpoint.newest(tmp_path)
    save(tmp_path, 1)
    assert step_of(tmp_path) == 1


class Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.target,)


@pytest.mark.parametrize("as_zip", [True, False], ids=["torch file", "pickle"])
def test_a_file_that_would_run_code_runs_none(tmp_path: Path, as_zip: bool) -> None:
    folder, target = tmp_path / "checkpoint", tmp_path / "exploded"
    save(folder, 1)
    path = folder / "step-000000000002.ckpt"
    if as_zip:
        torch.save({"step": 2, "x": Bomb(target)}, path)
    else:
        path.write_bytes(pickle.dumps({"step": 2, "x": Bomb(target)}))

    assert step_of(folder) == 1
    assert not target.exists()


# processes that die and disks that are full

WRITE_UNTIL_KILLED = """
import itertools, sys
from pathlib import Path
import torch
from pliant.train.state import checkpoint
from pliant.train.state.snapshot import SnapshotBuffer

buffer, weights = SnapshotBuffer(), torch.zeros(4_000_000)
for step in itertools.count(1):
    weights.fill_(step)
    checkpoint.save(Path(sys.argv[1]), buffer.take({"step": step, "w": weights}), step=step)
    print(step, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_a_whole_checkpoint_at_least_as_new_as_it_said(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_UNTIL_KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    seen, newest = 0, 0
    draw = random.Random(7)
    try:
        for _ in range(6):
            newest = int(writer.stdout.readline())
            # paused somewhere in its next write, what lies there is what a death at that moment would leave
            threading.Event().wait(draw.uniform(0, 0.05))
            writer.send_signal(signal.SIGSTOP)
            read = checkpoint.newest(tmp_path, note=lambda _: None)
            assert read is not None
            assert read["step"] >= newest
            assert bool((read["w"] == read["step"]).all())
            seen = max(seen, read["step"])
            writer.send_signal(signal.SIGCONT)
    finally:
        writer.kill()
        told = [int(line) for line in writer.stdout.read().splitlines()]
        writer.stdout.close()
        assert writer.wait(30) == -signal.SIGKILL
    read = checkpoint.newest(tmp_path)
    assert read is not None
    assert read["step"] >= max([newest, seen, *told])
    assert bool((read["w"] == read["step"]).all())


FULL_DISK = """
import resource, sys
from pathlib import Path
import torch
from pliant.train.state import checkpoint
from pliant.train.state.snapshot import SnapshotBuffer

def until_full(folder, limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    checkpoint.save(folder, SnapshotBuffer().take({"step": 1, "w": torch.zeros(1000)}), step=1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    taken = SnapshotBuffer().take({"step": 2, "w": torch.zeros(1_000_000)})
    writes = (lambda: checkpoint.save(folder, taken, step=2), lambda: checkpoint.write(folder / "x", taken.data.obj))
    for write in writes:
        try:
            write()
        except OSError as error:
            yield error.errno
    yield checkpoint.newest(folder)["step"]
    yield sorted(path.name for path in folder.iterdir())

for limit in sys.argv[2:]:
    print(limit, *until_full(Path(sys.argv[1], limit), int(limit)))
"""


def test_a_full_disk_is_an_error_and_leaves_the_last_good_checkpoint_alone(tmp_path: Path) -> None:
    limits = ("0", "100", "9000", "2000000")
    ended = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path), *limits],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [f"{limit} 27 27 1 ['step-000000000001.ckpt']" for limit in limits]
    assert [step_of(tmp_path / limit) for limit in limits] == [1] * len(limits)
