"""What the course of a training says: whether to stop it, and whether its learning rate is right. Pure.

Everything is judged by means over epochs, so that the noise of single steps does not count. An epoch is the number of
those that are finished: a validation after three of them is of epoch 3. An epoch improves a loss if
it is lower than the best one before by more than `EPSILON` of that. With a patience of 5:

    epoch             1     2     3     4     5     6     7     8     9
    validation loss  0.90  0.61  0.50  0.48  0.49  0.50  0.52  0.55  0.57   5 since the best, none better: stop early
    training loss    0.95  0.70  0.52  0.41  0.33  0.26  0.21  0.17  0.13   it still falls: it learns by heart

Every hint is a sentence with its numbers, and where it can be, the value of a hyperparameter for the next training.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pliant.core.chart import Bucket, Series
from pliant.core.insight import EpochMeans, Hint, Role

PATIENCE: Final = 5
"""So many epochs a loss has to improve in."""
EPSILON: Final = 0.001
RISE: Final = 1.5
"""A training loss so many times the best one is rising."""
OVERFIT: Final = 1.05
_LESS: Final = 10.0
_A_LITTLE_LESS: Final = 3.0

_TEST: Final = ("val", "validation", "valid", "test", "testing", "eval", "dev")
_TRAIN: Final = ("train", "training")
_MEASURES: Final[Mapping[str, str]] = {"loss": "loss", "accuracy": "accuracy", "acc": "accuracy"}
_SEPARATORS: Final = re.compile(r"[\s/._-]+")


def find_roles(names: Iterable[str]) -> Mapping[Role, str]:
    """Return which series are losses and accuracies, of training and of validation, by what they are called.

    `loss` alone is that of training. Of several the first by length, then by name.
    """
    found: dict[Role, str] = {}
    for name in sorted(names, key=lambda one: (len(one), one)):
        role = _role(name)
        if role is not None:
            found.setdefault(role, name)
    return found


def _role(name: str) -> Role | None:
    words = [word for word in _SEPARATORS.split(name.lower()) if word]
    measures = [_MEASURES[word] for word in words if word in _MEASURES]
    others = [word for word in words if word not in _MEASURES]
    if len(measures) != 1 or len(others) > 1:
        return None
    match measures[0], next(iter(others), "train"):
        case "loss", part if part in _TRAIN:
            return "train_loss"
        case "loss", part if part in _TEST:
            return "test_loss"
        case "accuracy", part if part in _TRAIN:
            return "train_accuracy"
        case "accuracy", part if part in _TEST:
            return "test_accuracy"
    return None


def by_epoch(series: Mapping[Role, Series]) -> tuple[EpochMeans, ...]:
    """Return the means of all epochs that anything is known of, in their order."""
    means = {role: _means(one.buckets) for role, one in series.items()}
    return tuple(_of_epoch(epoch, means) for epoch in sorted({epoch for of in means.values() for epoch in of}))


def _of_epoch(epoch: int, means: Mapping[Role, Mapping[int, float]]) -> EpochMeans:
    known = {role: of[epoch] for role, of in means.items() if epoch in of}
    numbers = {role: value for role, value in known.items() if math.isfinite(value)}
    return EpochMeans(epoch=epoch, not_numbers=tuple(sorted(known.keys() - numbers.keys())), **numbers)


def _means(buckets: Iterable[Bucket]) -> Mapping[int, float]:
    """Return the mean of every epoch; NaN if a point of it is not a number."""
    grouped: dict[int, list[Bucket]] = {}
    for bucket in buckets:
        grouped.setdefault(bucket.epoch, []).append(bucket)
    return {epoch: _mean(of) for epoch, of in grouped.items()}


def _mean(buckets: Sequence[Bucket]) -> float:
    num_values = sum(bucket.num_values for bucket in buckets)
    if num_values == 0 or num_values < sum(bucket.num_points for bucket in buckets):
        return math.nan
    return sum(bucket.total for bucket in buckets) / num_values


def hints(
    epochs: Sequence[EpochMeans], names: Mapping[Role, str], learning_rate: float, lr_policy: str = "fixed"
) -> tuple[Hint, ...]:
    """Return what the course of a training says, the most urgent first; nothing is said of too few epochs.

    Args:
        epochs: in their order.
        names: what the series are called.
        learning_rate: at the beginning.
        lr_policy: how it goes; `fixed` does not change it.
    """
    return (
        *_of_training(epochs, names.get("train_loss", ""), learning_rate, lr_policy),
        *_of_validation(epochs, names.get("test_loss", "")),
    )


def _of_training(epochs: Sequence[EpochMeans], name: str, rate: float, lr_policy: str) -> Iterator[Hint]:
    if (broken := _broken_since(epochs)) is not None:
        yield Hint(
            kind="not_a_number",
            series=name,
            sentence=f"{name} is not a number since epoch {broken}: with a learning rate of {rate:g} the training "
            f"diverges; try {rate / _LESS:g}, or clip the gradients",
            parameter="learning_rate",
            value=rate / _LESS,
        )
        return
    course = [(one.epoch, one.train_loss) for one in epochs if one.train_loss is not None]
    if not course:
        return
    losses = [loss for _, loss in course]
    best = _best(losses)
    last = losses[-1]
    since = len(losses) - 1 - best
    if since >= 2 and losses[best] > 0 and last > RISE * losses[best]:
        yield Hint(
            kind="loss_rises",
            series=name,
            sentence=f"{name} was {losses[best]:.4g} in epoch {course[best][0]} and is {last:.4g} now: with a learning "
            f"rate of {rate:g} the training moves away again; try {rate / _A_LITTLE_LESS:.3g}",
            parameter="learning_rate",
            value=rate / _A_LITTLE_LESS,
        )
    elif since >= PATIENCE:
        course_of_rate = ", or let it go down as the training goes (`lr_policy`)" if lr_policy == "fixed" else ""
        yield Hint(
            kind="plateau",
            series=name,
            sentence=f"{name} has not improved by {EPSILON:.1%} since epoch {course[best][0]} ({losses[best]:.4g}): "
            f"more epochs at a learning rate of {rate:g} bring little; try {rate / _LESS:g}{course_of_rate}",
            parameter="learning_rate",
            value=rate / _LESS,
        )


def _broken_since(epochs: Sequence[EpochMeans]) -> int | None:
    """Return since which epoch the loss of training is not a number; None if it is one now."""
    since = None
    for one in epochs:
        if "train_loss" in one.not_numbers:
            since = one.epoch if since is None else since
        elif one.train_loss is not None:
            since = None
    return since


def _of_validation(epochs: Sequence[EpochMeans], name: str) -> Iterator[Hint]:
    course = [(one.epoch, one.test_loss, one.train_loss) for one in epochs if one.test_loss is not None]
    losses = [loss for _, loss, _ in course]
    if not losses:
        return
    best = _best(losses)
    since = len(losses) - 1 - best
    if since < PATIENCE:
        return
    epoch, lowest, trained = course[best]
    yield Hint(
        kind="early_stop",
        series=name,
        sentence=f"{name} was best after {epoch} epochs ({lowest:.4g}) and has not improved by {EPSILON:.1%} in the "
        f"{since} since: {max(1, epoch)} epochs are enough",
        parameter="epochs",
        value=float(max(1, epoch)),
    )
    now = next((train for _, _, train in reversed(course) if train is not None), None)
    if lowest > 0 and losses[-1] > OVERFIT * lowest and trained is not None and now is not None and now < trained:
        yield Hint(
            kind="overfits",
            series=name,
            sentence=f"after {epoch} epochs {name} has grown from {lowest:.4g} to {losses[-1]:.4g} while the loss of "
            f"training fell from {trained:.4g} to {now:.4g}: the network learns its samples by heart; more data, "
            f"weight decay or a smaller network help",
        )


def _best(losses: Sequence[float]) -> int:
    """Return which value was the last to improve on all before it."""
    best = 0
    for place, loss in enumerate(losses):
        if loss < losses[best] - EPSILON * abs(losses[best]):
            best = place
    return best
