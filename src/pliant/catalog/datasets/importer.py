"""One import from its source to a folder that can be published. Runs in a process of its own; knows no server.

Everything is written below the `work` folder of the spec, which whoever started the process removes afterwards.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from pliant.catalog.datasets.formats.csv import import_csv
from pliant.catalog.datasets.formats.images import import_images
from pliant.catalog.datasets.formats.parts import find_parts
from pliant.catalog.datasets.formats.preview import make_preview
from pliant.catalog.datasets.messages import DATA, PREVIEW, ImportResult, ImportSpec
from pliant.core.dataset import Content, ImportProgress
from pliant.core.errors import InvalidInput, Problem
from pliant.core.preview import DatasetPreview
from pliant.files.archive import kind_of, unpack
from pliant.files.digest import digest_of_file, digest_of_names
from pliant.files.folder import find_outside, make_read_only, plain_files
from pliant.files.members import MAX_PROBLEMS, ArchiveLimits
from pliant.files.space import check_room

FACTS: Final = "dataset.json"
"""In a data set of images or of a table: what is known of it."""
_CONTENT: Final = TypeAdapter(Content)
_PREVIEW: Final = TypeAdapter(DatasetPreview)
_HOW_TO_PACK: Final = "give a tar, tar.gz or zip"

ReportProgress = Callable[[ImportProgress], None]


def run_import(spec: ImportSpec, report: ReportProgress) -> ImportResult:
    """Import a source; `report` is called with how far it is.

    Raises:
        InvalidInput, TooLarge: the source is not what the spec says.
        NoSpace: the disk has no room for it.
        OSError: the disk fails.
    """
    return _Import(spec=spec, report=report).run()


@dataclass(slots=True, kw_only=True)
class _Import:
    spec: ImportSpec
    report: ReportProgress
    work: Path = field(init=False)
    out: Path = field(init=False)

    def __post_init__(self) -> None:
        self.work = Path(self.spec.work)
        self.out = self.work / DATA

    def run(self) -> ImportResult:
        source = self._require_source()
        match self.spec.kind:
            case "any":
                content = self._import_any(source)
            case "images":
                content = import_images(
                    self._folder(source, self.work / "source"),
                    self.out,
                    self.spec.images,
                    self.spec.split,
                    self.report,
                )
            case "csv":
                content = import_csv(self._table(source), self.out, self.spec.csv, self.spec.split, self.report)
        in_place = not self.out.exists()
        folder = source if in_place else self.out
        self.report(ImportProgress(phase="making a preview"))
        (self.work / PREVIEW).write_bytes(_PREVIEW.dump_json(make_preview(folder, content.parts)))
        content = self._add_up(folder, content, checksum=not in_place)
        if not in_place:
            if self.spec.kind != "any":
                (self.out / FACTS).write_text(_facts(content), encoding="utf-8")
            make_read_only(self.out, also_itself=False)
        return ImportResult(content=content, in_place=in_place)

    def _require_source(self) -> Path:
        """Return the source if it is there, whole, and leads nowhere else."""
        source = Path(self.spec.source)
        if self.spec.data_root is not None:
            root = Path(self.spec.data_root)
            if not source.exists():
                raise _wrong(f"{str(source)!r} is not there (any more); give the path of something that is")
            if not source.resolve().is_relative_to(root):
                raise _wrong(f"{str(source)!r} leads out of the data root {str(root)!r}; give what lies below it")
            if source.is_dir():
                self._refuse_links(source, root)
            return source.resolve()
        assert self.spec.num_bytes is not None, "an upload has a length"
        with source.open("r+b") as file:
            file.truncate(self.spec.num_bytes)  # what was sent and not acknowledged lies behind
        self._check_digest(source)
        return source

    def _refuse_links(self, source: Path, root: Path) -> None:
        problems = [
            Problem(
                field="source",
                message=f"{str(link.relative_to(source))!r} is a link that leads to nothing or out of the data root; "
                f"remove it, or copy what it points to",
            )
            for link, _ in zip(find_outside(source, root), range(MAX_PROBLEMS), strict=False)
        ]
        if problems:
            raise InvalidInput(*problems)

    def _check_digest(self, source: Path) -> None:
        if not self.spec.sha256:
            return
        done, total = 0, source.stat().st_size

        def on_read(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            self.report(ImportProgress(phase="checking the upload", bytes_done=done, bytes_total=total))

        found = digest_of_file(source, on_read)
        if found != self.spec.sha256:
            raise _wrong(
                f"the upload has the SHA-256 {found}, not {self.spec.sha256}: the files changed while they were sent; "
                f"send them again"
            )

    def _import_any(self, source: Path) -> Content:
        folder = source if source.is_dir() else self._unpack(source, self.out)
        self.report(ImportProgress(phase="looking for parts"))
        parts = find_parts(folder)
        splits: dict[str, int] = {part: sum(1 for _ in plain_files(folder / place)) for part, place in parts.items()}
        places: dict[str, str] = {str(part): place for part, place in parts.items()}
        return Content(splits=splits, parts=places)

    def _folder(self, source: Path, target: Path) -> Path:
        return source if source.is_dir() else self._unpack(source, target)

    def _table(self, source: Path) -> Path:
        """Return the one table in the source."""
        if source.is_file() and not kind_of(source):
            return source
        folder = self._folder(source, self.work / "source")
        tables = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() == ".csv" and path.is_file()]
        if len(tables) != 1:
            found = ", ".join(path.name for path in tables[:5]) or "none"
            raise _wrong(f"a table is one CSV file, and this holds {len(tables)} ({found}); give the one that is meant")
        return tables[0]

    def _unpack(self, archive: Path, target: Path) -> Path:
        if not kind_of(archive):
            raise _wrong(f"it is neither a folder nor an archive; {_HOW_TO_PACK}")
        total = archive.stat().st_size
        limits = ArchiveLimits(max_bytes=self.spec.max_bytes, max_files=self.spec.max_files, hint="split it in several")

        def on_progress(num_files: int, num_bytes_read: int) -> None:
            self.report(
                ImportProgress(phase="unpacking", bytes_done=num_bytes_read, bytes_total=total, files_done=num_files)
            )

        target.mkdir()
        unpack(
            archive,
            target,
            limits=limits,
            field="source",
            on_progress=on_progress,
            check_room=lambda num_bytes: check_room(self.work, num_bytes),
        )
        return target

    def _add_up(self, folder: Path, content: Content, *, checksum: bool) -> Content:
        """Return the content with sizes, and with a checksum of what Pliant keeps."""
        num_files = num_bytes = 0
        digests = []
        for path in plain_files(folder):
            num_files += 1
            num_bytes += path.stat().st_size
            if checksum:
                digests.append((path.relative_to(folder).as_posix(), digest_of_file(path)))
            self.report(ImportProgress(phase="adding up", files_done=num_files, bytes_done=num_bytes))
        whole = digest_of_names(digests) if checksum else ""
        return replace(content, num_files=num_files, num_bytes=num_bytes, checksum=whole)


def _facts(content: Content) -> str:
    facts = json.loads(_CONTENT.dump_json(content))
    facts["classes"] = sorted(content.labels)
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def _wrong(message: str) -> InvalidInput:
    return InvalidInput.at("source", message)
