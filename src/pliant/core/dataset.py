"""A data set that jobs can name: where it came from, what is in it, and how far its import is.

Plain values; what makes them is in `pliant.catalog`.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, Literal, Protocol

from pliant.core.access import Sight
from pliant.core.errors import Problem

Kind = Literal["any", "images", "csv"]
"""A folder as it is; pictures in classes; a table."""
Split = Literal["train", "validation", "test"]
SPLITS: Final[tuple[Split, ...]] = ("train", "validation", "test")
Resizing = Literal["squash", "crop", "fill"]
"""To the size whatever becomes of the shape; what is over cut off on both sides; what is lacking made black."""
ColumnKind = Literal["integer", "number", "boolean", "text", "empty"]


class DatasetState(StrEnum):
    """Where a data set is in its life."""

    IMPORTING = "importing"
    READY = "ready"
    """Jobs can use it; what is in it does not change any more."""
    FAILED = "failed"
    STOPPED = "stopped"
    """A person stopped its import."""


class DatasetEvent(StrEnum):
    """What can happen to an import."""

    PUBLISH = "publish"
    FAIL = "fail"
    STOP = "stop"


DATASET_LIFECYCLE: Final[Mapping[DatasetState, Mapping[DatasetEvent, DatasetState]]] = {
    DatasetState.IMPORTING: {
        DatasetEvent.PUBLISH: DatasetState.READY,
        DatasetEvent.FAIL: DatasetState.FAILED,
        DatasetEvent.STOP: DatasetState.STOPPED,
    },
    DatasetState.READY: {},
    DatasetState.FAILED: {},
    DatasetState.STOPPED: {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProgress:
    """How far an import is. Totals are 0 as long as they are not known."""

    phase: str
    """Such as `unpacking`."""
    bytes_done: int = 0
    bytes_total: int = 0
    files_done: int = 0
    files_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    name: str
    kind: ColumnKind
    """What all its values can be read as."""
    num_missing: int
    minimum: float | None = None
    """Of numbers."""
    maximum: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is in a data set that is ready."""

    num_bytes: int = 0
    num_files: int = 0
    checksum: str = ""
    """SHA-256 over the names and SHA-256s of its files, in hex; empty for one that is used where it lies."""
    splits: Mapping[str, int] = field(default_factory=dict)
    """How many files (images, rows of a table) are for `train`, `validation` and `test`."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Where those lie, relative to the folder."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """Classes, and how many images each has."""
    mean: tuple[float, ...] = ()
    """Of the images for training, for each channel, 0 to 1."""
    deviation: tuple[float, ...] = ()
    """The standard deviation of the same."""
    image_size: tuple[int, int] | None = None
    """Width and height, if all images have the same."""
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRule:
    """How samples are dealt out that come without a split."""

    validation_percent: float = 10.0
    test_percent: float = 10.0
    seed: int = 0
    """The same seed deals the same samples out in the same way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRule:
    """What is done to images."""

    width: int | None = None
    """Pixels; None leaves images as large as they are."""
    height: int | None = None
    resizing: Resizing = "squash"
    colour: Literal["rgb", "grey"] = "rgb"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvRule:
    """How a table is read."""

    header: bool = True
    """Its first row names the columns."""
    delimiter: str | None = None
    """None finds it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a data set comes from: exactly one of the two."""

    path: str | None = None
    """Below the server's data root."""
    upload_id: str | None = None
    sha256: str = ""
    """What the upload as a whole must have, in hex; empty if it is not to be checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A data set, and how it was asked for."""

    KIND: ClassVar[str] = "dataset"

    name: str
    owner: str
    kind: Kind
    source: Source
    description: str = ""
    shared_with: tuple[str, ...] = ()
    """Users who may see and use it; `*` is everybody."""
    split: SplitRule = field(default_factory=SplitRule)
    images: ImageRule = field(default_factory=ImageRule)
    csv: CsvRule = field(default_factory=CsvRule)
    state: DatasetState = DatasetState.IMPORTING
    reason: str = ""
    """Why it failed or was stopped; what to do."""
    folder: str = ""
    """Where it lies on the server's machine; empty before it is ready."""
    in_place: bool = False
    """It is used where it lay, below the data root, and not Pliant's to keep or remove."""
    content: Content = field(default_factory=Content)
    created_at: float = 0.0
    ready_at: float | None = None
    progress: ImportProgress | None = None
    """While it is imported; given in answers, not kept."""
    revision: int = 0
    """Its ETag; given in answers, not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """Bytes on their way in, in order; what `offset` counts is safe on the server's disk."""

    id: str
    owner: str
    num_bytes: int
    """All of them."""
    offset: int = 0
    """Where the next chunk begins."""
    sha256: str = ""
    """Of all of them, in hex, if the client told; checked when they are imported."""
    fingerprint: str = ""
    """Chosen by the client, to know an upload again that it began earlier."""
    created_at: float
    expires_at: float
    """It is removed then, unless another chunk comes."""
    taken_by: str = ""
    """The data set that is being made of it; until that is done it cannot be changed."""

    @property
    def complete(self) -> bool:
        return self.offset == self.num_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlace:
    """Where a data set lies that a job uses: whole paths on the server's machine."""

    name: str
    folder: str
    parts: Mapping[str, str]
    """Of `train`, `validation` and `test`, those that there are."""


class DataPlaces(Protocol):
    """Where data sets lie, as control asks for it. Safe to call from any thread."""

    def using(self, name: str | None, sight: Sight | None) -> AbstractContextManager[DataPlace | Problem | None]:
        """Return where a data set lies, or why it cannot be used; until the end of the block nobody removes it.

        Args:
            name: of the data set; None for a job that uses none.
            sight: of whoever submits the job; None: they see all.
        """
        ...
