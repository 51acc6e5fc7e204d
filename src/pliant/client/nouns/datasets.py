"""Data sets and uploads: one method per route, and an upload that takes itself up again wherever it broke off."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pliant.api.datasets import DatasetPage, DatasetPatch, DatasetRequest, SourceRequest, UploadPage, UploadRequest
from pliant.client.folders.data_source import DataSource, source_of
from pliant.client.http.connection import Params, if_match, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.pages import pages
from pliant.client.http.patience import Patience, observe
from pliant.client.nouns.noun import NounClient, checked
from pliant.core.dataset import Dataset, DatasetState, Upload
from pliant.core.errors import Conflict, NoSpace, PliantError, Unavailable
from pliant.files.digest import content_digest

CHUNK_BYTES: Final = 8 << 20
"""What a cut connection costs at most."""

_PAGE: Final = 1000
_TIMEOUT_S: Final = 120.0
"""Of what waits for a disk."""
_DATASET_PAGE: Final = LazyAdapter(DatasetPage)
_UPLOAD: Final = LazyAdapter(Upload)
_UPLOAD_PAGE: Final = LazyAdapter(UploadPage)

OnProgress = Callable[[int, int], None]
"""Hears how many bytes are safe on the server, and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A complete upload."""

    upload_id: str
    sha256: str
    """Of all that was sent, in hex; the server compares."""


class DatasetClient(NounClient[Dataset]):
    """The data sets of a server."""

    _root = "/datasets"
    _view = LazyAdapter(Dataset)

    def list(self, *, states: Iterable[DatasetState] = ()) -> tuple[Dataset, ...]:
        """Return all data sets that we see, in the order of their names."""
        params: Params = {"limit": _PAGE, "state": [state.value for state in states]}
        asked = pages(lambda after: self._connection.get(_DATASET_PAGE, self._root, {**params, "after": after}))
        return tuple(dataset for page in asked for dataset in page.datasets)

    def add(self, request: DatasetRequest) -> Dataset:
        """Begin to import a data set."""
        return self._send("POST", self._root, request)

    def add_files(self, path: Path | str, name: str, *, kind: str = "any", **fields: Any) -> Dataset:
        """Upload a folder, an archive or a CSV, and begin to import it; `wait` waits for its end.

        What breaks off goes on by itself, or when the same is asked for again.

        Args:
            path: what is uploaded.
            name: of the data set.
            kind: `images`, `csv`, or `any`: a folder as it is.
            fields: others of `DatasetRequest`.

        Raises:
            InvalidInput: with all that is wrong with it; before anything is sent, as far as it can be seen.
            TooLarge, NoSpace, Conflict, Unavailable: as for `upload`.
        """
        unsent = {"upload_id": "0" * 32}
        request = checked(DatasetRequest, {**fields, "name": name, "kind": kind, "source": unsent})
        sent = self.upload(source_of(Path(path).expanduser()))
        source = SourceRequest(upload_id=sent.upload_id, sha256=sent.sha256)
        return self.add(request.model_copy(update={"source": source}))

    def change(self, name: str, patch: DatasetPatch, *, revision: int | None = None) -> Dataset:
        """Change what is said of a data set, or who may use it.

        Raises:
            Stale: it is not at this revision any more.
        """
        return self._send("PATCH", self._path(name), patch, revision)

    def stop(self, name: str) -> Dataset:
        """End an import; nothing of it is left."""
        return parse(self._view, self._connection.call("POST", f"{self._path(name)}/stop", timeout_s=_TIMEOUT_S))

    def remove(self, name: str, *, revision: int | None = None) -> None:
        """Forget a data set and remove its files."""
        self._connection.call("DELETE", self._path(name), headers=if_match(revision), timeout_s=_TIMEOUT_S)

    def wait(
        self, name: str, *, timeout_s: float, on_poll: Callable[[Dataset], None] = lambda _: None, poll_s: float = 0.2
    ) -> Dataset:
        """Wait until the import has ended and return what became of it; `on_poll` hears of it meanwhile.

        Raises:
            TimeoutError: it has not ended after `timeout_s`.
        """
        for dataset in observe(lambda: self.get(name), timeout_s=timeout_s, poll_s=poll_s):
            on_poll(dataset)
            if dataset.state is not DatasetState.IMPORTING:
                return dataset
        raise TimeoutError(f"the data set {name!r} is not imported after {timeout_s:g} s")

    def uploads(self) -> UploadPage:
        """Return the uploads that we began."""
        return self._connection.get(_UPLOAD_PAGE, "/uploads")

    def upload(self, source: DataSource, on_progress: OnProgress = lambda _done, _total: None) -> Sent:
        """Send all bytes of a source, those first that the server has not got of it yet.

        What was begun earlier, by whichever client, is gone on with. A connection that is lost, or a server that is
        started again, does not matter.

        Raises:
            TooLarge, NoSpace: the server does not take so much.
            Conflict: somebody else sends the same.
            Unavailable: the server stayed away for longer than our patience.
        """
        page = self.uploads()
        upload = self._find_or_begin(page, source)
        size = min(CHUNK_BYTES, page.max_chunk_bytes)
        digest = hashlib.sha256()
        offset = 0
        on_progress(upload.offset, source.num_bytes)
        for chunk in _chunks(source, size, upload.offset):
            digest.update(chunk)
            if offset >= upload.offset:
                upload = self._put(upload, offset, chunk)
                on_progress(upload.offset, source.num_bytes)
            offset += len(chunk)
        return Sent(upload_id=upload.id, sha256=digest.hexdigest())

    def give_up(self, upload_id: str) -> None:
        """Remove what was sent of an upload."""
        self._connection.call("DELETE", _upload_path(upload_id))

    def _find_or_begin(self, page: UploadPage, source: DataSource) -> Upload:
        for upload in page.uploads:
            same = upload.fingerprint == source.fingerprint and upload.num_bytes == source.num_bytes
            if same and not upload.taken_by:
                return upload
        request = UploadRequest(num_bytes=source.num_bytes, fingerprint=source.fingerprint)
        return parse(_UPLOAD, self._connection.send("POST", "/uploads", request))

    def _put(self, upload: Upload, offset: int, chunk: bytes) -> Upload:
        """Send a chunk until the server has it."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Digest": content_digest(hashlib.sha256(chunk).digest()),
        }
        patience = Patience()
        while True:
            try:
                params: Params = {"offset": offset}
                answer = self._connection.call(
                    "PUT",
                    _upload_path(upload.id),
                    params=params,
                    content=chunk,
                    headers=headers,
                    timeout_s=max(_TIMEOUT_S, self._connection.timeout_s),
                )
                return parse(_UPLOAD, answer)
            except NoSpace:
                raise
            except Unavailable as error:
                patience.wait_after(error)
            except Conflict as error:
                present = self._offset_of(upload, error)
                if present.offset == offset + len(chunk):
                    return present  # it had come, only the answer was lost
                if present.offset != offset:
                    raise Conflict(f"somebody else sends the same files ({error}); wait for its end") from error
                patience.wait_after(error)

    def _offset_of(self, upload: Upload, cause: PliantError) -> Upload:
        patience = Patience()
        while True:
            try:
                return self._connection.get(_UPLOAD, _upload_path(upload.id))
            except Unavailable:
                patience.wait_after(cause)


def _chunks(source: DataSource, size: int, begin: int) -> Iterator[bytes]:
    """Yield the bytes of a source in chunks that meet at `begin`; those before it are only to be looked at."""
    gathered = bytearray()
    offset = 0
    for piece in source.pieces():
        gathered += piece
        while gathered and len(gathered) >= (limit := min(size, begin - offset) if offset < begin else size):
            yield bytes(gathered[:limit])
            del gathered[:limit]
            offset += limit
    if gathered:
        yield bytes(gathered)


def _upload_path(upload_id: str) -> str:
    return f"/uploads/{quote(upload_id, safe='')}"
