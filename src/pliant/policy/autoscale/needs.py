"""How many kernels were needed when (`Need`): what a release has to wait for.

A need matters as long as none that is as large has come after it. So the needs that are kept fall from old to new, and
a need that lasts is one entry.
"""

from typing import Final, NamedTuple

MAX_NEEDS: Final = 64


class Need(NamedTuple):
    """So many kernels were needed then."""

    at: float
    num: int


def record(needs: tuple[Need, ...], need: Need, keep_s: float) -> tuple[Need, ...]:
    """Return the needs with one more, without those older than this.

    If there are too many, the two that are closest in time count as one: some kernels are kept a little longer.
    """
    larger = [old for old in needs if old.num > need.num and need.at - old.at < keep_s]
    kept = [*larger, need]
    if len(kept) > MAX_NEEDS:
        index = min(range(len(kept) - 1), key=lambda i: kept[i + 1].at - kept[i].at)
        kept[index : index + 2] = [Need(kept[index + 1].at, kept[index].num)]
    return tuple(kept)


def most_needed(needs: tuple[Need, ...], now: float, within_s: float) -> Need | None:
    """Return the largest need of the last seconds, the latest if there are several; None if there was none."""
    return next((need for need in needs if now - need.at < within_s), None)
