"""One object store, by `fsspec`: the only module that imports it, or what it needs for S3 and Google's storage.

Keys are ways below the URL that it was opened with. An object is there whole or not at all: one that is written in
parts is put together at the end, and what could not be written to its end leaves nothing, at least when the next one
who opens the store calls `drop_unfinished`. Whoever asks waits: every request has a deadline, and is tried a few times.
"""

import importlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import fsspec

from pliant.objects.location import SCHEMES, scheme_of

PART_BYTES: Final = 16 << 20
"""An object of more is written in parts of so many bytes, and of more than that if it is very long."""
_NUM_PARTS: Final = 5_000
"""S3 takes twice as many of one object."""
_DRAFT: Final = ".part"
"""What a file is called that is not written to its end: folders have no such thing by themselves."""
_CONNECT_S: Final = 5
_ANSWER_S: Final = 60
_NUM_TRIES: Final = 3
_S3: Final = {
    "use_listings_cache": False,
    "default_block_size": PART_BYTES,
    "config_kwargs": {
        "connect_timeout": _CONNECT_S,
        "read_timeout": _ANSWER_S,
        "retries": {"max_attempts": 1, "mode": "standard"},
    },
}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {"s3": _S3, "gs": {"use_listings_cache": False}, "file": {}}
_FAULTS: Final = {
    "s3": ("botocore.exceptions.BotoCoreError", "botocore.exceptions.ClientError", "aiohttp.ClientError"),
    "gs": ("gcsfs.retry.HttpError", "google.auth.exceptions.GoogleAuthError", "aiohttp.ClientError"),
    "file": (),
}
"""What goes wrong besides `OSError`."""


class StoreAway(OSError):
    """The store has not done what it was asked for. Its message says what and why, in words."""


class ObjectStore:
    """Writes, reads, lists and removes objects below one URL.

    Raises:
        StoreAway: what the URL needs is not installed.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.guard: Callable[[], None] = lambda: None
        """Raises `StoreAway` if what the store says is not ours to change any more; asked before that is done."""
        scheme = scheme_of(url)
        self._is_folder = scheme == "file"
        try:
            self._faults: tuple[type[BaseException], ...] = (OSError, *map(_named, _FAULTS[scheme]))
            self._files: Any = fsspec.filesystem(scheme, skip_instance_cache=True, **_OPTIONS[scheme])
        except ImportError as error:
            raise StoreAway(f"{scheme}:// needs `pip install '{SCHEMES[scheme]}'` ({error})") from error
        if hasattr(self._files, "retries"):
            self._files.retries = _NUM_TRIES
        self._root: str = self._files._strip_protocol(self.url)

    def write(self, key: str, pieces: Iterable[bytes], num_bytes: int = 0) -> None:
        """Write an object of about so many bytes, whole or not at all.

        Whatever the pieces raise is passed on, and nothing is there then.
        """
        with self._in_words("write", key):
            if self._is_folder:
                self._write_file(self._path(key), pieces)
            else:
                self._write_object(self._path(key), pieces, max(PART_BYTES, num_bytes // _NUM_PARTS))

    def read(self, key: str, num_bytes: int) -> Iterator[bytes]:
        """Yield the bytes of an object that has so many.

        Raises:
            StoreAway: it is not there, or cannot be read.
        """
        for start in range(0, num_bytes, PART_BYTES):
            with self._in_words("read", key):
                piece: bytes = self._files.cat_file(
                    self._path(key), start=start, end=min(num_bytes, start + PART_BYTES)
                )
            yield piece

    def read_small(self, key: str, max_bytes: int) -> bytes | None:
        """Return at most so many bytes of an object that is not empty; None if there is none."""
        with self._in_words("read", key):
            try:
                found: bytes = self._files.cat_file(self._path(key), start=0, end=max_bytes)
            except FileNotFoundError:
                return None
            return found

    def keys(self, folder: str) -> list[str]:
        """Return the keys of all objects below a folder, by their ways from there."""
        below = self._path(folder) + "/"
        with self._in_words("list", folder):
            found: list[str] = self._files.find(below)
        return sorted(path[len(below) :] for path in found if path.startswith(below))

    def remove(self, keys: Iterable[str]) -> None:
        """Remove objects; those that are not there are fine."""
        paths = list(map(self._path, keys))
        with self._in_words("remove", f"{len(paths)} objects"):
            if paths and not self._is_folder:
                with suppress(FileNotFoundError):  # Google's says so of one; the others are gone or are not, too
                    self._files.rm(paths)
                    return
            for path in paths:
                with suppress(FileNotFoundError):
                    self._files.rm_file(path)

    def remove_folder(self, folder: str) -> None:
        """Remove all objects below a folder."""
        self.remove([f"{folder}/{key}" for key in self.keys(folder)])
        if self._is_folder:
            with self._in_words("remove", folder), suppress(FileNotFoundError):
                self._files.rm(self._path(folder), recursive=True)

    def drop_unfinished(self) -> None:
        """Remove what was left of objects that were not written to their ends; nobody writes there meanwhile."""
        with self._in_words("clean up", self.url):
            if self._is_folder:
                for path in self._files.find(self._root):
                    if path.endswith(_DRAFT):
                        self._files.rm_file(path)
            elif hasattr(self._files, "call_s3"):
                self._drop_parts()

    def probe(self) -> None:
        """Write an object, read it, and remove it.

        Raises:
            StoreAway: one of that cannot be done.
        """
        key, content = f".probe-{secrets.token_hex(8)}", secrets.token_bytes(16)
        self.write(key, [content])
        try:
            if self.read_small(key, 2 * len(content)) != content:
                raise StoreAway(f"what was written to {self.url} does not come back as it was")
        finally:
            self.remove([key])
        if self.read_small(key, 1) is not None:
            raise StoreAway(f"what was removed from {self.url} is still there")

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _write_object(self, path: str, pieces: Iterable[bytes], part_bytes: int) -> None:
        file = self._files.open(path, "wb", block_size=part_bytes)
        try:
            for piece in pieces:
                file.write(piece)
            file.close()
        except BaseException:
            with suppress(*self._faults):
                file.discard()
            file.closed = True  # or it would be written after all, when it is forgotten
            raise

    def _write_file(self, path: str, pieces: Iterable[bytes]) -> None:
        draft = path + _DRAFT
        self._files.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with self._files.open(draft, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)
        finally:
            with suppress(FileNotFoundError):
                self._files.rm_file(draft)

    def _drop_parts(self) -> None:
        bucket, _, prefix = self._root.partition("/")
        while uploads := self._unfinished(bucket, f"{prefix}/" if prefix else ""):
            for upload in uploads:
                self._files.call_s3(
                    "abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                )

    def _unfinished(self, bucket: str, prefix: str) -> list[dict[str, str]]:
        listed: dict[str, Any] = self._files.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix)
        uploads: list[dict[str, str]] = listed.get("Uploads", [])
        return uploads

    @contextmanager
    def _in_words(self, what: str, which: str) -> Iterator[None]:
        try:
            yield
        except (StoreAway, InterruptedCopy):
            raise
        except self._faults as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise StoreAway(f"{self.url} cannot {what} {which}: {said:.300}") from error


class InterruptedCopy(Exception):
    """Raised by who gives the pieces of an object: it is not to be written after all."""


def _named(name: str) -> type[BaseException]:
    module, _, attribute = name.rpartition(".")
    found: type[BaseException] = getattr(importlib.import_module(module), attribute)
    return found
