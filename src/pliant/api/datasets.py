"""The REST bodies of data sets and uploads. Answers are the nouns of `pliant.core.dataset`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from pliant.api.request import Request, refuse
from pliant.core.dataset import CsvRule, Dataset, ImageRule, Kind, Resizing, Source, SplitRule, Upload

OFFSET_HEADER: Final = "Upload-Offset"
"""In every answer about an upload: where the next chunk begins."""
MAX_SIDE: Final = 8192
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

Percent = Annotated[float, Field(ge=0, lt=100, allow_inf_nan=False)]
Pixels = Annotated[int, Field(ge=1, le=MAX_SIDE, strict=True)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Description = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
SharedWith = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")], ...], Field(max_length=1000)
]


class SourceRequest(Request):
    """Where the data come from: exactly one of `path` and `upload_id`."""

    path: Annotated[str, Field(min_length=1, max_length=3000, pattern=r"^[^\x00]+$")] | None = None
    """Below the server's data root. Of kind `any` a folder is used where it lies, all else is imported."""
    upload_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    """A complete upload: a tar, tar.gz or zip, or a CSV file."""
    sha256: Sha256 | None = None
    """What the upload as a whole must have, in hex."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        return refuse(self, self._clashes())

    def _clashes(self) -> Iterator[str]:
        if (self.path is None) == (self.upload_id is None):
            yield "give exactly one of path and upload_id"
        if self.sha256 is not None and self.upload_id is None:
            yield "sha256 is for an upload; leave it out with a path"

    def noun(self) -> Source:
        """Return what this body says."""
        return Source(path=self.path, upload_id=self.upload_id, sha256=self.sha256 or "")


class SplitRequest(Request):
    """How samples are dealt out that come without a split."""

    validation_percent: Percent = 10.0
    test_percent: Percent = 10.0
    seed: Annotated[int, Field(ge=0, le=2**53, strict=True)] = 0
    """The same seed deals the same samples out in the same way."""

    @model_validator(mode="after")
    def _some_for_training(self) -> Self:
        if self.validation_percent + self.test_percent >= 100:
            raise ValueError(
                f"{self.validation_percent:g}% for validation and {self.test_percent:g}% for test leave none for "
                f"training; lower them"
            )
        return self


class ImageRequest(Request):
    """What is done to images."""

    width: Pixels | None = None
    """Left out, together with `height`: images stay as large as they are."""
    height: Pixels | None = None
    resizing: Resizing = "squash"
    """`squash` to the size whatever becomes of the shape; `crop` what is over; `fill` what is lacking with black."""
    colour: Literal["rgb", "grey"] = "rgb"

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.width is None) != (self.height is None):
            raise ValueError("give both width and height, or neither")
        return self


class CsvRequest(Request):
    """How a table is read."""

    header: Annotated[bool, Field(strict=True)] = True
    """Its first row names the columns."""
    delimiter: Literal[",", ";", "\t", "|"] | None = None
    """Left out: it is found out."""


class DatasetRequest(Request):
    """A data set to import."""

    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    """Of letters, digits, '.', '_' and '-', 100 at most."""
    kind: Kind
    source: SourceRequest
    description: Description = ""
    shared_with: SharedWith = ()
    """Users who may see and use it; `*` is everybody."""
    split: SplitRequest = SplitRequest()
    images: ImageRequest | None = None
    csv: CsvRequest | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        return refuse(self, self._against_its_kind())

    def _against_its_kind(self) -> Iterator[str]:
        for name in ("images", "csv"):
            if getattr(self, name) is not None and self.kind != name:
                yield f"{name} is for data sets of kind {name}; this one is of kind {self.kind}"
        if self.kind == "any" and "split" in self.model_fields_set:
            yield "a data set of kind any is taken as it is; leave split out"

    def noun(self, owner: str) -> Dataset:
        """Return the data set that this body asks for."""
        return Dataset(
            name=self.name,
            owner=owner,
            kind=self.kind,
            source=self.source.noun(),
            description=self.description,
            shared_with=tuple(dict.fromkeys(self.shared_with)),
            split=SplitRule(**dict(self.split)),
            images=ImageRule(**dict(self.images or ImageRequest())),
            csv=CsvRule(**dict(self.csv or CsvRequest())),
        )


class DatasetPatch(Request):
    """What can be changed; what is left out stays as it is."""

    description: Description | None = None
    shared_with: SharedWith | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change: give description or shared_with")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPage:
    """Data sets in the order of their names; ask again with `after=next`."""

    datasets: tuple[Dataset, ...]
    next: str | None


class UploadRequest(Request):
    """Bytes that shall come in."""

    num_bytes: Annotated[int, Field(ge=1, le=2**53, strict=True)]
    sha256: Sha256 | None = None
    """Of all of them, in hex; checked when they are imported."""
    fingerprint: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] = ""
    """Whatever the client knows an upload again by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPage:
    """The uploads that the caller began, oldest first."""

    uploads: tuple[Upload, ...]
    max_chunk_bytes: int
