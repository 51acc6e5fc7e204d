"""What the server and the process that imports a data set say to each other: one JSON object per line.

The server writes one `ImportSpec`; the process answers with reports and, at its end, with a result or a refusal.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pliant.core.dataset import Content, CsvRule, ImageRule, ImportProgress, Kind, SplitRule

DATA: Final = "data"
"""In the work folder of an import: what is published."""
PREVIEW: Final = "preview.json"
"""There, too: what it looks like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSpec:
    """One import. Paths are whole paths."""

    kind: Kind
    source: str
    """A folder, an archive or a table."""
    data_root: str | None
    """The folder that the source lies below; None for an upload."""
    num_bytes: int | None
    """Of an upload: what is after them is not part of it."""
    sha256: str
    """What an upload must have; empty if it is not to be checked."""
    work: str
    """An empty folder of its own, on the disk where the data set will lie. What is published is `DATA` in it."""
    max_bytes: int
    max_files: int
    split: SplitRule
    images: ImageRule
    csv: CsvRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport:
    """How far the import is."""

    kind: Literal["progress"] = "progress"
    progress: ImportProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """The import is finished."""

    kind: Literal["result"] = "result"
    content: Content
    in_place: bool
    """The source is used where it lies; `DATA` is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRefusal:
    """The source cannot be imported."""

    kind: Literal["refusal"] = "refusal"
    reason: str


ImporterMessage = ProgressReport | ImportResult | ImportRefusal

IMPORT_SPEC: Final = TypeAdapter(ImportSpec)
MESSAGE: Final[TypeAdapter[ImporterMessage]] = TypeAdapter(Annotated[ImporterMessage, Field(discriminator="kind")])
