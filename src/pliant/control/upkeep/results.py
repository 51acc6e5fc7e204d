"""What the results of a job are: its RESULT_DIR without checkpoints, and what it wrote into its code folder.

Of the code folder, where its processes are started, that is every file that is new or changed since it was submitted,
but for what `.pliantignore` named then. In archives it lies below `work/`. Example: `train.py` writes `best.pt` beside
itself and `model.pt` into RESULT_DIR; the archive has `work/best.pt` and `model.pt`.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from pliant.control.settings import JobFolders
from pliant.control.upkeep.event_files import EventFile
from pliant.files.ignore import ALWAYS_IGNORED, IGNORE_FILE, MAX_PATTERNS, Patterns, read_patterns
from pliant.files.untrusted.opening import open_file, open_folder
from pliant.files.untrusted.packing import MadeFile, PackedFile, PackedFolder, list_files, open_packed, pack
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.walking import FoundEntry, Ignore, LeaveOut, list_folder, walk
from pliant.files.untrusted.written import Baseline, note_baseline, read_baseline

WORK: Final = "work"
TENSORBOARD: Final = "tensorboard"
LOG: Final = "log"
MAX_WORK_BYTES: Final = 10 << 30
"""Of all that a job wrote into its code folder; what goes beyond is left out, and said to be."""
MAX_WORK_FILES: Final = 10_000
_NOT_RESULTS: Final = ("/checkpoint", "/log/*/.step", "/log/*/.unsent", "/log/*/..unsent.*")
_FILES: Final = "files"
_IGNORED: Final = "ignored"
_MAX_IGNORE_BYTES: Final = 64 << 10
_NUM_NAMED: Final = 3
_TOO_MUCH: Final = (
    f"with it the job has written more than {MAX_WORK_BYTES >> 30} GiB or {MAX_WORK_FILES:,} files into its code "
    f"folder; fetch it with --only, or let the script write to RESULT_DIR"
)


def note_submitted(code: Path, into: Path) -> None:
    """Note what was submitted, and what of it is no result, in a new folder that no task can write to.

    Raises:
        OSError: the disk does not take it.
    """
    into.mkdir(mode=0o700)
    note_baseline(code, into / _FILES)
    (into / _IGNORED).write_text("\n".join(submitted_patterns(code)))


def submitted_patterns(code: Path) -> tuple[str, ...]:
    """Return the patterns of the `.pliantignore` in code that was just submitted."""
    file = code / IGNORE_FILE
    if not file.is_file():
        return ()
    with file.open("rb") as opened:
        return read_patterns(opened.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace"))[:MAX_PATTERNS]


def note_of_patterns(code: Path) -> tuple[str, ...]:
    """Return a note of what a job may write and has not in its results; nothing if it has all."""
    patterns = submitted_patterns(code)
    if not patterns:
        return ()
    more = f" and {len(patterns) - _NUM_NAMED} more" if len(patterns) > _NUM_NAMED else ""
    named = ", ".join(pattern[:60] for pattern in patterns[:_NUM_NAMED])
    return (f"what {IGNORE_FILE} names ({named}{more}) is not among the results either; RESULT_DIR keeps everything",)


def pack_results(
    folders: JobFolders, only: Sequence[str] = (), but: Sequence[str] = (), made: EventFile | None = None
) -> Iterator[bytes]:
    """Return a tar.gz of the results, made while it is read.

    Args:
        folders: of the job.
        only: patterns of names in the archive; all if there are none.
        but: patterns of names that are left out.
        made: one more file, of the job's series.
    """
    with ExitStack() as stack:
        missing = () if only and not Patterns(only).fit_way(LOG) else _removed(folders)
        yield from pack((*sources(folders, only, but), *_make(folders, only, made, stack)), missing)


def list_results(
    folders: JobFolders, leave_out: LeaveOut, made: EventFile | None = None
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files of the results by their names in the archive, with what is known of them."""
    with ExitStack() as stack:
        files = [(file.name, file.facts) for file in _make(folders, (), made, stack)]
    yield from files
    for name, why in _removed(folders):
        leave_out(name, why)
    for source in sources(folders):
        yield from list_files(source, leave_out)


def open_result(folders: JobFolders, name: str, made: EventFile) -> PackedFile | MadeFile:
    """Return one file of the results by its name in the archive, open; who calls this closes it.

    Raises:
        UntrustedFile: what lies there is left out of the results, and why.
        OSError: the results have no such file, or it cannot be read.
    """
    top, _, rest = name.partition("/")
    if rest == made.name and top == _free_name(folders, TENSORBOARD):
        file = made.make(name)
        if file is not None:
            return file
    result, *work = sources(folders)
    source = next((one for one in work if name.startswith(one.prefix)), result)
    return open_packed(source, name)


def _removed(folders: JobFolders) -> tuple[tuple[str, str], ...]:
    """Return what a clean-up has removed that would be a result, and when and why."""
    return tuple((LOG, f"removed at {words}") for words in (when_logs_were_removed(folders),) if words)


def when_logs_were_removed(folders: JobFolders) -> str:
    """Return when a clean-up has removed a job's logs, and why; nothing if none has."""
    with suppress(OSError):
        return folders.logs_removed.read_text()
    return ""


def _make(folders: JobFolders, only: Sequence[str], made: EventFile | None, stack: ExitStack) -> tuple[MadeFile, ...]:
    """Return the file that is made for the archive, if it is wanted; the stack closes it."""
    if made is None:
        return ()
    name = f"{_free_name(folders, TENSORBOARD)}/{made.name}"
    if only and not Patterns(only).fit_way(name):
        return ()
    file = made.make(name)
    if file is None:
        return ()
    stack.callback(file.content.close)
    return (file,)


def _free_name(folders: JobFolders, name: str) -> str:
    """Return a name for a folder of the archive that the job has not given to something in RESULT_DIR."""
    there = {found for found, _ in list_folder(folders.result)}
    while name in there:
        name += "~"
    return name


def new_work_files(folders: JobFolders) -> list[tuple[UntrustedPath, int]]:
    """Return the files in the code folder that were not submitted and are results, with their lengths."""
    baseline = read_baseline(folders.submitted / _FILES)
    if baseline is None:
        return []
    with suppress(OSError), open_folder(folders.code) as top:
        found = (entry for entry in walk(top, ignore=_ignored(folders)) if entry.is_file)
        return [(folders.code / entry.name, entry.facts.st_size) for entry in found if not baseline.has(entry.name)]
    return []


def sources(folders: JobFolders, only: Sequence[str] = (), but: Sequence[str] = ()) -> Iterator[PackedFolder]:
    """Yield the folders of a job's results: RESULT_DIR, and what it wrote into its code folder, if that is known."""
    wanted = Patterns(only)
    yield PackedFolder(
        folder=folders.result,
        ignore=Patterns((*_NOT_RESULTS, *but)).fit,
        select=lambda _top, entry, _leave_out: not only or wanted.fit_way(entry.name),
    )
    baseline = read_baseline(folders.submitted / _FILES)
    if baseline is not None:
        work = _Work(baseline, f"{_free_name(folders, WORK)}/", wanted if only else None)
        yield PackedFolder(folder=folders.code, prefix=work.prefix, ignore=_ignored(folders, but), select=work.select)


def _ignored(folders: JobFolders, but: Sequence[str] = ()) -> Ignore:
    """Return what of the code folder is no result."""
    patterns: tuple[str, ...] = ()
    with suppress(OSError), open_file(folders.submitted / _IGNORED) as file:
        patterns = read_patterns(file.read_at(0, _MAX_IGNORE_BYTES).decode("utf-8", "replace"))[:MAX_PATTERNS]
    return Patterns((*ALWAYS_IGNORED, *patterns, *but)).fit


class _Work:
    """Selects what a job wrote into its code folder, as long as it is not too much."""

    def __init__(self, baseline: Baseline, prefix: str, wanted: Patterns | None) -> None:
        self.prefix = prefix
        self._baseline = baseline
        self._wanted = wanted
        self._num_files = 0
        self._num_bytes = 0

    def select(self, top: int, entry: FoundEntry, leave_out: LeaveOut) -> bool:
        if self._wanted is not None and not self._wanted.fit_way(self.prefix + entry.name):
            return False
        if self._baseline.is_as_it_was(top, entry):
            return False
        if self._num_files >= MAX_WORK_FILES or self._num_bytes + entry.facts.st_size > MAX_WORK_BYTES:
            leave_out(entry.name, _TOO_MUCH)
            return False
        self._num_files += 1
        self._num_bytes += entry.facts.st_size
        return True
