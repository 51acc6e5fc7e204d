"""The archives of versions: each is whole in itself, kept under its SHA-256, and stays as long as its version.

Of a trained job the code that it was submitted with and its trained weights make one archive, so that neither changes
nor goes when the job is deleted.
"""

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.catalog.endpoints.detect import detect_model
from pliant.core.errors import InvalidInput, NotFound
from pliant.core.job import Job
from pliant.core.serving_profile import Runner
from pliant.files import folder as folders
from pliant.files.archive import MODEL_LIMITS, unpack
from pliant.files.content_store import CODE, ContentStore
from pliant.files.pack import pack_files, walk
from pliant.files.space import translate_disk_errors
from pliant.files.untrusted.opening import copy, take_file
from pliant.files.untrusted.path import UntrustedPath

WEIGHTS: Final = ".pliant/weights.pt"
"""Where a trained job's weights lie in the archive of its version."""
_DRAFT: Final = ".draft-"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelArchive:
    """What was deployed, as it is kept."""

    checksum: str
    num_bytes: int
    file: str
    runner: Runner


class ModelArchives:
    """The archives below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._contents = ContentStore(root)

    def path(self, checksum: str) -> Path:
        """Return where an archive is kept."""
        return self._contents.path(checksum, CODE)

    def keep(self, archive: Path, file: str | None) -> ModelArchive:
        """Keep an archive that somebody sent; `file` is what they say is run.

        Raises:
            InvalidInput, TooLarge: it cannot be unpacked, or holds nothing that can be run.
            Unavailable: the disk cannot take it.
        """
        with self._draft() as draft:
            unpack(archive, draft, limits=MODEL_LIMITS)
            found, runner = detect_model(draft, file)
        return self._keep(archive, found, runner)

    def keep_job(self, job: Job, code: Path, weights: UntrustedPath) -> ModelArchive:
        """Keep the code of a trained job with its weights.

        Raises:
            NotFound: it has saved no model.
            InvalidInput, TooLarge: its code cannot be unpacked.
            Unavailable: the disk cannot take it.
        """
        with self._draft() as draft, translate_disk_errors(self._root):
            unpack(code, draft)
            target = draft / WEIGHTS
            target.parent.mkdir(exist_ok=True)
            try:
                trained = take_file(weights)
            except FileNotFoundError as error:
                raise NotFound(
                    f"{job.id} has saved no model yet; deploy it when it has: `pliant result {job.id}` shows that"
                ) from error
            try:
                with target.open("wb") as out:
                    copy(trained, out, max_bytes=trained.num_bytes)
            finally:
                trained.close()
            with tempfile.NamedTemporaryFile(dir=self._root, prefix=_DRAFT) as packed:
                packed.writelines(pack_files(walk(draft)))
                packed.flush()
                return self._keep(Path(packed.name), job.spec.script, "job")

    def remove(self, checksums: Collection[str]) -> None:
        """Remove archives that no version needs any more."""
        self._contents.remove([self.path(checksum).name for checksum in checksums])

    def sweep(self, used: Collection[str]) -> None:
        """Remove all archives but those of these checksums, and what a killed server has left."""
        if self._root.is_dir():
            for path in self._root.glob(f"{_DRAFT}*"):
                folders.remove(path) if path.is_dir() else path.unlink(missing_ok=True)
        self._contents.sweep([self.path(checksum).name for checksum in used])

    def _keep(self, archive: Path, file: str, runner: Runner) -> ModelArchive:
        checksum = self._contents.keep(archive, CODE)
        return ModelArchive(checksum=checksum, num_bytes=archive.stat().st_size, file=file, runner=runner)

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        with translate_disk_errors(self._root):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=self._root))
        try:
            yield draft
        finally:
            folders.remove(draft)


def refuse_without_model(job: Job) -> None:
    """Refuse a job whose trained model nothing can be made of.

    Raises:
        InvalidInput: it is a fixed job, or serves an endpoint itself.
    """
    if job.spec.endpoint is not None:
        raise InvalidInput.at("job", f"{job.id} serves the endpoint {job.spec.endpoint.name!r}; name a trained job")
    if job.spec.fixed:
        raise InvalidInput.at(
            "job",
            f"{job.id} is a fixed job, whose script builds no `Run` to take the model from; deploy a folder with its "
            f"model and a serve.py instead",
        )
