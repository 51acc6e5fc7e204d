"""What the leader tells of a training's progress, a few times a second at most."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pliant.core.job import Progress
from pliant.core.link import FromTask, Point, Report

_EVERY_S: Final = 0.25
_SMOOTHING: Final = 0.3
"""Weight of the newest interval in the speed."""


@dataclass(slots=True, kw_only=True)
class Reporter:
    """Collects committed steps and sends a report when the last one is old enough.

    Every point is the mean over the steps since the point before it, so that none is lost however fast the steps are.
    """

    send: Callable[[FromTask], None]
    now: Callable[[], float]
    """Seconds since the epoch."""
    num_epochs: int
    num_steps: int
    samples_of: Callable[[int], int]
    """Samples used by the first n steps of the job."""
    latest: dict[str, float] = field(default_factory=dict)
    """Newest value of everything that was ever reported."""
    _sums: dict[str, tuple[float, int]] = field(default_factory=dict)
    _sent_at: float | None = None
    _sent_step: int = 0
    _speed: float = 0.0

    def commit(self, values: Mapping[str, float], *, step: int, epoch: int, generation: int, leads: bool) -> None:
        """Take note of the means over the newest global batch; `step` counts committed ones."""
        self.latest.update(values)
        if not leads:
            self._sums.clear()
            self._sent_at = None
            return
        for name, value in values.items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = (total + value, count + 1)
        if self._sent_at is None:
            self._sent_at, self._sent_step = self.now(), step
        elif self.now() - self._sent_at >= _EVERY_S:
            self.flush(step=step, epoch=epoch, generation=generation)

    def log(self, values: Mapping[str, float], *, step: int, epoch: int, generation: int, leads: bool) -> None:
        """Take note of values that the script reports; they are sent at once."""
        self.latest.update(values)
        if leads:
            self._sums.update({name: (value, 1) for name, value in values.items()})
            self.flush(step=step, epoch=epoch, generation=generation)

    def flush(self, *, step: int, epoch: int, generation: int) -> None:
        """Send what there is."""
        now = self.now()
        elapsed_s = now - self._sent_at if self._sent_at is not None else 0.0
        if elapsed_s > 0 and step > self._sent_step:
            speed = (self.samples_of(step) - self.samples_of(self._sent_step)) / elapsed_s
            self._speed = speed if self._speed == 0.0 else self._speed + _SMOOTHING * (speed - self._speed)
        points = tuple(
            Point(name=name, step=step, epoch=epoch, at=now, value=total / count)
            for name, (total, count) in self._sums.items()
        )
        self._sums.clear()
        self._sent_at, self._sent_step = now, step
        samples_left = self.samples_of(self.num_steps) - self.samples_of(step)
        progress = Progress(
            epoch=epoch,
            num_epochs=self.num_epochs,
            step=step,
            num_steps=self.num_steps,
            samples=self.samples_of(step),
            samples_per_s=self._speed,
            loss=self.latest.get("loss"),
            metrics={name: value for name, value in self.latest.items() if name != "loss"},
            eta_s=samples_left / self._speed if self._speed > 0 else None,
        )
        self.send(Report(generation=generation, progress=progress, points=points))
