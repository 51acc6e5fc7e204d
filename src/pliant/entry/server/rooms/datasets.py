"""Puts the data sets of a server together: their folders, their limits, and the process that imports one."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.datasets.imports import ImportSettings
from pliant.catalog.datasets.uploads import UploadLimits
from pliant.catalog.datasets.use_cases import DatasetCatalog, make_datasets
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.entry.server.settings import ServerSettings
from pliant.files.space import translate_disk_errors

DATA: Final = "data"
"""The folder for people's data in a state folder, if no other is given."""
IMPORTER: Final = (sys.executable, "-P", "-m", "pliant.entry.importer")


def open_datasets(
    registry: Registry,
    home: Path,
    given: ServerSettings,
    clock: Clock,
    users: Callable[[str], Sequence[str]],
    children: ChildIsolation,
) -> DatasetCatalog:
    """Return the data sets of the server of a state folder; `users` returns the unfinished jobs that use one.

    Raises:
        Unavailable: the folders cannot be made.
    """
    root = given.data_root or home / DATA
    with translate_disk_errors(root):
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = ImportSettings(folder=home / "datasets", data_root=root, command=IMPORTER, isolation=children)
    limits = UploadLimits(max_bytes=given.max_upload_bytes)
    return make_datasets(registry, settings, uploads=home / "incoming", limits=limits, now=clock.now, users=users)
