"""Checkpoints in a folder: whole or not there at all, and never the only one.

A file is written beside its final name, forced to disk and then renamed; the one before it is kept. It holds JSON and
raw tensor bytes, so that nothing that somebody put there can run code, and checksums, so that torn and flipped bytes
are found. `load` tells the layout.
"""

import os
import re
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final, cast

import numpy as np
import torch

from pliant.train.errors import DamagedCheckpoint, TrainingError
from pliant.train.state import pytree
from pliant.train.state.snapshot import ALIGNMENT, StateSnapshot, offsets, views

NUM_KEPT: Final = 2
FORMAT: Final = 2
MAGIC: Final = b"PLIANT\r\n"
_PREFIX: Final = struct.Struct("<8sIQQ")
_CHECKSUM: Final = struct.Struct("<I")
_NAME: Final = re.compile(r"step-(\d{12})\.ckpt")
_DRAFT: Final = re.compile(r"\.step-(\d{12})\.ckpt\.\d+\.\d+")
_OLD_NAME: Final = re.compile(r"step-(\d{12})\.pt")
_PIECE: Final = 1 << 22
"""Written, read and summed up at a time, bytes; other threads run meanwhile."""


def save(folder: Path, taken: StateSnapshot, *, step: int, num_kept: int = NUM_KEPT) -> Path:
    """Write a checkpoint of `step` committed steps; drop all before it but the newest `num_kept`, itself among them.

    Raises:
        OSError: it could not be written; the ones before it are untouched.
    """
    path = folder / name_of(step)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{path.name}.{os.getpid()}.{threading.get_native_id()}"
    try:
        with draft.open("wb", buffering=0) as file:
            _write(file, taken)
            os.fsync(file.fileno())
        _put_in_place(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync_folder(folder)
    _tidy(folder, step, num_kept)
    return path


def name_of(step: int) -> str:
    """Return what the file of a checkpoint is called."""
    return f"step-{step:012d}.ckpt"


def load(path: Path) -> dict[str, Any]:
    """Return a checkpoint: a tree of dicts, lists, numbers, strings and tensors (on the CPU).

    Its keys are `step` and `epoch` (optimizer steps committed, index of the epoch that the loop is in), `model`, by
    name `optimizers` and `extras` (what `state_dict()` returned), `last` (loss and metrics of the newest global batch),
    `identity` (seed, number of samples, batch size) and a few more. The file, numbers little-endian:

        8 bytes   b"PLIANT\\r\\n"
        uint32    format, 2
        uint64    H, length of the head
        uint64    B, length of the body
        uint32    CRC-32 of the 28 bytes so far
        H bytes   head, the tree as JSON: {"t": [dtype, shape]} is the next tensor of the body,
                  {"d": [[key, value], …]} a dict, {"u": […]} a tuple; everything else is itself
        zeros     up to a multiple of 64
        B bytes   body: the tensors in C order, each at the next multiple of 64
        uint32    CRC-32 of everything before it

    Raises:
        DamagedCheckpoint: it is torn, changed, or something else.
        TrainingError: it was written by a version of Pliant that this one does not understand.
        OSError: it cannot be read.
    """
    with path.open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        head_size, body_size = _read_prefix(file, path)
        body_at = _align(_PREFIX.size + _CHECKSUM.size + head_size)
        expected = body_at + body_size + _CHECKSUM.size
        if size != expected:
            raise DamagedCheckpoint(f"{path} has {size} bytes instead of {expected}")
        file.seek(0)
        content = np.empty(size, dtype=np.uint8)
        checksum = _read(file, content.data[: -_CHECKSUM.size])
        if file.read(_CHECKSUM.size) != _CHECKSUM.pack(checksum):
            raise DamagedCheckpoint(f"{path} has changed since it was written: its checksum is wrong")
    head = bytes(content[_PREFIX.size + _CHECKSUM.size :][:head_size])
    return _decode(path, head, torch.from_numpy(content)[body_at : body_at + body_size])


def newest(*folders: Path, note: Callable[[str], None] = lambda _: None) -> dict[str, Any] | None:
    """Return the newest checkpoint of these folders that is whole, or None if there is none.

    Of two of the same step the one in the folder named first is taken; `note` is called for every one that is skipped.

    Raises:
        TrainingError: the newest was written by a version of Pliant that this one does not understand, or there are
            some and none can be read: nothing is begun anew that was trained already.
    """
    found = [(_step(path), -rank, path) for rank, folder in enumerate(folders) for path in _paths(folder)]
    damaged: list[Exception] = []
    for step, _, path in sorted(found, reverse=True):
        try:
            saved = load(path)
        except FileNotFoundError:
            continue  # a newer one took its place
        except (DamagedCheckpoint, OSError) as error:
            damaged.append(error)
            continue
        for why in damaged:
            note(f"a checkpoint is skipped, that of step {step} is used: {why}")
        return saved
    if damaged:
        raise _none_is_whole(damaged)
    if old := [path for folder in folders for path in folder.glob("step-*.pt") if _OLD_NAME.fullmatch(path.name)]:
        raise _not_understood(max(old), 1)
    return None


def clear(folder: Path) -> None:
    """Remove all checkpoints of a folder, also those half written."""
    for path in [*_paths(folder), *_drafts(folder)]:
        path.unlink(missing_ok=True)


def write(path: Path, value: object) -> None:
    """Write a value with `torch.save`, atomically; for the weights that leave Pliant.

    Raises:
        OSError: it could not be written; nothing was changed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            sink = _Sink(file)
            try:
                torch.save(value, cast(IO[bytes], sink))
            except RuntimeError:
                if sink.error is not None:
                    raise sink.error from None
                raise
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write(file: IO[bytes], taken: StateSnapshot) -> None:
    head = taken.skeleton.encode()
    prefix = _PREFIX.pack(MAGIC, FORMAT, len(head), len(taken.data))
    front = prefix + _CHECKSUM.pack(zlib.crc32(prefix)) + head
    front = front.ljust(_align(len(front)), b"\0")
    taken.wait()
    checksum = 0
    for part in (memoryview(front), taken.data):
        for start in range(0, len(part), _PIECE):
            piece = part[start : start + _PIECE]
            checksum = zlib.crc32(piece, checksum)
            _write_all(file, piece)
    _write_all(file, memoryview(_CHECKSUM.pack(checksum)))


def _write_all(file: IO[bytes], piece: memoryview) -> None:
    while piece:
        piece = piece[file.write(piece) :]


def _read(file: IO[bytes], into: memoryview) -> int:
    """Fill the memory; return its checksum. What a file that shrinks meanwhile lacks stays what it is."""
    checksum = 0
    for start in range(0, len(into), _PIECE):
        piece = into[start : start + _PIECE]
        rest = piece
        while rest and (num_read := cast(Any, file).readinto(rest)):
            rest = rest[num_read:]
        checksum = zlib.crc32(piece, checksum)
    return checksum


def _read_prefix(file: IO[bytes], path: Path) -> tuple[int, int]:
    raw = file.read(_PREFIX.size + _CHECKSUM.size)
    prefix = raw[: _PREFIX.size]
    if len(raw) < _PREFIX.size + _CHECKSUM.size or raw[_PREFIX.size :] != _CHECKSUM.pack(zlib.crc32(prefix)):
        raise DamagedCheckpoint(f"{path} does not begin like a checkpoint")
    magic, version, head_size, body_size = _PREFIX.unpack(prefix)
    if magic != MAGIC:
        raise DamagedCheckpoint(f"{path} does not begin like a checkpoint")
    if version != FORMAT:
        raise _not_understood(path, version)
    return head_size, body_size


def _decode(path: Path, head: bytes, body: torch.Tensor) -> dict[str, Any]:
    try:
        skeleton = head.decode()
        specs = pytree.shapes(skeleton)
        if offsets(specs)[1] != len(body):
            raise DamagedCheckpoint(f"{path} holds {len(body)} bytes of tensors instead of {offsets(specs)[1]}")
        tree = pytree.unflatten(skeleton, views(body, specs))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise DamagedCheckpoint(f"{path} holds no state: {type(error).__name__}: {error}") from error
    if not isinstance(tree, dict):
        raise DamagedCheckpoint(f"{path} holds no state but a {type(tree).__name__}")
    return tree


def _not_understood(path: Path, version: int) -> TrainingError:
    return TrainingError(
        f"{path} has checkpoint format {version}, this Pliant reads {FORMAT}; "
        f"train on with the version that wrote it, or move the file away to start anew"
    )


def _none_is_whole(damaged: Sequence[Exception]) -> TrainingError:
    said = "the only checkpoint" if len(damaged) == 1 else f"none of the {len(damaged)} checkpoints"
    verb = "cannot" if len(damaged) == 1 else "can"
    return TrainingError(
        f"{said} {verb} be read ({damaged[0]}), so this training does not begin again at step 0; put back one that is "
        f"whole, or start a new training"
    )


def _put_in_place(draft: Path, path: Path) -> None:
    try:
        draft.replace(path)
    except FileNotFoundError:
        if _step(path) > max(map(_step, _paths(path.parent)), default=-1):
            raise
        # another leader, who had committed as many steps at least, has tidied up: its checkpoint is the newest


def _tidy(folder: Path, step: int, num_kept: int) -> None:
    """Drop what a checkpoint makes useless; those of later steps are not counted, they may be torn."""
    for path in [path for path in _paths(folder) if _step(path) <= step][:-num_kept]:
        path.unlink(missing_ok=True)
    for draft in _drafts(folder):
        if _step(draft) <= step:
            draft.unlink(missing_ok=True)


def _paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*.ckpt") if _NAME.fullmatch(path.name))


def _drafts(folder: Path) -> list[Path]:
    return [path for path in folder.glob(".step-*.ckpt.*") if _DRAFT.fullmatch(path.name)]


def _step(path: Path) -> int:
    match = _NAME.search(path.name)
    assert match is not None
    return int(match[1])


def _align(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some file systems cannot; the file itself is safe
            os.fsync(handle)
    finally:
        os.close(handle)


class _Sink:
    """A file that remembers its first error, because `torch.save` reports another one instead."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        self._file.flush()
