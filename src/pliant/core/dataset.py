"""A data set that jobs can name: where it came from, what is in it, and how far its import is.

Plain values; what makes them is in `pliant.catalog`.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, Protocol

from annotated_types import Ge, Le, Len, Lt, MaxLen

from pliant.core.access import SharedWith, VisibleJobs
from pliant.core.errors import Problem
from pliant.core.input import FINITE, NO_NUL, PLAIN_TEXT, Input, Pattern
from pliant.core.registry import CatalogName, Owned

Kind = Literal["any", "images", "csv"]
"""A folder as it is; pictures in classes; a table."""
Split = Literal["train", "validation", "test"]
SPLITS: Final[tuple[Split, ...]] = ("train", "validation", "test")
Resizing = Literal["squash", "crop", "fill"]
"""To the size whatever becomes of the shape; what is over cut off on both sides; what is lacking made black."""
ColumnKind = Literal["integer", "number", "boolean", "text", "empty"]
MAX_SIDE: Final = 8192

Percent = Annotated[float, Input(Ge(0), Lt(100), FINITE)]
Pixels = Annotated[int, Input(Ge(1), Le(MAX_SIDE))]
Sha256 = Annotated[str, Input(Pattern(r"^[0-9a-f]{64}$", "64 digits of 0-9 and a-f"))]


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


@dataclass(frozen=True, kw_only=True)
class SplitRule:
    """How samples are dealt out that come without a split."""

    validation_percent: Percent = 10.0
    test_percent: Percent = 10.0
    seed: Annotated[int, Input(Ge(0), Le(2**53))] = 0
    """The same seed deals the same samples out in the same way."""


@dataclass(frozen=True, kw_only=True)
class ImageRule:
    """What is done to images."""

    width: Pixels | None = None
    """Left out, together with `height`: images stay as large as they are."""
    height: Pixels | None = None
    resizing: Resizing = "squash"
    """`squash` to the size whatever becomes of the shape; `crop` what is over; `fill` what is lacking with black."""
    colour: Literal["rgb", "grey"] = "rgb"


@dataclass(frozen=True, kw_only=True)
class CsvRule:
    """How a table is read."""

    header: bool = True
    """Its first row names the columns."""
    delimiter: str | None = None
    """Left out: it is found out."""


@dataclass(frozen=True, kw_only=True)
class SourceSettings:
    """Where people say that the data come from: exactly one of `path` and `upload_id`."""

    path: Annotated[str, Input(Len(1, 3000), NO_NUL)] | None = None
    """Below the server's data root. Of kind `any` a folder is used where it lies, all else is imported."""
    upload_id: (
        Annotated[str, Input(Pattern(r"^[0-9a-f]{32}$", "the id of an upload, 32 digits of 0-9 and a-f"))] | None
    ) = None
    """A complete upload: a tar, tar.gz or zip, or a CSV file."""
    sha256: Sha256 | None = None
    """What the upload as a whole must have, in hex."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(SourceSettings):
    """Where a data set comes from: exactly one of the two."""

    sha256: str = ""  # empty: it is not checked


@dataclass(frozen=True, kw_only=True)
class DatasetSettings:
    """What people say of every data set. A field that is added here is one of REST and of `data add`, too."""

    name: CatalogName
    """Of letters, digits, '.', '_' and '-', 100 at most."""
    kind: Kind
    source: SourceSettings
    description: Annotated[str, Input(MaxLen(10_000), PLAIN_TEXT)] = ""
    shared_with: SharedWith = ()
    """Users who may see and use it; `*` is everybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(DatasetSettings, Owned):
    """A data set, and how it was asked for."""

    KIND: ClassVar[str] = "dataset"

    source: Source
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


@dataclass(frozen=True, kw_only=True)
class UploadSettings:
    """Bytes that shall come in."""

    num_bytes: Annotated[int, Input(Ge(1), Le(2**53))]  # all of them
    sha256: Sha256 | None = None
    """Of all of them, in hex; checked when they are imported."""
    fingerprint: Annotated[str, Input(MaxLen(200), NO_NUL)] = ""
    """Whatever the client knows an upload again by."""


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """Who began an upload; first in every answer."""

    id: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload(UploadSettings, _Begun):
    """Bytes on their way in, in order; what `offset` counts is safe on the server's disk."""

    sha256: str = ""  # empty: it is not checked
    offset: int = 0
    """Where the next chunk begins."""
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

    def using(
        self, name: str | None, visible: VisibleJobs | None
    ) -> AbstractContextManager[DataPlace | Problem | None]:
        """Return where a data set lies, or why it cannot be used; until the end of the block nobody removes it.

        Args:
            name: of the data set; None for a job that uses none.
            visible: of whoever submits the job; None: they see all.
        """
        ...
