"""The parts of a data set: for training, for validation, for test. Found by the names of folders, or dealt out.

Samples are dealt by percentage, the same for the same seed. Images are dealt within each class, so that every part has
the classes in the proportions of the whole; rows of a table are dealt one after the other, with exactly as many for
each part as the percentages say.
"""

import random
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from pliant.core.dataset import SPLITS, Split, SplitRule

PARTS: Final[tuple[Split, ...]] = ("validation", "test")
"""What is cut out of the samples for training, if it does not come by itself."""
FOLDER_NAMES: Final[dict[Split, tuple[str, ...]]] = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid"),
    "test": ("test", "testing"),
}
"""What the folder of a part may be called, whatever the case."""


def counts(num: int, rule: SplitRule, lacking: Collection[Split] = PARTS) -> dict[Split, int]:
    """Return how many of `num` samples go where; one at least is left for training if there is one.

    A part that is not lacking gets none.
    """
    percents = {"validation": rule.validation_percent, "test": rule.test_percent}
    cut: dict[Split, int] = {part: int(num * percents[part] / 100 + 0.5) if part in lacking else 0 for part in PARTS}
    while num and sum(cut.values()) >= num:
        largest = max(PARTS, key=lambda part: cut[part])
        cut[largest] -= 1
    return {"train": num - sum(cut.values()), **cut}


def deal(
    names: Sequence[str], rule: SplitRule, *, label: str, lacking: Collection[Split] = PARTS
) -> dict[Split, tuple[str, ...]]:
    """Deal the samples of one class out; the order in which they are given does not matter."""
    shuffled = sorted(names)
    random.Random(f"{rule.seed}/{label}").shuffle(shuffled)
    dealt: dict[Split, tuple[str, ...]] = {}
    begin = 0
    for part, num in counts(len(shuffled), rule, lacking).items():
        dealt[part] = tuple(sorted(shuffled[begin : begin + num]))
        begin += num
    return dealt


class RowDealer:
    """Deals rows out as they come, without remembering any: D. E. Knuth, TAOCP vol. 2, 3.4.2, algorithm S."""

    def __init__(self, num_rows: int, rule: SplitRule) -> None:
        self._left = num_rows
        self._needed = counts(num_rows, rule)
        self._random = random.Random(f"{rule.seed}/rows")

    def deal(self) -> Split:
        """Return where the next row goes."""
        drawn = self._random.randrange(self._left)
        self._left -= 1
        for part, needed in self._needed.items():
            if drawn < needed:
                self._needed[part] -= 1
                return part
            drawn -= needed
        raise AssertionError("as many rows are needed as are left")


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
    return {part: name for part in SPLITS if (name := next((there[n] for n in FOLDER_NAMES[part] if n in there), None))}
