"""Makes small pictures, or first rows, of a data set that was just imported. Knows no server.

It looks at few files, those near the top, and at little of each. What it cannot read it passes over: a data set is none
the worse for it. Of `CLASS/PICTURE` it takes one picture of every class in turn, so that all classes are seen first.
"""

import base64
import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Final

from PIL import Image

from pliant.catalog.datasets.formats import cifar
from pliant.catalog.datasets.formats.csv import sniff_delimiter
from pliant.catalog.datasets.formats.images import UNREADABLE, image_in_batch, read_image
from pliant.core.preview import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_IMAGES,
    MAX_NAME,
    MAX_ROWS,
    MAX_SIDE,
    DatasetPreview,
    PreviewPart,
    Thumbnail,
    nothing,
)

_ALL: Final = "all"
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm")
_TABLES: Final = (".csv", ".tsv")
_TEXTS: Final = (".txt", ".jsonl", ".json", ".md")
_MAX_ENTRIES: Final = 1000
"""Of one folder so many names are looked at."""
_MAX_DEPTH: Final = 3
_MAX_PIXELS: Final = 16 << 20
_HEAD_BYTES: Final = 1 << 18
"""So much of a table is read."""
_TRIES: Final = 2
"""Twice as many pictures are tried as are shown."""


def make_preview(folder: Path, parts: Mapping[str, str]) -> DatasetPreview:
    """Return what a folder looks like.

    Args:
        folder: what will be published, or is used where it lies.
        parts: where the parts of it lie in it.
    """
    try:
        found = tuple(_batches(folder) if cifar.find(folder) else _parts(folder, parts))
    except (OSError, ValueError, MemoryError, RecursionError) as error:
        return nothing(f"it cannot be looked at ({type(error).__name__}); trainings may know how to read it")
    if pictures := tuple(part for part in found if part.images):
        return DatasetPreview(kind="images", parts=pictures)
    if tables := tuple(part for part in found if part.rows):
        return DatasetPreview(kind="table", parts=tables)
    return nothing("it has no pictures, tables or texts near its top that can be shown; trainings read it all the same")


def _parts(folder: Path, parts: Mapping[str, str]) -> Iterator[PreviewPart]:
    for split, place in (parts or {_ALL: ""}).items():
        yield _look(split, folder / place, 0)


def _look(split: str, place: Path, depth: int) -> PreviewPart:
    """Return what one part looks like; of a folder that holds one folder and nothing to show, what that does."""
    if place.is_file():
        return _table(split, place)
    names = _names(place)
    folders = [place / name for name in names if (place / name).is_dir()]
    if images := tuple(_thumbnails(_in_turn(place, names, folders))):
        return PreviewPart(split=split, images=images)
    for kinds in (_TABLES, _TEXTS):
        if file := next((place / name for name in names if name.lower().endswith(kinds)), None):
            return _table(split, file)
    if len(folders) == 1 and depth < _MAX_DEPTH:
        return _look(split, folders[0], depth + 1)
    return PreviewPart(split=split)


def _names(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in islice(entries, _MAX_ENTRIES) if not entry.name.startswith("."))


def _in_turn(place: Path, names: Sequence[str], folders: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield pictures with their classes: those of no class, then the first of every class, then the second."""
    yield from (("", place / name) for name in names if name.lower().endswith(_PICTURES))
    classes = [
        [(folder.name, folder / name) for name in _names(folder) if name.lower().endswith(_PICTURES)][:MAX_IMAGES]
        for folder in folders[:MAX_IMAGES]
    ]
    yield from (found for found in chain.from_iterable(zip_longest(*classes)) if found is not None)


def _thumbnails(pictures: Iterable[tuple[str, Path]]) -> Iterator[Thumbnail]:
    tried = islice(pictures, _TRIES * MAX_IMAGES)
    yield from islice(chain.from_iterable(_of_file(label, path) for label, path in tried), MAX_IMAGES)


def _of_file(label: str, path: Path) -> Iterator[Thumbnail]:
    with suppress(*UNREADABLE):
        yield _thumbnail(label, path.name, read_image(path, _MAX_PIXELS))


def _thumbnail(label: str, name: str, image: Image.Image) -> Thumbnail:
    width, height = image.size
    small = image.convert("L" if image.mode in ("1", "L", "I;16", "I") else "RGB")
    small.thumbnail((MAX_SIDE, MAX_SIDE))
    out = io.BytesIO()
    small.save(out, format="PNG")
    png = base64.b64encode(out.getvalue()).decode()
    return Thumbnail(label=_text(label, MAX_NAME), name=_text(name, MAX_NAME), width=width, height=height, png=png)


def _batches(folder: Path) -> Iterator[PreviewPart]:
    """Yield what CIFAR-10 batches look like; of those for training the first is looked at."""
    place = cifar.find(folder)
    assert place is not None, "it was found before"
    labels = cifar.read_labels(place)
    for split, name in (("train", cifar.TRAINING[0]), ("test", cifar.TEST)):
        if not (place / name).is_file():
            continue
        batch = cifar.read_batch(place / name, len(labels))
        numbers: dict[int, list[int]] = {}
        for number, label in enumerate(batch.labels):
            numbers.setdefault(label, []).append(number)
        of_labels = [numbers[label][:MAX_IMAGES] for label in sorted(numbers)]
        chosen = [one for one in chain.from_iterable(zip_longest(*of_labels)) if one is not None][:MAX_IMAGES]
        images = (
            _thumbnail(labels[batch.labels[one]], f"{name}-{one:05}", image_in_batch(batch, one)) for one in chosen
        )
        yield PreviewPart(split=split, images=tuple(images))


def _table(split: str, path: Path) -> PreviewPart:
    """Return the first rows of a table, or the first lines of a text."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if b"\0" in head:
        return PreviewPart(split=split)
    lines = head.decode("utf-8-sig", "replace").splitlines(keepends=True)
    if len(head) == _HEAD_BYTES and len(lines) > 1:
        lines.pop()  # it may have been cut
    if not path.name.lower().endswith(_TABLES):
        rows = [[line.rstrip("\r\n")] for line in lines[:MAX_ROWS]]
        return PreviewPart(split=split, columns=("line",), rows=tuple(map(_cells, rows)))
    found: list[list[str]] = []
    with suppress(csv.Error):
        delimiter = "\t" if path.name.lower().endswith(".tsv") else sniff_delimiter(path)
        reader = csv.reader(lines, delimiter=delimiter)
        found.extend(islice((row for row in reader if row), MAX_ROWS + 1))
    if not found:
        return PreviewPart(split=split)
    return PreviewPart(split=split, columns=_cells(found[0]), rows=tuple(map(_cells, found[1:])))


def _cells(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(_text(value, MAX_CELL) for value in row[:MAX_COLUMNS])


def _text(text: str, limit: int) -> str:
    """Return a name or a value as text: bytes of a name that are no UTF-8 become question marks."""
    return text[:limit].encode("utf-8", "replace").decode()
