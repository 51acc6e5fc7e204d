"""Weight files that were uploaded to start trainings from: kept by their content, each with its owner."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pliant.catalog.models.weights import check_weights
from pliant.core.access import Principal
from pliant.core.errors import Conflict, NotFound
from pliant.core.registry import Registry
from pliant.files.digest import digest_of_file
from pliant.files.space import check_room, translate_disk_errors


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFile:
    """An uploaded file."""

    KIND: ClassVar[str] = "wmla-weights"

    name: str
    """`OWNER-SHA256`, with the first 32 digits of the checksum."""
    owner: str
    num_bytes: int


class WeightFiles:
    """All uploaded weights, below one folder."""

    def __init__(self, registry: Registry, folder: Path) -> None:
        self._registry = registry
        self._folder = folder

    def keep(self, upload: Path, caller: Principal, at: float) -> WeightFile:
        """Keep a file; the same one twice is one.

        Raises:
            InvalidInput: it is no file that torch wrote.
            NoSpace, Unavailable: the disk does not take it.
        """
        check_weights(upload)
        size = upload.stat().st_size
        noun = WeightFile(name=f"{caller.name}-{digest_of_file(upload)[:32]}", owner=caller.name, num_bytes=size)
        with translate_disk_errors(self._folder):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            check_room(self._folder, size)
            draft = self._folder / f".{noun.name}.new"
            shutil.copyfile(upload, draft)
            draft.replace(self.path(noun))
        try:
            return self._registry.add(noun, at=at).noun
        except Conflict:
            return noun

    def get(self, name: str, caller: Principal) -> WeightFile:
        """Return a file of the caller's.

        Raises:
            NotFound: they see none of this name.
        """
        kept = self._registry.get(WeightFile, name)
        if kept is None or not caller.sees(kept.noun.owner):
            raise NotFound(f"there is no weight file {name!r:.200}; upload it, or name a training or an exec")
        return kept.noun

    def path(self, noun: WeightFile) -> Path:
        """Return where a file lies."""
        return self._folder / f"{noun.name}.pt"
