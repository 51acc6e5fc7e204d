"""What the server tells the process that imports a data set, and what it hears from it: one JSON object per line."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter

from pliant.core.dataset import Content, CsvRule, ImageRule, ImportProgress, Kind, SplitRule


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
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
    """An empty folder of its own, on the disk where the data set will lie. What is published is `work/data`."""
    max_bytes: int
    max_files: int
    split: SplitRule
    images: ImageRule
    csv: CsvRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """How far it is."""

    said: Literal["told"] = "told"
    progress: ImportProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """It is finished."""

    said: Literal["done"] = "done"
    content: Content
    in_place: bool
    """The source is used where it lies; `work/data` is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """It cannot be imported."""

    said: Literal["refused"] = "refused"
    reason: str


Said = Told | Done | Refused

ORDER: Final = TypeAdapter(ImportOrder)
SAID: Final[TypeAdapter[Said]] = TypeAdapter(Annotated[Said, Field(discriminator="said")])
