"""What the leader reports of a training: progress a few times a second at most, ends of epochs, and the claim."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pliant.core.job import Progress
from pliant.core.link import Claimed, EpochFinished, FromTask, Point, Report
from pliant.train.data.sharding import ShardingPlan
from pliant.train.state.claim import TrainingClaim

_EVERY_S: Final = 0.25
_MOST_POINTS: Final = 1000
"""More are not sent in one message, but for those of one step."""
_WORK_EVERY_S: Final = 5.0
_SMOOTHING: Final = 0.3
"""Weight of the newest interval in the speed."""


@dataclass(slots=True, kw_only=True)
class Reporter:
    """Collects committed steps and sends a report when the last one is old enough.

    Every point is the mean over the steps since the point before it, so that none is lost however fast the steps are;
    or, where a person wants that, what one step in so many came to. Either way a step costs a few microseconds here.

    Points of single steps are the same in every task, and each keeps the newest: a task that takes the lead sends them,
    since the leader before may have died with its own. So it does with what the script reported last. What comes twice
    takes its own place.
    """

    send: Callable[[FromTask], None]
    now: Callable[[], float]
    """Seconds since the epoch."""
    plan: ShardingPlan
    claim: TrainingClaim
    num_epochs: int
    shares: Callable[[], tuple[int, ...]] = tuple
    """Returns the virtual workers of every task, empty while they are even."""
    every: int | None = None
    """A point is one step in so many; None: a mean over steps."""
    latest: dict[str, float] = field(default_factory=dict)
    """Newest value of everything that was ever reported."""
    _sums: dict[str, tuple[float, int]] = field(default_factory=dict)
    _points: list[Point] = field(default_factory=list)
    """To be sent, besides those of the sums; of a task that does not lead, those that it would send if it did."""
    _logged: dict[str, Point] = field(default_factory=dict)
    """What the script reported at the newest step at which it reported anything."""
    _sent_at: float | None = None
    _sent_step: int = 0
    _worked_at: float | None = None
    _generation: int = 0
    _reported_step: int | None = None
    _speed: float = 0.0
    _claimed: tuple[str, str] | None = None

    def commit(self, values: Mapping[str, float], *, step: int, generation: int, leads: bool) -> None:
        """Count the means over the newest global batch; `step` is the number of committed steps."""
        self.latest.update(values)
        if not leads:
            self._count(values, step)
            self._sums.clear()
            del self._points[:-_MOST_POINTS]
            self._sent_at = None
            return
        self.send_claim(step)
        self._count(values, step)
        ended, rest = divmod(step, self.plan.steps_per_epoch)
        if generation != self._generation:  # report it at once; the time it took to begin says nothing about its speed
            self._generation, self._sent_at = generation, None
            self._points += self._logged.values()
            self.flush(step=step, generation=generation)
        elif rest == 0 or self._is_due():
            self.flush(step=step, generation=generation)
        if rest == 0:
            metrics = dict(self.latest)
            self.send(EpochFinished(epoch=ended - 1, step=step, samples=self.plan.num_samples, metrics=metrics))

    def _count(self, values: Mapping[str, float], step: int) -> None:
        if self.every is None:
            for name, value in values.items():
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = (total + value, count + 1)
        elif step % self.every == 0 or step == 1:
            now, epoch = self.now(), step // self.plan.steps_per_epoch
            self._points += (
                Point(name=name, step=step, epoch=epoch, at=now, value=value) for name, value in values.items()
            )

    def _is_due(self) -> bool:
        if self._sent_at is None or len(self._points) >= _MOST_POINTS:
            return True
        return self.now() - self._sent_at >= _EVERY_S

    def log(self, values: Mapping[str, float], *, step: int, generation: int, leads: bool) -> None:
        """Count values that the script reports, and send them at once."""
        self.latest.update(values)
        if any(point.step != step for point in self._logged.values()):
            self._logged.clear()
        now, epoch = self.now(), step // self.plan.steps_per_epoch
        for name, value in values.items():
            self._logged[name] = Point(name=name, step=step, epoch=epoch, at=now, value=value)
        if leads:
            self._sums.update({name: (value, 1) for name, value in values.items()})
            self.flush(step=step, generation=generation)

    def note_work(self, *, step: int, generation: int, leads: bool) -> None:
        """Say every few seconds that the training works on something else than a step: it has no speed, but goes on."""
        now = self.now()
        since = max(self._sent_at or 0.0, self._worked_at or 0.0)
        if leads and now - since >= _WORK_EVERY_S:
            self._worked_at = now
            progress = replace(self.progress(step), samples_per_s=0.0, eta_s=None)
            self.send(Report(generation=generation, progress=progress))

    def end(self, values: Mapping[str, float], *, step: int, generation: int) -> None:
        """Report how far the training came, unless this task has done so: a leader may have died before it could."""
        if self._reported_step != step:
            self.latest.update(values)
            self.send_claim(step)
            self._points += self._logged.values()
            self.flush(step=step, generation=generation)

    def send_claim(self, step: int) -> None:
        """Report what the results are worth, once and whenever it changes."""
        claim = self.claim
        if self._claimed != (claim.level, claim.reason):
            self._claimed = (claim.level, claim.reason)
            self.send(Claimed(claim=claim.level, fingerprint=claim.fingerprint, reason=claim.reason, step=step))

    def flush_rest(self, *, step: int, generation: int) -> None:
        """Send a report if there are points that were not sent yet."""
        if self._points or self._sums:
            self.flush(step=step, generation=generation)

    def flush(self, *, step: int, generation: int) -> None:
        """Send a report with all points that were not sent yet."""
        now, num_used, epoch = self.now(), self.plan.num_used, step // self.plan.steps_per_epoch
        elapsed_s = now - self._sent_at if self._sent_at is not None else 0.0
        if elapsed_s > 0 and step > self._sent_step:
            speed = (num_used(step) - num_used(self._sent_step)) / elapsed_s
            self._speed = speed if self._speed == 0.0 else self._speed + _SMOOTHING * (speed - self._speed)
        means = (
            Point(name=name, step=step, epoch=epoch, at=now, value=total / count)
            for name, (total, count) in self._sums.items()
        )
        points = (*self._points, *means)
        self._sums.clear()
        self._points.clear()
        self._sent_at, self._sent_step = now, step
        self._reported_step = step
        self.send(Report(generation=generation, progress=self.progress(step), points=points))

    def progress(self, step: int) -> Progress:
        """Return how far the training is after so many steps."""
        num_used, num_steps = self.plan.num_used, self.num_epochs * self.plan.steps_per_epoch
        samples_left = num_used(num_steps) - num_used(step)
        return Progress(
            epoch=step // self.plan.steps_per_epoch,
            num_epochs=self.num_epochs,
            step=step,
            num_steps=num_steps,
            samples=num_used(step),
            samples_per_s=self._speed,
            loss=self.latest.get("loss"),
            metrics={name: value for name, value in self.latest.items() if name != "loss"},
            eta_s=samples_left / self._speed if self._speed > 0 else None,
            shares=self.shares(),
            batch_size=self.plan.batch_size,
            virtual_workers=self.plan.max_workers,
        )
