"""Uploads that can be resumed: every byte that was acknowledged is on the disk, even if the server is killed after it.

A chunk counts as a whole or not at all: it is written, checked and synced before the offset moves. Uploads lie in a
folder each: `content`, and `upload.json`, which is replaced as a whole. It knows no HTTP and no data set but by name.
"""

import hashlib
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from pliant.catalog.pace import Pace
from pliant.core.access import Principal
from pliant.core.dataset import Upload
from pliant.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from pliant.files import folder as folders
from pliant.files.space import FreeBytes, check_room, free_bytes, translate_disk_errors

MAX_UPLOAD_BYTES: Final = 64 << 30
MAX_CHUNK_BYTES: Final = 64 << 20
MAX_OPEN: Final = 32
"""Uploads of one user at a time."""
KEPT_S: Final = 86_400.0
"""An upload is removed so long after its last chunk."""

_ID: Final = re.compile(r"[0-9a-f]{32}")
_UPLOAD: Final = TypeAdapter(Upload)


class WrongOffset(Conflict):
    """A chunk does not begin where the one before it ended."""

    def __init__(self, upload: Upload, given: int) -> None:
        self.offset = upload.offset
        super().__init__(f"the next chunk of upload {upload.id} begins at {upload.offset}, not at {given}; go on there")


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadLimits:
    """How large uploads may be, and how long they are kept."""

    max_bytes: int = MAX_UPLOAD_BYTES
    max_chunk_bytes: int = MAX_CHUNK_BYTES
    max_open: int = MAX_OPEN
    kept_s: float = KEPT_S


class Chunk:
    """A chunk that arrives: written at its place, but not counted before `commit`."""

    def __init__(self, path: Path, upload: Upload, max_bytes: int) -> None:
        self.upload = upload
        self.num_bytes = 0
        self._digest = hashlib.sha256()
        self._max_bytes = max_bytes
        self._folder = path.parent
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)

    def write(self, data: bytes) -> None:
        """Write what follows.

        Raises:
            TooLarge: the chunk is over its limit, or longer than what is left of the upload.
            NoSpace, Unavailable: the disk does not take it.
        """
        begin = self.upload.offset + self.num_bytes
        self.num_bytes += len(data)
        if self.num_bytes > self._max_bytes:
            raise TooLarge(f"a chunk is {self._max_bytes >> 20} MiB at most; send smaller ones")
        if begin + len(data) > self.upload.num_bytes:
            raise TooLarge(
                f"the chunk ends after the {self.upload.num_bytes} bytes that were announced for upload "
                f"{self.upload.id}; begin a new upload of the right length"
            )
        self._digest.update(data)
        with translate_disk_errors(self._folder):
            while data:
                written = os.pwrite(self._file, data, begin)
                data, begin = data[written:], begin + written

    def check(self, sha256: bytes | None) -> None:
        """Make the chunk last on the disk, if it is what the sender says.

        Raises:
            InvalidInput: it has another SHA-256 than it should, or is empty.
            NoSpace, Unavailable: the disk does not take it.
        """
        if sha256 is not None and sha256 != self._digest.digest():
            message = f"the chunk has the SHA-256 {self._digest.hexdigest()}, not {sha256.hex()}; send it again"
            raise InvalidInput.at("Content-Digest", message)
        if not self.num_bytes:
            raise InvalidInput.at("", "the chunk is empty; send the bytes that follow the offset")
        with translate_disk_errors(self._folder):
            os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Uploads:
    """The uploads of a server. Safe to call from any thread."""

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], float],
        limits: UploadLimits | None = None,
        free: FreeBytes = free_bytes,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Keep uploads in a folder; `changed` is called with whose have changed, once a second at most for a chunk."""
        self.limits = limits or UploadLimits()
        self._folder = folder
        self._now = now
        self._free = free
        self._changed = changed
        self._pace = Pace(now)
        self._lock = threading.RLock()
        with translate_disk_errors(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def create(self, owner: str, num_bytes: int, *, sha256: str = "", fingerprint: str = "") -> Upload:
        """Begin an upload.

        Raises:
            TooLarge: it would be over the limit.
            NoSpace: the disk has no room for it and those that have begun.
            Conflict: the owner has too many that are not finished.
        """
        if num_bytes > self.limits.max_bytes:
            raise TooLarge(
                f"{num_bytes} bytes are more than the {self.limits.max_bytes} that an upload may have; put the data "
                f"below the server's data root instead"
            )
        with self._lock:
            self.sweep()
            there = list(self._all())
            if sum(upload.owner == owner for upload in there) >= self.limits.max_open:
                raise Conflict(f"{owner!r} has {self.limits.max_open} open uploads; finish or remove some first")
            awaited = sum(upload.num_bytes - upload.offset for upload in there)
            check_room(self._folder, num_bytes + awaited, free=self._free)
            now = self._now()
            upload = Upload(
                id=secrets.token_hex(16),
                owner=owner,
                num_bytes=num_bytes,
                sha256=sha256,
                fingerprint=fingerprint,
                created_at=now,
                expires_at=now + self.limits.kept_s,
            )
            with translate_disk_errors(self._folder):
                self._place(upload.id).mkdir(mode=0o700)
                self.content(upload.id).touch(mode=0o600)
                self._write(upload)
        self._changed(owner)
        return upload

    def get(self, upload_id: str, caller: Principal) -> Upload:
        """Return an upload.

        Raises:
            NotFound: there is none that the caller began, or it has expired.
        """
        with self._lock:
            upload = self._read(upload_id) if _ID.fullmatch(upload_id) else None
        if upload is None or not caller.owns(upload.owner) or self._is_expired(upload):
            raise NotFound(f"there is no upload {upload_id!r:.80}; it may have expired: begin a new one")
        return upload

    def list(self, caller: Principal) -> tuple[Upload, ...]:
        """Return the uploads that the caller began, oldest first."""
        with self._lock:
            there = [upload for upload in self._all() if upload.owner == caller.name and not self._is_expired(upload)]
        return tuple(sorted(there, key=lambda upload: (upload.created_at, upload.id)))

    def chunk(self, upload_id: str, caller: Principal, offset: int) -> Chunk:
        """Return a place to write the chunk that begins at `offset`; the caller closes it.

        Raises:
            NotFound: as for `get`.
            WrongOffset: the next chunk begins elsewhere.
            Conflict: the upload is being imported.
        """
        upload = self.get(upload_id, caller)
        _refuse_taken(upload)
        if offset != upload.offset:
            raise WrongOffset(upload, offset)
        with translate_disk_errors(self._folder):
            return Chunk(self.content(upload_id), upload, self.limits.max_chunk_bytes)

    def commit(self, chunk: Chunk, caller: Principal) -> Upload:
        """Count a chunk that was checked; from now on it is acknowledged.

        Raises:
            NotFound, Conflict: the upload is gone, or was taken meanwhile.
            WrongOffset: another chunk took this place meanwhile.
        """
        with self._lock:
            upload = self.get(chunk.upload.id, caller)
            _refuse_taken(upload)
            if upload.offset != chunk.upload.offset:
                raise WrongOffset(upload, chunk.upload.offset)
            expires_at = self._now() + self.limits.kept_s
            offset = upload.offset + chunk.num_bytes
            upload = self._save(replace(upload, offset=offset, expires_at=expires_at))
        if self._pace.is_due(upload.id) or upload.complete:
            self._changed(upload.owner)
        return upload

    def remove(self, upload_id: str, caller: Principal) -> None:
        """Remove an upload that its owner does not want to finish.

        Raises:
            NotFound, Conflict: as for `chunk`.
        """
        with self._lock:
            upload = self.get(upload_id, caller)
            _refuse_taken(upload)
            self.drop(upload_id)
        self._changed(upload.owner)

    def take(self, upload_id: str, caller: Principal, dataset: str) -> Upload:
        """Keep an upload for a data set, so that nobody changes it.

        Raises:
            NotFound, Conflict: as for `chunk`, or it is not complete.
        """
        with self._lock:
            upload = self.get(upload_id, caller)
            _refuse_taken(upload)
            if not upload.complete:
                raise Conflict(
                    f"upload {upload_id} has {upload.offset} of its {upload.num_bytes} bytes; send the rest first"
                )
            upload = self._save(replace(upload, taken_by=dataset))
        self._changed(upload.owner)
        return upload

    def require_held(self, upload_id: str, dataset: str) -> Upload:
        """Return the upload that was taken for a data set.

        Raises:
            NotFound: it is not there any more.
        """
        with self._lock:
            upload = self._read(upload_id)
        if upload is None or upload.taken_by != dataset:
            raise NotFound(f"the upload {upload_id!r:.80} of the data set {dataset!r} is gone; send it again")
        return upload

    def release(self, upload_id: str) -> None:
        """Let an upload be used again, for as long as if it had just been finished; one that is gone is fine."""
        with self._lock:
            upload = self._read(upload_id)
            if upload is not None:
                self._save(replace(upload, taken_by="", expires_at=self._now() + self.limits.kept_s))
        if upload is not None:
            self._changed(upload.owner)

    def list_taken(self) -> tuple[Upload, ...]:
        """Return those that data sets hold."""
        with self._lock:
            return tuple(upload for upload in self._all() if upload.taken_by)

    def drop(self, upload_id: str) -> None:
        """Remove an upload, even one that a data set holds; one that is gone is fine."""
        self._pace.forget(upload_id)
        with self._lock, translate_disk_errors(self._folder):
            folders.remove(self._place(upload_id))

    def sweep(self) -> None:
        """Remove what has expired, and what a server that was killed has not finished to make or to remove."""
        with self._lock, translate_disk_errors(self._folder):
            for place in self._folder.iterdir():
                upload = self._read(place.name)
                if upload is None or self._is_expired(upload):
                    folders.remove(place)

    def content(self, upload_id: str) -> Path:
        """Return the file with the bytes; it may be longer than what is acknowledged, never than the whole."""
        return self._place(upload_id) / "content"

    def _place(self, upload_id: str) -> Path:
        return self._folder / upload_id

    def _all(self) -> Iterator[Upload]:
        for place in self._folder.iterdir():
            if (upload := self._read(place.name)) is not None:
                yield upload

    def _read(self, upload_id: str) -> Upload | None:
        with suppress(FileNotFoundError, NotADirectoryError, ValidationError):
            return _UPLOAD.validate_json((self._place(upload_id) / "upload.json").read_bytes())
        return None

    def _save(self, upload: Upload) -> Upload:
        with translate_disk_errors(self._folder):
            self._write(upload)
        return upload

    def _write(self, upload: Upload) -> None:
        folders.write_whole(self._place(upload.id) / "upload.json", _UPLOAD.dump_json(upload))

    def _is_expired(self, upload: Upload) -> bool:
        return not upload.taken_by and upload.expires_at <= self._now()


def _refuse_taken(upload: Upload) -> None:
    if upload.taken_by:
        raise Conflict(f"upload {upload.id} is being imported as the data set {upload.taken_by!r}; wait, or stop that")
