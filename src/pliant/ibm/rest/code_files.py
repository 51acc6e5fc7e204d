"""The files of templates and models, by names that say whose they are: `TEMPLATE/path/in/it`."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from pliant.core.errors import InvalidInput, NotFound, TooLarge
from pliant.files.pack import pack, walk
from pliant.files.space import translate_disk_errors

MAX_TEXT_BYTES: Final = 4 << 20


def names_in(folder: Path, owner: str) -> list[str]:
    """Return the names of all files in a folder."""
    return sorted(f"{owner}/{name}" for _, name in walk(folder))


def read_text(folder: Path, name: str) -> str:
    """Return what is in a file of a folder.

    Raises:
        NotFound: there is no such file.
        TooLarge: it is too long for an answer.
    """
    found = {relative: path for path, relative in walk(folder)}
    if name not in found:
        raise NotFound(f"there is no file {name!r}; list the files to see which there are")
    if found[name].stat().st_size > MAX_TEXT_BYTES:
        raise TooLarge(f"{name} is longer than {MAX_TEXT_BYTES >> 20} MiB; it is no text to show")
    return found[name].read_text(encoding="utf-8", errors="replace")


def split_name(name: str) -> tuple[str, str]:
    """Return whose file a name means, and its path there.

    Raises:
        NotFound: it is no such name.
    """
    owner, slash, path = name.partition("/")
    if not slash or not path:
        raise NotFound(f"there is no file {name!r}; names are NAME/PATH, as the list of files has them")
    return owner, path


@contextmanager
def archive_of(folder: Path, drafts: Path, changes: dict[str, str] | None = None) -> Iterator[Path]:
    """Yield an archive of a folder with some of its files changed, or added; it is removed after.

    Raises:
        InvalidInput: a path leads out of the folder.
        NoSpace, Unavailable: the disk does not take it.
    """
    with translate_disk_errors(drafts), tempfile.TemporaryDirectory(dir=drafts) as draft:
        copy, archive = Path(draft) / "code", Path(draft) / "code.tar.gz"
        copy.mkdir()
        for path, name in walk(folder):
            target = copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        for name, text in (changes or {}).items():
            relative = PurePosixPath(name)
            if relative.is_absolute() or ".." in relative.parts or "\0" in name or not relative.parts:
                raise InvalidInput.at("path", f"{name!r} leads out of the folder; give a path in it")
            target = copy / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        with archive.open("wb") as out:
            for chunk in pack(copy):
                out.write(chunk)
        yield archive
