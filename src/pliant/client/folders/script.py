"""Which file of a folder of code is meant, if nobody says so."""

from pathlib import Path
from typing import Final

from pliant.core.errors import InvalidInput

_USUAL_NAMES: Final = ("train.py", "main.py")


def find_script(code: Path) -> str:
    """Return the script to run, relative to what is packed: the file itself, or the folder's usual or only one.

    Raises:
        InvalidInput: it is not clear which script is meant.
    """
    if code.is_file():
        return code.name
    there = sorted(file.name for file in code.glob("*.py"))
    usual = [name for name in _USUAL_NAMES if name in there]
    if usual or len(there) == 1:
        return usual[0] if usual else there[0]
    found = f"it has {', '.join(there[:8])}" if there else "it has no Python file at its top"
    raise InvalidInput.at("script", f"say which file of {str(code)!r} to run ({found})")
