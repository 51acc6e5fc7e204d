"""A folder for one child process: its home, its place for temporary files. It is removed when the child has ended."""

import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pliant.catalog.children.reach import ChildIsolation, ChildUser
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import remove

log = logging.getLogger(__name__)

PREFIX: Final = ".work-"
"""What a server before left under such names can be removed."""
_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})
_PASS_THROUGH: Final = 0o711


@contextmanager
def work_folder(
    beside: Path, isolation: ChildIsolation, user: ChildUser, files: Mapping[str, bytes] = _NOTHING
) -> Iterator[Path]:
    """Yield a new folder of a user's, with these files in it.

    Raises:
        OSError: there is no room for it.
    """
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
    try:
        place.chmod(_PASS_THROUGH)
        isolation.make_folder(place / "home", user, files)
        yield place / "home"
    finally:
        remove_strange(place)


def remove_strange(folder: Path) -> None:
    """Remove a folder that strangers could write in; what cannot be removed is left in a folder of trash beside it."""
    try:
        remove(UntrustedPath(folder.parent, folder.name))
    except OSError as error:
        log.warning("%s is left over and cannot be removed: %s", folder, error)
