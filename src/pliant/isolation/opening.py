"""Opening what somebody else may have put a link into the way of."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_plain(path: str) -> int:
    """Open a whole path as O_PATH, one name after the other, if no link is on the way.

    Raises:
        OSError: a link is (ELOOP), or it is not there.
    """
    here = os.open("/", _LOOK)
    for name in Path(path).parts[1:]:
        above = here
        try:
            here = os.open(name, _LOOK, dir_fd=above)
        finally:
            os.close(above)
        if stat.S_ISLNK(os.fstat(here).st_mode):
            os.close(here)
            raise OSError(errno.ELOOP, f"a link is on the way, at {name!r}", path)
    return here
