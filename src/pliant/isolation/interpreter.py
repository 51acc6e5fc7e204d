"""What it takes to run a Python interpreter that somebody names, besides what the system has."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PYTHON: Final = re.compile(r"python[0-9.]*")


def reads_of_interpreter(python: str | None) -> Iterator[str]:
    """Yield what it takes to run another interpreter: its environment, and the Python that this is made from.

    What lies behind a link counts only if it looks like a Python: the link may be another than the one that was tried.
    """
    if python is None:
        return
    folder = Path(python).parent
    is_environment = any((folder.parent / name).exists() for name in ("pyvenv.cfg", "conda-meta"))
    yield str(folder.parent) if folder.name == "bin" and is_environment else python
    real = Path(os.path.realpath(python))
    if _PYTHON.fullmatch(real.name) and real.parent.name == "bin":
        yield str(real)
        yield from (str(path) for name in ("lib", "lib64") if (path := real.parent.parent / name).is_dir())
