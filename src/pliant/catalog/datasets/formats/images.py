"""Imports pictures in classes: finds them, deals them out, makes them alike, measures them. Knows no server.

Every picture is decoded and written anew as PNG, so that nothing but its pixels gets in. Sums for mean and deviation
are exact: they come from counts of the 256 values of each channel.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from PIL import Image, ImageFile, ImageOps, UnidentifiedImageError

from pliant.catalog.datasets.formats import cifar as cifar
from pliant.catalog.datasets.formats.parts import PARTS, deal, find_parts
from pliant.core.dataset import SPLITS, Content, ImageRule, ImportProgress, Split, SplitRule
from pliant.core.errors import InvalidInput, Problem
from pliant.files.members import MAX_PROBLEMS

ReportProgress = Callable[[ImportProgress], None]

MAX_PIXELS: Final = 64 << 20
"""Of one picture; more is a bomb."""
_FORMATS: Final = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_NO_IMAGES: Final = ("thumbs.db", "desktop.ini")
UNREADABLE: Final = (OSError, ValueError, SyntaxError, Image.DecompressionBombError, EOFError, IndexError)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceImage:
    """A picture that is not read yet."""

    name: str
    """Unique in its class."""
    read: Callable[[], Image.Image]
    shown: str = ""
    """Its file in the folder of the class, if it has one."""


FoundImages = Mapping[Split, Mapping[str, tuple[SourceImage, ...]]]
"""Pictures by part and class. Parts that are not there are cut out of those for training."""


@dataclass(slots=True)
class ChannelStatistics:
    """Counts the values of each channel."""

    _values: list[list[int]] = field(default_factory=list)

    def take(self, picture: Image.Image) -> None:
        """Count the pixels of a picture."""
        histogram = picture.histogram()
        channels = [histogram[i : i + 256] for i in range(0, len(histogram), 256)]
        if not self._values:
            self._values = channels
            return
        self._values = [
            [a + b for a, b in zip(one, other, strict=True)] for one, other in zip(self._values, channels, strict=True)
        ]

    def moments(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return mean and standard deviation of each channel, of values 0 to 1."""
        means, deviations = [], []
        for values in self._values:
            num = sum(values)
            total = sum(value * count for value, count in enumerate(values))
            squares = sum(value * value * count for value, count in enumerate(values))
            means.append(total / num / 255)
            deviations.append((max(0, num * squares - total * total) ** 0.5) / num / 255)
        return tuple(means), tuple(deviations)


@dataclass(slots=True, kw_only=True)
class _ImageWriter:
    """Pictures on their way to the disk."""

    out: Path
    rule: ImageRule
    report: ReportProgress
    total: int
    statistics: ChannelStatistics = field(default_factory=ChannelStatistics)
    sizes: set[tuple[int, int]] = field(default_factory=set)
    splits: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    num_bytes: int = 0

    def write(self, part: Split, label: str, pictures: Iterable[SourceImage]) -> None:
        """Write the pictures of one class of one part.

        Raises:
            InvalidInput: too many cannot be read to go on.
        """
        folder = self.out / part / label
        folder.mkdir(parents=True)
        for picture in pictures:
            try:
                image = fit_image(picture.read(), self.rule)
            except UNREADABLE as error:
                why = "of no known kind" if isinstance(error, UnidentifiedImageError) else error
                shown = f"{label}/{picture.shown or picture.name}"
                message = f"{shown} cannot be read as a picture ({why}); mend it or leave it out"
                self.problems.append(Problem(field="source", message=message))
                if len(self.problems) >= MAX_PROBLEMS:
                    raise InvalidInput(*self.problems) from error
                continue
            path = folder / f"{picture.name}.png"
            image.save(path, format="PNG", compress_level=1)
            self._count(part, label, image, path)

    def _count(self, part: Split, label: str, image: Image.Image, path: Path) -> None:
        if part == "train":
            self.statistics.take(image)
        self.sizes.add(image.size)
        self.splits[part] += 1
        self.labels[label] += 1
        self.num_bytes += path.stat().st_size
        done = self.splits.total()
        self.report(
            ImportProgress(phase="writing pictures", files_done=done, files_total=self.total, bytes_done=self.num_bytes)
        )


def import_images(source: Path, out: Path, rule: ImageRule, split: SplitRule, report: ReportProgress) -> Content:
    """Write the pictures below `source` as `out/PART/CLASS/NAME.png` and return what was found.

    Raises:
        InvalidInput: there are none, or some cannot be read.
        OSError: the disk does not take them.
    """
    report(ImportProgress(phase="looking for pictures"))
    found = find_images(source)
    dealt = split_images(found, split)
    total = sum(len(pictures) for classes in dealt.values() for pictures in classes.values())
    writer = _ImageWriter(out=out, rule=rule, report=report, total=total)
    for part, classes in dealt.items():
        for label, pictures in classes.items():
            writer.write(part, label, pictures)
    if writer.problems:
        raise InvalidInput(*writer.problems)
    mean, deviation = writer.statistics.moments()
    return Content(
        splits={part: writer.splits[part] for part in SPLITS if writer.splits[part]},
        parts={part: part for part in SPLITS if writer.splits[part]},
        labels=dict(sorted(writer.labels.items())),
        mean=mean,
        deviation=deviation,
        image_size=next(iter(writer.sizes)) if len(writer.sizes) == 1 else None,
    )


def find_images(source: Path) -> FoundImages:
    """Return the pictures below a folder: CIFAR-10 batches, parts of classes, or classes.

    Raises:
        InvalidInput: there are none.
    """
    if batches := cifar.find(source):
        return _images_in_batches(batches)
    parts = find_parts(source)
    if "train" in parts:
        found: FoundImages = {part: _classes(source / place) for part, place in parts.items()}
    else:
        found = {"train": _classes(_inner(source))}
    if not found["train"]:
        raise InvalidInput.at(
            "source",
            "it holds no pictures in folders named after their classes (CLASS/PICTURE.png, or "
            "train/CLASS/PICTURE.png), and no CIFAR-10 batches for Python",
        )
    return found


def _inner(source: Path) -> Path:
    """Return the folder that holds the classes: an archive often has everything in one folder."""
    inside = [path for path in source.iterdir() if not path.name.startswith(".")]
    if len(inside) == 1 and inside[0].is_dir() and any(path.is_dir() for path in inside[0].iterdir()):
        return inside[0]
    return source


def _classes(folder: Path) -> dict[str, tuple[SourceImage, ...]]:
    classes = {}
    for place in sorted(folder.iterdir()):
        if place.is_dir() and not place.name.startswith("."):
            pictures = tuple(_images_of_class(place))
            if pictures:
                classes[place.name] = pictures
    return classes


def _images_of_class(folder: Path) -> Iterator[SourceImage]:
    """Yield the pictures of a class, each under a name of its own."""
    taken: set[str] = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name.startswith(".") or path.name.lower() in _NO_IMAGES:
            continue
        stem = "_".join(path.relative_to(folder).with_suffix("").parts)[:200]
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        shown = str(path.relative_to(folder))
        yield SourceImage(name=name, shown=shown, read=partial(read_image, path))


def read_image(path: Path, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """Return a picture, turned as its camera says.

    Raises:
        OSError, ValueError, …: one of `UNREADABLE`; it is none, or has more pixels.
    """
    with path.open("rb") as source, warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is checked at once
        with Image.open(source, formats=_FORMATS) as image:
            if image.width * image.height > max_pixels:
                raise ValueError(f"{image.width} × {image.height} pixels, more than {max_pixels >> 20} Mi")
            image.load()
            return ImageOps.exif_transpose(image)


def _images_in_batches(folder: Path) -> FoundImages:
    labels = cifar.read_labels(folder)
    training = [name for name in cifar.TRAINING if (folder / name).is_file()]
    found: dict[Split, dict[str, tuple[SourceImage, ...]]] = {"train": _in_batches(folder, training, labels)}
    if (folder / cifar.TEST).is_file():
        found["test"] = _in_batches(folder, [cifar.TEST], labels)
    return found


def _in_batches(folder: Path, names: Iterable[str], labels: tuple[str, ...]) -> dict[str, tuple[SourceImage, ...]]:
    classes: dict[str, list[SourceImage]] = {label: [] for label in labels}
    for name in names:
        batch = cifar.read_batch(folder / name, len(labels))
        for number, label in enumerate(batch.labels):
            read = partial(image_in_batch, batch, number)
            classes[labels[label]].append(SourceImage(name=f"{name}-{number:05}", read=read))
    return {label: tuple(pictures) for label, pictures in classes.items() if pictures}


def image_in_batch(batch: cifar.Batch, number: int) -> Image.Image:
    """Return one picture of a batch."""
    pixels, plane = batch.image(number), cifar.SIDE * cifar.SIDE
    size = (cifar.SIDE, cifar.SIDE)
    channels = [Image.frombytes("L", size, pixels[i : i + plane]) for i in range(0, len(pixels), plane)]
    return Image.merge("RGB", channels)


def split_images(found: FoundImages, rule: SplitRule) -> dict[Split, dict[str, tuple[SourceImage, ...]]]:
    """Return all pictures by part and class, parts that were lacking cut out of those for training."""
    lacking = [part for part in PARTS if part not in found]
    dealt: dict[Split, dict[str, tuple[SourceImage, ...]]] = {part: dict(classes) for part, classes in found.items()}
    dealt["train"] = {}
    for label, pictures in found["train"].items():
        by_name = {picture.name: picture for picture in pictures}
        for part, names in deal(tuple(by_name), rule, label=label, lacking=lacking).items():
            if names:
                dealt.setdefault(part, {})[label] = tuple(by_name[name] for name in names)
    return dealt


def fit_image(image: Image.Image, rule: ImageRule) -> Image.Image:
    """Return a picture in the colours and the size that were asked for."""
    image = image.convert("RGB" if rule.colour == "rgb" else "L")
    if rule.width is None or rule.height is None:
        return image
    size = (rule.width, rule.height)
    if image.size == size:
        return image
    match rule.resizing:
        case "squash":
            return image.resize(size, Image.Resampling.BICUBIC)
        case "crop":
            return ImageOps.fit(image, size, Image.Resampling.BICUBIC)
        case "fill":
            return ImageOps.pad(image, size, Image.Resampling.BICUBIC)


ImageFile.LOAD_TRUNCATED_IMAGES = False
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
