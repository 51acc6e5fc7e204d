"""The folders of a data set that comes with its parts: which is for training, for validation, for test."""

from pathlib import Path
from typing import Final

from pliant.core.dataset import SPLITS, Split

NAMES: Final[dict[Split, tuple[str, ...]]] = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid"),
    "test": ("test", "testing"),
}
"""What such a folder may be called, whatever the case."""


def find_parts(folder: Path) -> dict[Split, str]:
    """Return the parts that are there, relative to the folder: at its top, or in the only folder that it holds."""
    if found := _parts_in(folder):
        return found
    inside = [path for path in folder.iterdir() if not path.name.startswith(".")]
    if len(inside) == 1 and inside[0].is_dir():
        return {part: f"{inside[0].name}/{place}" for part, place in _parts_in(inside[0]).items()}
    return {}


def _parts_in(folder: Path) -> dict[Split, str]:
    there = {path.name.lower(): path.name for path in sorted(folder.iterdir()) if path.is_dir()}
    return {part: name for part in SPLITS if (name := next((there[n] for n in NAMES[part] if n in there), None))}
