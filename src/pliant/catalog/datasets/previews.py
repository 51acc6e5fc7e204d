"""Keeps what data sets look like, a file for each beside them.

What makes a preview has read strangers' files and may have been misled. So the file that the process of an import
leaves is opened as one of a stranger, and what it says is checked and written anew.
"""

import base64
import binascii
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from pliant.catalog.datasets.messages import PREVIEW
from pliant.core.preview import DatasetPreview, nothing
from pliant.files.untrusted.opening import open_file
from pliant.files.untrusted.path import UntrustedPath

log = logging.getLogger(__name__)

DATASET_PREVIEW: Final[TypeAdapter[DatasetPreview]] = TypeAdapter(DatasetPreview)
_MAX_BYTES: Final = 9 << 20
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PREFIX: Final = ".preview-"
_NEW: Final = ".new-preview-"
_UNKNOWN: Final = "it was imported by an earlier version, which kept none; import it again to see it"


class DatasetPreviews:
    """The previews of the data sets in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def name_of(self, dataset: str) -> str:
        """Return what the file for a data set is called; no data set can be called so."""
        return f"{_PREFIX}{dataset}"

    def keep(self, dataset: str, work: Path) -> None:
        """Keep what an import has left in its work folder; nothing that is not as it should be."""
        draft = self._folder / f"{_NEW}{dataset}"
        try:
            with open_file(UntrustedPath(self._folder, f"{work.name}/{PREVIEW}")) as file:
                made = DATASET_PREVIEW.validate_json(file.read_at(0, _MAX_BYTES))
            _require_pictures(made)
            draft.write_bytes(DATASET_PREVIEW.dump_json(made))
            os.replace(draft, self._folder / self.name_of(dataset))
        except (OSError, ValueError) as error:
            log.warning("the data set %s has no preview: %s", dataset, error)
            self.discard(dataset)

    def get(self, dataset: str) -> DatasetPreview:
        """Return what a data set looks like."""
        try:
            return DATASET_PREVIEW.validate_json((self._folder / self.name_of(dataset)).read_bytes())
        except (OSError, ValidationError):
            return nothing(_UNKNOWN)

    def discard(self, dataset: str) -> None:
        """Forget what a data set looks like."""
        for name in (f"{_NEW}{dataset}", self.name_of(dataset)):
            with suppress(OSError):
                (self._folder / name).unlink()


def _require_pictures(made: DatasetPreview) -> None:
    """Refuse a preview in which something else stands in the place of a PNG.

    Raises:
        ValueError: it does.
    """
    for image in (image for part in made.parts for image in part.images):
        try:
            content = base64.b64decode(image.png, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{image.name!r:.80} is not in base64") from error
        if not content.startswith(_PNG):
            raise ValueError(f"{image.name!r:.80} is no PNG")
