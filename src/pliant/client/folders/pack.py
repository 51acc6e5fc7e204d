"""Packs a folder or a single file of code for submission.

The same files give the same bytes: names are sorted, times, owners and the gzip header are fixed. Only plain files and
folders go in; a link is packed as the file it points to, if that lies inside. Everything wrong is told before a byte is
sent, and all of it at once.
"""

import gzip
import os
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from pliant.core.errors import InvalidInput, Problem, TooLarge
from pliant.files.ignore import ALWAYS_IGNORED, IGNORE_FILE, Patterns, read_patterns

MAX_PACKED_BYTES: Final = 64 << 20
MAX_UNPACKED_BYTES: Final = 512 << 20
MAX_FILES: Final = 20_000
"""Files and folders together, as the server counts."""

_MAX_PROBLEMS: Final = 20
_HINT: Final = f"leave data, results and environments out of it with lines in {IGNORE_FILE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a submission may be."""

    max_packed_bytes: int = MAX_PACKED_BYTES
    max_unpacked_bytes: int = MAX_UNPACKED_BYTES
    max_files: int = MAX_FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file or folder to pack."""

    name: str
    """In the archive; relative, with slashes."""
    path: Path
    is_folder: bool
    num_bytes: int
    executable: bool


def pack(code: Path, into: BinaryIO, limits: Limits | None = None, *, also: Sequence[Path] = ()) -> tuple[str, ...]:
    """Write `code`, a folder or a single file, as tar.gz; return the names of its files. `also`: files beside it.

    Raises:
        InvalidInput: there is no such folder or file, or something in it cannot be packed.
        TooLarge: it is over a limit.
    """
    limits = limits or Limits()
    entries = (*find_entries(code, limits), *(_entry(path, path.name) for path in also))
    with (
        gzip.GzipFile(filename="", fileobj=into, mode="wb", compresslevel=6, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry in entries:
            _add(tar, entry)
            _check_packed(into.tell(), code, limits)
    _check_packed(into.tell(), code, limits)
    return tuple(entry.name for entry in entries if not entry.is_folder)


def find_entries(code: Path, limits: Limits) -> tuple[Entry, ...]:
    """Return what would be packed, in order of name.

    Raises:
        InvalidInput: as for `pack`.
        TooLarge: too many files, or too many bytes before packing.
    """
    if code.is_file():
        return (_entry(code, code.name),)
    if not code.is_dir():
        raise InvalidInput.at("code", f"{str(code)!r} is neither a folder nor a file; check the path")
    walk = _Walk(root=code.resolve(), patterns=_patterns(code), limits=limits)
    entries = tuple(sorted(walk.entries(code, "", frozenset()), key=lambda entry: entry.name))
    if walk.problems:
        raise InvalidInput(*walk.problems[:_MAX_PROBLEMS])
    return entries


class _Walk:
    """One walk through a folder: counts, and collects what is wrong."""

    def __init__(self, root: Path, patterns: Patterns, limits: Limits) -> None:
        self.problems: list[Problem] = []
        self._root = root
        self._patterns = patterns
        self._limits = limits
        self._num_files = 0
        self._num_bytes = 0

    def entries(self, folder: Path, prefix: str, above: frozenset[Path]) -> Iterator[Entry]:
        above |= {folder.resolve()}
        for path in sorted(folder.iterdir()):
            name = f"{prefix}{path.name}"
            if self._patterns.fit(name, path.is_dir()) or self._refuse(name, path, above):
                continue
            entry = _entry(path, name)
            self._count(entry)
            yield entry
            if entry.is_folder:
                yield from self.entries(path, f"{name}/", above)

    def _refuse(self, name: str, path: Path, above: frozenset[Path]) -> bool:
        message = self._refusal(path, above)
        if message:
            self.problems.append(Problem(field="code", message=f"{name}: {message}, or name it in {IGNORE_FILE}"))
        return bool(message)

    def _refusal(self, path: Path, above: frozenset[Path]) -> str:
        if path.is_symlink():
            if not path.exists():
                return f"a link to {os.readlink(path)!r}, which is not there; remove it"
            target = path.resolve()
            if not target.is_relative_to(self._root):
                return f"a link that leads outside the folder, to {str(target)!r}; copy what it points to"
            if target in above:
                return "a link to a folder that it lies in; remove it"
        if not (path.is_file() or path.is_dir()):
            return "neither a file nor a folder; remove it"
        if not os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK):
            return "cannot be read; change its mode"
        return ""

    def _count(self, entry: Entry) -> None:
        self._num_files += 1
        self._num_bytes += entry.num_bytes
        if self._num_files > self._limits.max_files:
            raise TooLarge(f"code: {str(self._root)!r} holds more than {self._limits.max_files} files; {_HINT}")
        if self._num_bytes > self._limits.max_unpacked_bytes:
            raise TooLarge(
                f"code: {str(self._root)!r} holds more than {_size(self._limits.max_unpacked_bytes)} "
                f"(reached at {entry.name!r}); {_HINT}"
            )


def _patterns(folder: Path) -> Patterns:
    file = folder / IGNORE_FILE
    given = read_patterns(file.read_text(encoding="utf-8", errors="replace")) if file.is_file() else ()
    return Patterns((*ALWAYS_IGNORED, *given))


def _entry(path: Path, name: str) -> Entry:
    facts = path.stat()
    is_folder = path.is_dir()
    return Entry(
        name=name,
        path=path,
        is_folder=is_folder,
        num_bytes=0 if is_folder else facts.st_size,
        executable=bool(facts.st_mode & 0o100),
    )


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.name)
    info.mode = 0o755 if entry.executable else 0o644
    if entry.is_folder:
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
        return
    with entry.path.open("rb") as source:
        info.size = os.fstat(source.fileno()).st_size
        try:
            tar.addfile(info, source)
        except OSError as error:
            raise InvalidInput.at(
                "code", f"{entry.name}: could not be read to its end ({error}); submit again"
            ) from error


def _check_packed(num_bytes: int, code: Path, limits: Limits) -> None:
    if num_bytes > limits.max_packed_bytes:
        raise TooLarge(f"code: {str(code)!r} packs to more than {_size(limits.max_packed_bytes)}; {_HINT}")


def _size(num_bytes: int) -> str:
    return f"{num_bytes >> 20} MiB" if num_bytes >= 1 << 20 else f"{num_bytes} bytes"
