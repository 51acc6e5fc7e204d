"""Algorithms of people's own, which choose the values of searches: one method per route, bodies in and answers out."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from pydantic import BaseModel

from pliant.api.algorithms import AlgorithmPage, AlgorithmPatch, AlgorithmRequest, AlgorithmView
from pliant.client.folders.pack import pack
from pliant.client.http.connection import if_match, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.pages import pages
from pliant.client.nouns.noun import NounClient, checked

_PAGE: Final = 1000
_TIMEOUT_S: Final = 300.0
"""The server loads the code before it answers."""
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".zip")
_ALGORITHM_PAGE: Final = LazyAdapter(AlgorithmPage)


class AlgorithmClient(NounClient[AlgorithmView]):
    """The algorithms at a server; errors as `Client` says.

    Example:
        >>> client.algorithms.add("my-search/", AlgorithmRequest(name="my-search"))
        >>> client.tune("train.py", sampler="my-search", ...)
    """

    _root = "/algorithms"
    _view = LazyAdapter(AlgorithmView)

    def list(self) -> tuple[AlgorithmView, ...]:
        """Return all that we may use, in the order of their names."""
        asked = pages(lambda after: self._connection.get(_ALGORITHM_PAGE, self._root, {"after": after, "limit": _PAGE}))
        return tuple(view for page in asked for view in page.algorithms)

    def add(self, code: Path | str, request: AlgorithmRequest | None = None, **settings: Any) -> AlgorithmView:
        """Install an algorithm: a folder, a single file, or an archive (tar, tar.gz, zip) that is sent as it is.

        Args:
            code: what holds optimizer.py or sampler.py at its top.
            request: its name and settings; or say them by name: `name="my-search"`.

        Raises:
            Conflict: the name is taken.
            InvalidInput: it cannot be used; with what it printed when the server loaded it.
        """
        body = request or checked(AlgorithmRequest, settings)
        return self._upload("POST", self._root, code, body, None)

    def replace(
        self, name: str, code: Path | str, patch: AlgorithmPatch | None = None, *, revision: int | None = None
    ) -> AlgorithmView:
        """Install a new version of an algorithm of ours; searches keep to what they began with.

        Args:
            patch: settings that change with it; the others stay.

        Raises:
            Stale: it is not at this revision any more.
        """
        return self._upload("PUT", self._path(name), code, patch, revision)

    def change(
        self, name: str, patch: AlgorithmPatch | None = None, *, revision: int | None = None, **settings: Any
    ) -> AlgorithmView:
        """Change what is said of an algorithm: `deadline_s=600`, `shared_with=["ben"]`; its code stays.

        Raises:
            Stale: it is not at this revision any more.
        """
        return self._send("PATCH", self._path(name), patch or checked(AlgorithmPatch, settings), revision)

    def _upload(
        self, method: str, path: str, code: Path | str, body: BaseModel | None, revision: int | None
    ) -> AlgorithmView:
        with _packed(Path(code).expanduser()) as archive:
            response = self._connection.call(
                method,
                path,
                data={} if body is None else {"settings": body.model_dump_json(exclude_unset=True)},
                files={"code": ("code.tar.gz", archive, "application/gzip")},
                headers=if_match(revision),
                timeout_s=max(_TIMEOUT_S, self._connection.timeout_s),
            )
        return parse(self._view, response)


@contextmanager
def _packed(code: Path) -> Iterator[IO[bytes]]:
    """Yield the archive that is sent: a folder or a file is packed."""
    if code.is_file() and code.name.endswith(_ARCHIVES):
        with code.open("rb") as archive:
            yield archive
        return
    with tempfile.TemporaryFile() as archive:
        pack(code, archive)
        archive.seek(0)
        yield archive
