"""Which file of requirements travels with a script that is packed alone."""

from pathlib import Path
from typing import Final

from pliant.core.errors import InvalidInput

REQUIREMENTS: Final = "requirements:"
"""Before the name of a file, in what a job gives as its environment."""


def beside(code: Path, environment: str | None) -> tuple[Path, ...]:
    """Return what is packed with a script that is packed alone: the requirements that its job names.

    Raises:
        InvalidInput: the file does not lie beside the script.
    """
    if environment is None or not environment.startswith(REQUIREMENTS) or not code.is_file():
        return ()
    name = environment.removeprefix(REQUIREMENTS)
    file = code.parent / name
    if Path(name).name != name or not file.is_file():
        message = (
            f"there is no file {name!r} beside {str(code)!r}; put it there, or give the folder instead of the script"
        )
        raise InvalidInput.at("environment", message)
    return (file,)
