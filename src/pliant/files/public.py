"""Whether everybody on this machine can read a file: the modes of it, and of all folders on the way, say so.

For people who name a file by its whole path to a server that may read more than they: whether a file is there that only
the server sees is none of their business.
"""

import os
import stat
from pathlib import Path


def is_public(path: str, *, folder: bool = False, program: bool = False) -> bool:
    """Tell whether a plain file, or a folder, is there that every user of the operating system can read."""
    try:
        real = Path(os.path.realpath(path, strict=True))
        if any(not above.stat().st_mode & stat.S_IXOTH for above in real.parents):
            return False
        mode = real.stat().st_mode
    except (OSError, ValueError):
        return False
    wanted = stat.S_IROTH | (stat.S_IXOTH if folder or program else 0)
    return mode & wanted == wanted and (stat.S_ISDIR(mode) if folder else stat.S_ISREG(mode))
