"""The copies of one job: what has changed is read, sent, and then listed; what nothing names any more is removed.

Its files are a stranger's: they are opened by `files.untrusted` alone, and whatever they are, they harm the copies of
this job only. A checkpoint counts if its own checksum is right.
"""

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pliant.core.copies import FilesToCopy, FileToCopy
from pliant.files.digest import CHUNK
from pliant.files.untrusted.packing import PackedFile, take_packed
from pliant.files.untrusted.path import UntrustedPath
from pliant.objects.due import LastCopy, due, kept
from pliant.objects.manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    Manifest,
    StoredFile,
    choose_key,
    decode_manifest,
    encode_manifest,
    step_of,
)
from pliant.objects.store import InterruptedCopy, ObjectStore, StoreAway

FindFiles = Callable[[Path], FilesToCopy]
"""Looks in the folder of a job.

Raises:
    OSError: the folder is not there, or cannot be listed.
"""
_MAGIC: Final = b"PLIANT\r\n"
_CHECKSUM_BYTES: Final = 4
"""At the end of a checkpoint: CRC-32 of all before it (`train.state.checkpoint`)."""


def folder_of(job_id: str) -> str:
    """Return below which key the copies of a job are."""
    return f"jobs/{job_id}"


def read_manifest(store: ObjectStore, job_id: str) -> Manifest | None:
    """Return what a store holds of a job; None if it holds nothing.

    Raises:
        StoreAway: it does not say, or what it says is not understood.
    """
    content = store.read_small(f"{folder_of(job_id)}/{MANIFEST}", MAX_MANIFEST_BYTES)
    if content is None:
        return None
    try:
        return decode_manifest(content, job_id)
    except ValueError as error:
        raise StoreAway(f"what {store.url} says of {job_id} is not understood: {error}") from error


class JobCopies:
    """The copies of one job, and what is known of them."""

    def __init__(
        self,
        store: ObjectStore,
        jobs: Path,
        job_id: str,
        find: FindFiles,
        between: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; `between` is called between two pieces of what is not urgent."""
        self._store = store
        self._root = jobs / job_id
        self._job_id = job_id
        self._find = find
        self._between = between
        self._listed: Manifest | None = None
        """What the store was last given; None: it is to be asked."""
        self._files: dict[str, StoredFile] = {}
        """What is there, listed or not."""
        self._last: dict[str, LastCopy] = {}
        self._refused: dict[str, str] = {}

    def copy(self, now: float, *, is_over: bool, is_final: bool = False, only_urgent: bool = False) -> bool:
        """Copy what is due; tell whether the store has got anything.

        Args:
            now: seconds since the epoch.
            is_over: the job has ended: all that has changed is due.
            is_final: and nothing more will come, if nothing is copied now.
            only_urgent: copy nothing but what the job cannot go on without.

        Raises:
            StoreAway: the store does not take it.
            OSError: the folder is not there, or cannot be read.
        """
        found = self._find(self._root)
        listed = self._listed = self._listed or self._ask_store()
        wanted = [file for file in due(found, self._last, now, is_over=is_over) if file.is_urgent or not only_urgent]
        newest, num_copied = listed.step, 0
        for file in wanted:
            step = step_of(file.name)
            if step is not None and newest is not None and step < newest:
                continue
            if not self._copy_file(file, now):
                continue
            num_copied += 1
            if step is not None:
                newest = step
                self._list(found, now, is_final=False)  # what comes after it may take long
        self._list(found, now, is_final=is_final and not num_copied)
        return num_copied > 0

    def _ask_store(self) -> Manifest:
        """Return what the store holds; what it holds besides, since a copy was interrupted, is removed."""
        listed = read_manifest(self._store, self._job_id) or Manifest(job_id=self._job_id, written_at=0.0)
        folder = folder_of(self._job_id)
        if stray := set(self._store.keys(folder)) - listed.keys:
            self._store.guard()
            self._store.remove(f"{folder}/{key}" for key in stray)
        self._files = dict(listed.files)
        return listed

    def _copy_file(self, file: FileToCopy, now: float) -> bool:
        """Copy one file, unless the store has it as it is; tell whether it has it now."""
        try:
            opened = take_packed(UntrustedPath(self._root, file.name))
        except OSError as error:
            self._refused[file.name] = error.strerror or str(error)
            return False
        try:
            stored = self._same(file, opened) or self._send(file, opened)
        except InterruptedCopy as interrupted:
            self._refused[file.name] = str(interrupted)
            if step_of(file.name) is not None:
                self._last[file.name] = LastCopy(mark=file.mark, at=now)  # what is torn stays so
            return False
        finally:
            opened.close()
        self._refused.pop(file.name, None)
        self._files[file.name] = stored
        self._last[file.name] = LastCopy(mark=file.mark, at=now)
        return True

    def _same(self, file: FileToCopy, opened: PackedFile) -> StoredFile | None:
        """Return what the store has of a file if that is what it holds now."""
        stored = self._files.get(file.name)
        if stored is None or file.name in self._last or stored.num_bytes != opened.num_bytes:
            return None
        digest = hashlib.sha256()
        for piece in _pieces(opened):
            digest.update(piece)
        return stored if digest.hexdigest() == stored.sha256 else None

    def _send(self, file: FileToCopy, opened: PackedFile) -> StoredFile:
        listed = self._listed.keys if self._listed is not None else frozenset()
        key = choose_key(file.name, listed | {stored.key for stored in self._files.values()})
        if key is None:
            raise InterruptedCopy("its name is too long")
        digest, num_bytes = hashlib.sha256(), 0

        def pieces() -> Iterator[bytes]:
            nonlocal num_bytes
            for piece in _checked(opened) if step_of(file.name) is not None else _pieces(opened):
                digest.update(piece)
                num_bytes += len(piece)
                yield piece
                if not file.is_urgent:
                    self._between()

        self._store.write(f"{folder_of(self._job_id)}/{key}", pieces(), opened.num_bytes)
        return StoredFile(key=key, num_bytes=num_bytes, sha256=digest.hexdigest())

    def _list(self, found: FilesToCopy, now: float, *, is_final: bool) -> None:
        """Write the list if it has changed, and then remove what it does not name any more."""
        assert self._listed is not None
        names = {file.name for file in found.files}
        self._refused = {name: why for name, why in self._refused.items() if name in names}
        new = Manifest(
            job_id=self._job_id,
            written_at=now,
            is_final=is_final,
            files=kept(self._files, found),
            left_out={**found.left_out, **self._refused},
        )
        before = self._listed
        if (new.files, new.left_out, new.is_final) == (before.files, before.left_out, before.is_final):
            return
        folder = folder_of(self._job_id)
        self._store.guard()
        self._store.write(f"{folder}/{MANIFEST}", [encode_manifest(new)])
        old = (before.keys | {file.key for file in self._files.values()}) - new.keys
        self._listed, self._files = new, dict(new.files)
        self._last = {name: last for name, last in self._last.items() if name in names}
        try:
            self._store.remove(f"{folder}/{key}" for key in old)
        except StoreAway:
            self._listed = None  # what was not removed is found when the store is asked again
            raise


def _pieces(opened: PackedFile) -> Iterator[bytes]:
    """Yield a file as long as it was when it was opened.

    Raises:
        InterruptedCopy: it cannot be read to there.
    """
    at = 0
    while at < opened.num_bytes:
        try:
            piece = opened.read_at(at, min(CHUNK, opened.num_bytes - at))
        except OSError as error:
            raise InterruptedCopy(f"it cannot be read: {error.strerror or error}") from error
        if not piece:
            raise InterruptedCopy("it became shorter while it was read")
        at += len(piece)
        yield piece


def _checked(opened: PackedFile) -> Iterator[bytes]:
    """Yield a checkpoint.

    Raises:
        InterruptedCopy: it is not whole, or was changed while it was read.
    """
    checksum, rest, begin = 0, b"", b""
    for piece in _pieces(opened):
        begin = begin or piece[: len(_MAGIC)]
        whole = rest + piece
        body, rest = whole[:-_CHECKSUM_BYTES], whole[-_CHECKSUM_BYTES:]
        checksum = zlib.crc32(body, checksum)
        yield piece
    if begin != _MAGIC or rest != checksum.to_bytes(_CHECKSUM_BYTES, "little"):
        raise InterruptedCopy("it is no whole checkpoint")
    facts, before = os.fstat(opened.file.descriptor), opened.file.facts
    if (facts.st_size, facts.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise InterruptedCopy("it was changed while it was read")
