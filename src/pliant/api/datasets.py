"""The REST bodies of data sets and uploads. Answers are the nouns of `pliant.core.dataset`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from pydantic import model_validator

from pliant.api.request import Patch, Request, refuse
from pliant.core.dataset import (
    CsvRule,
    Dataset,
    DatasetSettings,
    ImageRule,
    Source,
    SourceSettings,
    SplitRule,
    Upload,
    UploadSettings,
)
from pliant.core.errors import InvalidInput
from pliant.core.preview import DatasetPreview, PreviewKind, PreviewPart, Thumbnail

OFFSET_HEADER: Final = "Upload-Offset"
"""In every answer about an upload: where the next chunk begins."""


class SourceRequest(Request, SourceSettings):
    """Where the data come from: exactly one of `path` and `upload_id`."""

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
        return Source(**{**self.given(), "sha256": self.sha256 or ""})


class SplitRequest(Request, SplitRule):
    """How samples are dealt out that come without a split."""

    @model_validator(mode="after")
    def _some_for_training(self) -> Self:
        if self.validation_percent + self.test_percent >= 100:
            raise ValueError(
                f"{self.validation_percent:g}% for validation and {self.test_percent:g}% for test leave none for "
                f"training; lower them"
            )
        return self


class ImageRequest(Request, ImageRule):
    """What is done to images."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.width is None) != (self.height is None):
            raise ValueError("give both width and height, or neither")
        return self


class CsvRequest(Request, CsvRule):
    """How a table is read."""

    delimiter: Literal[",", ";", "\t", "|"] | None = None
    """Left out: it is found out."""


class DatasetRequest(Request, DatasetSettings):
    """A data set to import."""

    source: SourceRequest
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
        rules: dict[str, Any] = {
            "split": SplitRule(**self.split.given()),
            "images": ImageRule(**self.images.given()) if self.images else ImageRule(),
            "csv": CsvRule(**self.csv.given()) if self.csv else CsvRule(),
        }
        return Dataset(**{**self.given(), **rules, "owner": owner, "source": self.source.noun()})


class DatasetPatch(Patch, of=DatasetSettings, but=("name", "kind", "source")):
    """What can be changed; what is left out stays as it is."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"nothing to change: give {' or '.join(type(self).model_fields)}")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewView:
    """What one part of a data set looks like."""

    kind: PreviewKind
    """Whether `images` are there, or `rows`, or nothing."""
    reason: str
    """Why there is nothing to be seen, if there is not."""
    splits: tuple[str, ...]
    """The parts that can be shown."""
    split: str
    """The one that is shown; empty: none."""
    images: tuple[Thumbnail, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def preview_view(preview: DatasetPreview, split: str | None, limit: int) -> PreviewView:
    """Return one part of a preview, the first if none is named, with so many pictures or rows.

    Raises:
        InvalidInput: it has no such part.
    """
    splits = tuple(part.split for part in preview.parts)
    part = next((part for part in preview.parts if split in (None, part.split)), None)
    if part is None and preview.parts:
        raise InvalidInput.at("split", f"{split!r:.60} is not there; take {' or '.join(splits)}")
    part = part or PreviewPart(split="")
    return PreviewView(
        kind=preview.kind,
        reason=preview.reason,
        splits=splits,
        split=part.split,
        images=part.images[:limit],
        columns=part.columns,
        rows=part.rows[:limit],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPage:
    """Data sets in the order of their names; ask again with `after=next`."""

    datasets: tuple[Dataset, ...]
    next: str | None


class UploadRequest(Request, UploadSettings):
    """Bytes that shall come in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPage:
    """The uploads that the caller began, oldest first."""

    uploads: tuple[Upload, ...]
    max_chunk_bytes: int
