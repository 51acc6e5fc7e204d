"""Runs imports, each in a process of its own, a few at a time. None leaves anything half done behind.

The process of an import writes into a folder of its own and ends with this server. When it has finished, the folder is
published here by one rename, and only then the data set is called ready. If the server is killed at any moment, the
next one removes what was half done and begins the import again (`recover`).
"""

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from pliant.catalog.children.child import Child, ChildProgram, ChildStopped
from pliant.catalog.children.queue import ChildQueue
from pliant.catalog.children.reach import AsServer, ChildIsolation, ChildReach
from pliant.catalog.children.sinks import LineSink, TailSink
from pliant.catalog.datasets.messages import (
    DATA,
    IMPORT_SPEC,
    MESSAGE,
    ImporterMessage,
    ImportRefusal,
    ImportResult,
    ImportSpec,
    ProgressReport,
)
from pliant.catalog.datasets.previews import DatasetPreviews
from pliant.catalog.datasets.uploads import Uploads
from pliant.catalog.pace import Pace
from pliant.core.dataset import DATASET_LIFECYCLE, Dataset, DatasetEvent, DatasetState, ImportProgress
from pliant.core.errors import NotFound, PliantError, Stale
from pliant.core.lifecycle import advance, is_final
from pliant.core.registry import Kept, Registry, iterate_nouns
from pliant.files import folder as folders
from pliant.files.space import translate_disk_errors

log = logging.getLogger(__name__)

MAX_RUNNING: Final = 2
MAX_BYTES: Final = 512 << 30
MAX_FILES: Final = 5_000_000
STOP_S: Final = 30.0
"""How long stopping may take: the process has to end, and what it wrote to be removed."""
_WORK: Final = ".new-"
_GONE: Final = ".gone-"
_CONTENT: Final = "data"
_LOOK_S: Final = 0.02
_MAX_ERROR_BYTES: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSettings:
    """How imports are carried out."""

    folder: Path
    """Where data sets lie."""
    data_root: Path
    """What people may name by path lies below it."""
    command: Sequence[str]
    """Starts the process of an import."""
    isolation: ChildIsolation
    """Keeps that process within its reach: what it reads is a stranger's, and may be made to mislead it."""
    max_running: int = MAX_RUNNING
    max_bytes: int = MAX_BYTES
    max_files: int = MAX_FILES


class Imports:
    """Runs imports and writes down what became of them. Safe to call from any thread."""

    def __init__(
        self, registry: Registry, uploads: Uploads, settings: ImportSettings, now: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._uploads = uploads
        self._settings = settings
        self._now = now
        self.previews = DatasetPreviews(settings.folder)
        self._progress: dict[str, ImportProgress] = {}
        self._pace = Pace(now)
        self._children = ChildQueue(settings.max_running, "pliant-import")
        self._cleaner = ThreadPoolExecutor(1, thread_name_prefix="pliant-clean-up")

    def begin(self, dataset: Dataset) -> None:
        """Import a data set in the background."""
        self._progress[dataset.name] = ImportProgress(phase="waiting for its turn")
        self._children.submit(dataset.name, lambda child: self._run(dataset, child))

    def progress(self, name: str) -> ImportProgress | None:
        """Return how far an import is; None if there is none."""
        return self._progress.get(name)

    def stop(self, name: str, who: str) -> None:
        """End an import; returns when nothing of it is left, or an import has just finished.

        Raises:
            TimeoutError: its process is still there.
        """
        if self._children.stop(name, who, STOP_S):
            self._stop(name, who)

    def recover(self) -> None:
        """Remove what an earlier server left half done, and begin its imports again. Call once, before all else."""
        with translate_disk_errors(self._settings.folder):
            self._settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            ready = set()
            again = []
            for kept in iterate_nouns(self._registry, Dataset):
                if is_final(DATASET_LIFECYCLE, kept.noun.state):
                    ready.add(Path(kept.noun.folder).name if not kept.noun.in_place else "")
                    ready.add(self.previews.name_of(kept.noun.name))
                else:
                    again.append(kept.noun)
            left = [place for place in self._settings.folder.iterdir() if place.name not in ready]
            leftovers = [place if place.name.startswith(_GONE) else self._set_aside(place) for place in left]
        self._cleaner.submit(_clear, leftovers)
        self._release_all_but({dataset.name for dataset in again})
        for dataset in again:
            log.info("the import of the data set %s was cut off and begins again", dataset.name)
            self.begin(dataset)

    def discard(self, folder: Path) -> None:
        """Remove the folder of a data set that is not kept any more; it is gone from its place at once."""
        with translate_disk_errors(self._settings.folder):
            if folder.parent == self._settings.folder and folder.exists():
                folders.remove(self._set_aside(folder))

    def _set_aside(self, folder: Path) -> Path:
        """Move a folder into a new one and return that, so that its own name is free at once."""
        leftover = Path(tempfile.mkdtemp(prefix=_GONE, dir=self._settings.folder))
        if folder.is_dir():
            folder.chmod(0o700)
        folder.rename(leftover / _CONTENT)
        return leftover

    def close(self) -> None:
        """End all imports; the next server begins them again."""
        self._children.close()
        self._cleaner.shutdown(wait=True, cancel_futures=True)

    def _run(self, dataset: Dataset, child: Child) -> None:
        try:
            with translate_disk_errors(self._settings.folder):
                work = Path(tempfile.mkdtemp(prefix=_WORK, dir=self._settings.folder))
            try:
                self._finish(dataset.name, self._import(dataset, child, work), work)
            finally:
                folders.remove(work)
        except ChildStopped as stopped:
            if stopped.reason:
                self._stop(dataset.name, stopped.reason)
        except Exception as error:
            log.exception("the import of the data set %s failed", dataset.name)
            self._give_up(dataset.name, error)

    def _stop(self, name: str, who: str) -> None:
        self._write(name, DatasetEvent.STOP, lambda dataset: replace(dataset, reason=f"{who} stopped its import"))

    def _give_up(self, name: str, error: Exception) -> None:
        reason = str(error) if isinstance(error, PliantError) else "the server could not carry it out; its log says why"
        try:
            self._write(name, DatasetEvent.FAIL, lambda dataset: replace(dataset, reason=reason))
        except PliantError:
            log.warning("the data set %s is imported again when the server is started the next time", name)

    def _import(self, dataset: Dataset, child: Child, work: Path) -> ImportResult | ImportRefusal:
        """Return what the process said at its end.

        Raises:
            ChildStopped: it was ended before.
        """
        outcome: ImportResult | ImportRefusal | None = None

        def take(line: bytes) -> None:
            nonlocal outcome
            message = _parse_message(line)
            if isinstance(message, ProgressReport):
                self._progress[dataset.name] = message.progress
                self._announce(dataset.name)
            elif message is not None:
                outcome = message

        errors = TailSink(_MAX_ERROR_BYTES)
        spec = self._spec_of(dataset, work)
        program = ChildProgram(command=self._settings.command, input=IMPORT_SPEC.dump_json(spec) + b"\n")
        confined = self._settings.isolation.confine(program, _reach_of(spec, work))
        code = child.run(confined, LineSink(take), errors)
        assert code is not None, "an import has no time limit"
        return outcome or ImportRefusal(reason=_describe_death(code, errors.text))

    def _announce(self, name: str) -> None:
        """Say that an import has come further; if that cannot be written, it is said the next time."""
        if self._pace.is_due(name):
            with suppress(PliantError):
                self._registry.announce(Dataset, name, at=self._now())

    def _spec_of(self, dataset: Dataset, work: Path) -> ImportSpec:
        settings = self._settings
        data_root = source = None
        num_bytes = None
        sha256 = dataset.source.sha256
        if dataset.source.path is not None:
            data_root = str(settings.data_root.resolve())
            source = str(settings.data_root / dataset.source.path)
        else:
            upload_id = dataset.source.upload_id or ""
            upload = self._uploads.require_held(upload_id, dataset.name)
            source, num_bytes = str(self._uploads.content(upload_id)), upload.num_bytes
            sha256 = sha256 or upload.sha256
        return ImportSpec(
            kind=dataset.kind,
            source=source,
            data_root=data_root,
            num_bytes=num_bytes,
            sha256=sha256,
            work=str(work),
            max_bytes=settings.max_bytes,
            max_files=settings.max_files,
            split=dataset.split,
            images=dataset.images,
            csv=dataset.csv,
        )

    def _finish(self, name: str, outcome: ImportResult | ImportRefusal, work: Path) -> None:
        match outcome:
            case ImportResult():
                self._publish(name, outcome, work)
            case ImportRefusal(reason=why):
                folders.remove(work)
                self._write(name, DatasetEvent.FAIL, lambda dataset: replace(dataset, reason=why))

    def _publish(self, name: str, done: ImportResult, work: Path) -> None:
        target = self._settings.folder / name
        self.previews.keep(name, work)
        if not done.in_place:
            with translate_disk_errors(self._settings.folder):
                folders.remove(target)
                folders.publish(work / DATA, target)
                target.chmod(folders.READ_ONLY_FOLDER)

        def ready(dataset: Dataset) -> Dataset:
            lay = self._settings.data_root / (dataset.source.path or "")
            folder = lay.resolve() if done.in_place else target
            content = done.content
            return replace(
                dataset, folder=str(folder), in_place=done.in_place, content=content, ready_at=self._now(), reason=""
            )

        kept = self._write(name, DatasetEvent.PUBLISH, ready)
        if kept is None:
            self.previews.discard(name)
            self.discard(target)

    def _write(self, name: str, event: DatasetEvent, change: Callable[[Dataset], Dataset]) -> Kept[Dataset] | None:
        """Write what became of an import. If people change the data set meanwhile, read it again and repeat.

        Returns:
            None if the data set is not kept any more.
        """
        while (kept := self._registry.get(Dataset, name)) is not None:
            state = advance(DATASET_LIFECYCLE, kept.noun.state, event)
            noun = replace(change(kept.noun), state=state)
            self._pace.forget(name)
            self._progress.pop(name, None)  # it is over for everybody who sees the new state
            try:
                written = self._registry.replace(noun, at=self._now(), revision=kept.revision)
            except (Stale, NotFound):
                continue
            self._release(noun, event)
            return written
        return None

    def _release_all_but(self, names: Collection[str]) -> None:
        """Release the uploads of imports that are over, if an earlier server was killed before it could."""
        for upload in self._uploads.list_taken():
            if upload.taken_by in names:
                continue
            kept = self._registry.get(Dataset, upload.taken_by)
            if kept is not None and kept.noun.state is DatasetState.READY and kept.noun.source.upload_id == upload.id:
                self._uploads.drop(upload.id)
            else:
                self._uploads.release(upload.id)

    def _release(self, dataset: Dataset, event: DatasetEvent) -> None:
        """Remove the upload of what is ready; keep that of what is not, to try again with other options."""
        upload_id = dataset.source.upload_id
        if upload_id is not None:
            if event is DatasetEvent.PUBLISH:
                self._uploads.drop(upload_id)
            else:
                self._uploads.release(upload_id)


def _reach_of(spec: ImportSpec, work: Path) -> ChildReach:
    """Return what the process of an import needs: its work folder, and its upload or what lies below the data root."""
    if spec.data_root is not None:
        return ChildReach(user=AsServer(), home=work, reads=(spec.data_root,))
    return ChildReach(user=AsServer(), home=work, writes=(str(Path(spec.source).parent),))


def _parse_message(line: bytes) -> ImporterMessage | None:
    try:
        return MESSAGE.validate_json(line)
    except ValidationError:
        log.warning("an import wrote a line that is no message: %.200r", line)
        return None


def _describe_death(code: int, errors: str) -> str:
    """Return why a process that gave no answer may have ended."""
    said = errors.strip().splitlines()
    how = f"was killed by signal {-code}, perhaps for lack of memory" if code < 0 else f"ended with code {code}"
    last = f"; it said: {said[-1]}" if said else ""
    return f"the process that imported it {how}{last}"


def _clear(leftovers: Sequence[Path]) -> None:
    """Remove what an earlier server left, as soon as its processes have ended."""
    for leftover in leftovers:
        try:
            _await_end(leftover / _CONTENT / "lock")
            folders.remove(leftover)
        except (OSError, TimeoutError) as error:
            log.warning("%s is left over and cannot be removed: %s", leftover, error)


def _await_end(lock: Path) -> None:
    """Wait until the process that an earlier server started is gone; it ends with its server.

    Raises:
        TimeoutError: it is still there.
    """
    if not lock.is_file():
        return
    deadline = time.monotonic() + STOP_S
    descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"a process still holds {lock}; end it, then start the server again") from None
                time.sleep(_LOOK_S)
            else:
                return
    finally:
        os.close(descriptor)
