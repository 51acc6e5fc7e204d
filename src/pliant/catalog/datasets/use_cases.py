"""The use cases of people on data sets: add, see, share, stop, remove, use in a job. Who may what is checked here."""

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pliant.catalog.datasets.imports import Imports, ImportSettings
from pliant.catalog.datasets.uploads import UploadLimits, Uploads
from pliant.catalog.sharing import is_visible, no_such_name, require_owner, require_visible, take_page
from pliant.core.access import Principal, VisibleJobs, name_once
from pliant.core.dataset import DataPlace, Dataset, DatasetState
from pliant.core.errors import Conflict, InvalidInput, PliantError, Problem
from pliant.core.event import EventKind
from pliant.core.preview import DatasetPreview, nothing
from pliant.core.registry import NAME, Kept, Registry, iterate_nouns
from pliant.files.space import cause_of

_MAX_SHOWN: Final = 8
_NOTHING_LEFT: Final = (DatasetState.FAILED, DatasetState.STOPPED)


class DatasetCatalog:
    """The data sets of a server. Safe to call from any thread."""

    def __init__(
        self,
        registry: Registry,
        *,
        uploads: Uploads,
        imports: Imports,
        data_root: Path,
        now: Callable[[], float],
        users: Callable[[str], Sequence[str]],
    ) -> None:
        """Prepare to answer; `users` returns the unfinished jobs that use a data set."""
        self.uploads = uploads
        self.imports = imports
        self._registry = registry
        self._data_root = data_root
        self._now = now
        self._users = users
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    @property
    def data_root(self) -> Path:
        """The folder that the data lie in which are on the server already."""
        return self._data_root

    def start(self) -> None:
        """Go on with what an earlier server left; call once, when this server is the one that leads."""
        self.uploads.sweep()
        self.imports.recover()

    def close(self) -> None:
        """End all imports; the next server begins them again."""
        self.imports.close()

    def add(self, dataset: Dataset, caller: Principal) -> Dataset:
        """Begin to import a data set for somebody, in the place of one of theirs whose import failed or was stopped.

        Raises:
            InvalidInput: the name or the path cannot be one.
            NotFound: there is no such path or upload.
            Conflict: the name is taken, or the upload is not complete.
        """
        self._check(dataset)
        upload_id = dataset.source.upload_id
        if upload_id is not None:
            self.uploads.get(upload_id, caller)
        now = self._now()
        self._free_name(dataset.name, caller)
        kept = self._registry.add(_apply(dataset, {"owner": caller.name, "created_at": now}), at=now)
        if upload_id is not None:
            try:
                self.uploads.take(upload_id, caller, dataset.name)
            except BaseException:
                self._registry.remove(Dataset, dataset.name)
                raise
        self.imports.begin(kept.noun)
        return self._with_progress(kept)

    def _free_name(self, name: str, caller: Principal) -> None:
        """Forget a data set of theirs of which an import left nothing but its name."""
        kept = self._find(name)
        if kept is not None and kept.noun.owner == caller.name and kept.noun.state in _NOTHING_LEFT:
            self.remove(name, caller, revision=kept.revision)

    def list(
        self, caller: Principal, *, states: Sequence[DatasetState] = (), after: str = "", limit: int = 100
    ) -> tuple[tuple[Dataset, ...], str | None]:
        """Return those that somebody sees, in order of name, and where the next page begins."""

        def is_shown(dataset: Dataset) -> bool:
            shown = caller.sees(dataset.owner, dataset.shared_with)
            return shown and (not states or dataset.state in states)

        page, following = take_page(iterate_nouns(self._registry, Dataset, after=after), is_shown, limit)
        return tuple(self._with_progress(kept) for kept in page), following

    def get(self, name: str, caller: Principal) -> Dataset:
        """Return a data set.

        Raises:
            NotFound: none that they may see.
        """
        return self._with_progress(self._require_visible(name, caller))

    def preview(self, name: str, caller: Principal) -> DatasetPreview:
        """Return what a data set looks like.

        Raises:
            NotFound: none that they may see.
        """
        noun = self._require_visible(name, caller).noun
        if noun.state is DatasetState.READY:
            return self.imports.previews.get(name)
        if noun.state is DatasetState.IMPORTING:
            return nothing("it is still being imported")
        return nothing(f"its import {noun.state.value.replace('stopped', 'was stopped')}, and left nothing")

    def change(
        self, name: str, caller: Principal, changes: Mapping[str, Any], *, revision: int | None = None
    ) -> Dataset:
        """Change what is said of a data set, or who may use it; `changes` are fields with their new values.

        Raises:
            NotFound, Forbidden: it is not there for them, or not theirs.
            Stale: it is not at `revision` any more.
        """
        kept = self._require_own(name, caller)
        # without a revision of the caller's, what is replaced is at least what was just read
        expected = kept.revision if revision is None else revision
        changed = _apply(kept.noun, changes)
        return self._with_progress(self._registry.replace(changed, at=self._now(), revision=expected))

    def stop(self, name: str, caller: Principal) -> Dataset:
        """End an import; what it has written is removed.

        Raises:
            NotFound, Forbidden: as for `change`.
            Conflict: it is not being imported.
        """
        noun = self._require_own(name, caller).noun
        if noun.state is DatasetState.IMPORTING:
            self.imports.stop(name, caller.name)
            noun = self._require_own(name, caller).noun
        if noun.state is not DatasetState.STOPPED:
            raise Conflict(f"the data set {name!r} is {noun.state.value}, it is not being imported")
        return self.get(name, caller)

    def remove(self, name: str, caller: Principal, *, revision: int | None = None) -> None:
        """Forget a data set and remove its files; those of one that is used where it lies stay.

        Raises:
            NotFound, Forbidden, Stale: as for `change`.
            Conflict: jobs that have not ended use it, or it is being imported.
        """
        noun = self._require_own(name, caller).noun
        if noun.state is DatasetState.IMPORTING:
            raise Conflict(f"the data set {name!r} is still being imported; stop that first")
        with self._lock:
            if jobs := self._users(name):
                shown = ", ".join(jobs[:_MAX_SHOWN]) + (" and more" if len(jobs) > _MAX_SHOWN else "")
                raise Conflict(f"the data set {name!r} is in use by {shown}; wait for the end, or stop them")
            if self._held[name]:
                raise Conflict(f"a job that uses the data set {name!r} is just being submitted; try again")
            self._registry.remove(Dataset, name, revision=revision)
            self.imports.previews.discard(name)
        if noun.folder and not noun.in_place:
            self.imports.discard(Path(noun.folder))

    @contextmanager
    def using(self, name: str | None, visible: VisibleJobs | None) -> Iterator[DataPlace | Problem | None]:
        """Yield where a data set lies, or why it cannot be used; until the end of the block nobody removes it."""
        if name is None:
            yield None
            return
        with self._lock:
            self._held[name] += 1
        try:
            kept = self._find(name)
            if kept is None or not is_visible(kept.noun, visible):
                yield _problem(no_such_name(self._registry, Dataset, name, partial(is_visible, visible=visible)))
            else:
                yield _place(kept.noun, name)
        finally:
            with self._lock:
                self._held[name] -= 1

    def place(self, name: str, caller: Principal) -> DataPlace:
        """Return where a data set lies.

        Raises:
            NotFound: none that they may see.
            InvalidInput: it is not ready, or its files are gone.
        """
        place = _place(self._require_visible(name, caller).noun, name)
        if isinstance(place, Problem):
            raise InvalidInput(place)
        return place

    def _check(self, dataset: Dataset) -> None:
        problems = []
        if not re.fullmatch(NAME, dataset.name):
            message = f"{dataset.name!r:.120} cannot be a name; take letters, digits, '.', '_' and '-', 100 at most"
            problems.append(Problem(field="name", message=message))
        if dataset.source.path is not None and (message := self._path_problem(dataset.source.path)):
            problems.append(Problem(field="source.path", message=message))
        if problems:
            raise InvalidInput(*problems)

    def _path_problem(self, given: str) -> str:
        path = PurePosixPath(given)
        if path.is_absolute() or ".." in path.parts or "\0" in given:
            return f"{given!r:.200} points outside the data root; give a path relative to it, such as `flowers`"
        found = Path(os.path.realpath(self._data_root / path))
        if not found.is_relative_to(os.path.realpath(self._data_root)):
            return f"{given!r:.200} is a link that leads out of the data root; give what lies below it"
        try:
            found.stat()
        except (FileNotFoundError, NotADirectoryError):
            return f"there is nothing at {given!r:.200} below the data root; check the path"
        except OSError as error:  # a name that is too long, links in a ring
            return f"{given!r:.200} cannot be read ({cause_of(error)}); check the path"
        return ""

    def _require_visible(self, name: str, caller: Principal) -> Kept[Dataset]:
        return require_visible(self._registry, Dataset, caller, name)

    def _find(self, name: str) -> Kept[Dataset] | None:
        return self._registry.get(Dataset, name) if re.fullmatch(NAME, name) else None

    def _require_own(self, name: str, caller: Principal) -> Kept[Dataset]:
        kept = self._require_visible(name, caller)
        require_owner(caller, kept.noun, f"the data set {name!r}")
        return kept

    def _with_progress(self, kept: Kept[Dataset]) -> Dataset:
        progress = self.imports.progress(kept.noun.name) if kept.noun.state is DatasetState.IMPORTING else None
        return replace(kept.noun, progress=progress, revision=kept.revision)


def _apply(dataset: Dataset, changes: Mapping[str, Any]) -> Dataset:
    """Return a data set with these changes; it names nobody twice that it is shared with."""
    dataset = replace(dataset, **changes)
    return replace(dataset, shared_with=name_once(dataset.shared_with))


def _place(dataset: Dataset, name: str) -> DataPlace | Problem:
    """Return where a data set lies, or why it cannot be used."""
    if dataset.state is DatasetState.IMPORTING:
        return _problem(f"the data set {name!r} is still being imported; wait until it is ready")
    if dataset.state is not DatasetState.READY:
        ended = "failed" if dataset.state is DatasetState.FAILED else "was stopped"
        why = f" ({dataset.reason})" if dataset.reason else ""
        return _problem(f"the import of the data set {name!r} {ended}{why}; add it again")
    folder = Path(dataset.folder)
    if not folder.is_dir():
        return _problem(f"the files of the data set {name!r} are not at {dataset.folder} any more; add it again")
    parts = {part: str(folder / where) for part, where in dataset.content.parts.items()}
    return DataPlace(name=name, folder=dataset.folder, parts=parts)


def _problem(message: str) -> Problem:
    return Problem(field="dataset", message=message)


def make_datasets(
    registry: Registry,
    settings: ImportSettings,
    *,
    uploads: Path,
    limits: UploadLimits,
    now: Callable[[], float],
    users: Callable[[str], Sequence[str]],
) -> DatasetCatalog:
    """Return the data sets of a server; `uploads` is the folder of what is on its way in.

    Raises:
        Unavailable: the folders cannot be made.
    """

    def changed(owner: str) -> None:
        with suppress(PliantError):  # the upload itself has its bytes, whoever hears of it
            registry.announce_to(owner, EventKind.UPLOAD_CHANGED, at=now())

    coming = Uploads(uploads, now=now, limits=limits, changed=changed)
    imports = Imports(registry, coming, settings, now)
    return DatasetCatalog(registry, uploads=coming, imports=imports, data_root=settings.data_root, now=now, users=users)
