"""Which file of a folder is run, and by what: found by its name, so that nothing has to be said of usual folders.

kernel.py       IBM's kernel API        model.onnx          ONNX Runtime
serve.py        a Python class          model.pt2           a program of torch.export
                                        model.pt            TorchScript

If there is none of these, a file is taken that is the only one of such a suffix.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from pliant.core.errors import InvalidInput
from pliant.core.serving_profile import Runner

NAMES: Final[Mapping[str, Runner]] = {
    "kernel.py": "redhare",
    "serve.py": "python",
    "model.onnx": "onnx",
    "model.pt2": "torch",
    "model.pt": "torch",
}
"""In the order in which they are looked for."""
_SUFFIXES: Final[Mapping[str, Runner]] = {".onnx": "onnx", ".pt2": "torch", ".pt": "torch", ".py": "python"}
_KERNEL_API: Final = b"redhareapi"
"""A file that names it is written for IBM's kernel API, whatever it is called."""
_MAX_SHOWN: Final = 8


def detect_model(folder: Path, named: str | None) -> tuple[str, Runner]:
    """Return the file of a folder that is run, and what runs it; `named` is what its owner says.

    Raises:
        InvalidInput: there is no such file, or none that says by its name what runs it.
    """
    if named is not None:
        path = PurePosixPath(named)
        if path.is_absolute() or ".." in path.parts or not (folder / path).is_file():
            raise InvalidInput.at("file", f"{named!r:.200} is not in the folder; {_there(folder)}")
        return named, _runner_of(folder, named)
    found = [name for name in NAMES if (folder / name).is_file()]
    if not found and len(others := [one for one in folder.iterdir() if one.suffix in _SUFFIXES and one.is_file()]) == 1:
        found = [others[0].name]
    if not found:
        wanted = ", ".join(NAMES)
        raise InvalidInput.at("file", f"none of {wanted} is in the folder; {_there(folder)}; name what is run")
    return found[0], _runner_of(folder, found[0])


def _runner_of(folder: Path, name: str) -> Runner:
    suffix = PurePosixPath(name).suffix
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise InvalidInput.at(
            "file", f"{name!r:.200} does not say what runs it; its name has to end with one of {known}"
        )
    if suffix == ".py" and _KERNEL_API in (folder / name).read_bytes():
        return "redhare"
    return _SUFFIXES[suffix]


def _there(folder: Path) -> str:
    there = sorted(path.name for path in folder.iterdir())[:_MAX_SHOWN]
    return f"it holds {', '.join(there)}" if there else "it is empty"
