"""What came out of a build: the exact version of each package, so that the same is built on a machine of another kind.

Versions are public ones (PEP 440): `2.0+cu126` and `2.0+cpu` are the same version, made for other machines.
"""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pliant.files.folder import write_whole
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import list_folder

LOCK_FILE: Final = "lock.txt"
"""In the folder of a build: constraints."""
_INFO: Final = ".dist-info"
_OPEN: Final = 0o644
_OURS: Final = ("pliant", "torch")
"""What every machine has of its own, with what torch needs there."""


def write_lock(folder: Path, site: Sequence[str]) -> None:
    """Write down what a build has come to; see `lock_of`.

    Raises:
        OSError: there is no room for it.
    """
    lines = "".join(f"{line}\n" for line in lock_of(folder, site))
    write_whole(folder / LOCK_FILE, lines.encode(), durable=False, mode=_OPEN)


def lock_of(folder: Path, site: Sequence[str]) -> tuple[str, ...]:
    """Return constraints that hold what an environment has to what it has, and what it sees of the server's packages.

    Left out of the latter is what differs between machines with the same torch, such as the libraries of a GPU.

    Args:
        folder: of the build; the packages in it are a stranger's, and of them only names are read.
        site: folders of packages that it sees after its own.
    """
    own = _torch_needs()
    found = {}
    for python, _ in list_folder(UntrustedPath(folder, "venv/lib")):
        for name, _ in list_folder(UntrustedPath(folder, f"venv/lib/{python}/site-packages"), max_entries=100_000):
            if (read := _read_info(name)) is not None:
                package, version = read
                is_noted = any((Path(one) / name).is_dir() for one in site)
                if not (is_noted and package in own):
                    found[package] = version
    return tuple(f"{package}=={version}" for package, version in sorted(found.items()))


def _read_info(name: str) -> tuple[str, str] | None:
    """Return package and version of a folder of metadata; None: it is none."""
    package, _, version = name.removesuffix(_INFO).partition("-")
    if not name.endswith(_INFO):
        return None
    try:
        return canonicalize_name(package, validate=True), Version(version).public
    except (InvalidVersion, ValueError):
        return None


def _torch_needs() -> frozenset[str]:
    try:
        needed = metadata.requires("torch") or ()
    except metadata.PackageNotFoundError:
        needed = ()
    return frozenset((*_OURS, *(canonicalize_name(Requirement(one).name) for one in needed)))
