"""Makes of what a client sends, one file or a tar of a folder, the archive of code that a job is submitted with.

A folder in the tar is entered if it is all that the tar holds. A program that is no Python script can be executed, and
gets the runner that stands in for it. What is sent is checked as every submission's code is.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pliant.core.errors import InvalidInput
from pliant.files.archive import kind_of, unpack
from pliant.files.pack import pack
from pliant.files.space import translate_disk_errors
from pliant.ibm.rest.translate.program import RUNNER, RUNNER_TEXT, Program

FIELD: Final = "file"


def pack_upload(uploads: Sequence[Path], program: Program, folder: Path) -> Path:
    """Return an archive of what was sent, made in an empty folder.

    Args:
        uploads: the program or its folder; nothing, for a command that needs no files.

    Raises:
        InvalidInput: it is sent twice, or is an archive that cannot be unpacked.
        TooLarge: over the limits of a submission.
        Unavailable: the disk does not take it.
    """
    code, archive = folder / "code", folder / "code.tar.gz"
    with translate_disk_errors(folder):
        code.mkdir()
        root = code
        for upload in uploads[:1]:
            root = _arrange(upload, program, code)
        if program.words:
            _make_executable(root, program)
            (root / RUNNER).write_text(RUNNER_TEXT)
        with archive.open("wb") as out:
            for chunk in pack(root):
                out.write(chunk)
    return archive


def _arrange(upload: Path, program: Program, code: Path) -> Path:
    """Put what was sent into the folder `code`; return the folder that the program starts in."""
    if kind_of(upload):
        unpack(upload, code, field=FIELD)
        there = list(code.iterdir())
        return there[0] if len(there) == 1 and there[0].is_dir() else code
    if not program.file:
        raise _wrong("it is one file, but no --model-main says what it is called; name it, or send a tar")
    path = code / Path(program.file).name
    shutil.copyfile(upload, path)
    path.chmod(0o644)
    return code


def _make_executable(root: Path, program: Program) -> None:
    """Let a command that is a file of the code be executed, however it was packed."""
    name = program.words[0]
    if not name.startswith("./"):
        return
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()) or not path.is_file():
        message = f"{name!r} is not in what was sent; send it, or name another file"
        raise InvalidInput.at("--model-main", message)
    path.chmod(0o755)


def _wrong(message: str) -> InvalidInput:
    return InvalidInput.at(FIELD, message)
