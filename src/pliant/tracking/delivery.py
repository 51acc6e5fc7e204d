"""Brings what a journal says to one tracker, for as long as this process is the one that does.

Law: a point is marked as logged only after the tracker took it. What it refuses is passed over and said once; what it
cannot take now is tried again, later and later.
"""

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from pliant.tracking.journal import Entries, JournalReader
from pliant.tracking.tracker import Outcome, Tracker, TrackerDown, TrackerRefused

_RETRY_FIRST_S: Final = 1.0
_RETRY_MOST_S: Final = 30.0


class Delivery:
    """Logs a journal to a tracker.

    Args:
        mark: the file that says how far others came.
        warn: tells the person something.
        clock: monotonic, seconds.
    """

    def __init__(
        self, *, tracker: Tracker, journal: Path, mark: Path, warn: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._tracker = tracker
        self._mark = mark
        self._warn = warn
        self._clock = clock
        offset, steps = (0, {}) if tracker.replays else _read_mark(mark)
        self._reader = JournalReader(journal, offset=offset, last_steps=steps)
        self._pending = Entries()
        self._is_open = False
        self._retry_at = 0.0
        self._delay_s = _RETRY_FIRST_S
        self._warned: set[str] = set()
        self.is_refused = False
        """The tracker cannot be logged to at all."""

    def tick(self) -> bool:
        """Log what there is to log; return whether all is logged."""
        if self.is_refused or self._clock() < self._retry_at:
            return self.is_refused
        try:
            if not self._is_open:
                self._tracker.open()
                self._is_open = True
            while entries := (self._pending or self._reader.read()):
                self._pending = entries
                self._log(entries)
                self._pending = Entries()
                _write_mark(self._mark, self._reader)
        except TrackerDown as error:
            self._put_off(error)
            return False
        except TrackerRefused as error:
            self.is_refused = True
            self._say("refused", f"nothing is logged to {self._tracker.name}: {error}")
            return True
        self._delay_s = _RETRY_FIRST_S
        return True

    def close(self, outcome: Outcome) -> None:
        """End the run, or leave it to others, as far as the tracker can be reached."""
        if self.is_refused:
            return
        try:
            if not self._is_open:
                self._tracker.open()
            self._tracker.close(outcome)
        except (TrackerDown, TrackerRefused) as error:
            self._say("down", f"{self._tracker.name} could not be told that the training is {outcome.value}: {error}")

    def _log(self, entries: Entries) -> None:
        if entries.params:
            self._try("params", partial(self._tracker.log_params, entries.params))
        if entries.points:
            self._try("points", partial(self._tracker.log, entries.points))

    def _try(self, what: str, log: Callable[[], None]) -> None:
        try:
            log()
        except TrackerRefused as error:
            self._say(what, f"{self._tracker.name} does not take some of what is logged: {error}")

    def _put_off(self, error: TrackerDown) -> None:
        self._is_open = False
        self._retry_at = self._clock() + self._delay_s
        self._delay_s = min(2 * self._delay_s, _RETRY_MOST_S)
        self._say(
            "down", f"{self._tracker.name} cannot be logged to now; the training goes on, it is tried again: {error}"
        )

    def _say(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            self._warn(text)


def _read_mark(path: Path) -> tuple[int, Mapping[str, int]]:
    try:
        document = json.loads(path.read_text())
        return int(document["offset"]), {str(name): int(step) for name, step in document["steps"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0, {}  # the tracker says itself what it has


def _write_mark(path: Path, reader: JournalReader) -> None:
    new = path.with_suffix(".new")
    try:
        new.write_text(json.dumps({"offset": reader.offset, "steps": reader.last_steps}))
        os.replace(new, path)
    except OSError:
        return  # the disk is full: the next process reads more than it must
