"""What the course of a training says."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.chart import Bucket, Series
from pliant.core.insight import EpochMeans, Hint, Role
from pliant.policy.insight import PATIENCE, by_epoch, find_roles, hints

NAMES: Mapping[Role, str] = {"train_loss": "loss", "test_loss": "val_loss"}


def course(train: Sequence[float | None], test: Sequence[float | None] = ()) -> tuple[EpochMeans, ...]:
    """Return epochs with these losses, the first of which is epoch 1."""
    both = zip(train, [*test, *[None] * (len(train) - len(test))], strict=True)
    return tuple(
        EpochMeans(epoch=n, not_numbers=("train_loss",), test_loss=other)
        if one is not None and math.isnan(one)
        else EpochMeans(epoch=n, train_loss=one, test_loss=other)
        for n, (one, other) in enumerate(both, 1)
    )


def kinds(epochs: Sequence[EpochMeans], **how: str) -> list[str]:
    return [hint.kind for hint in hints(epochs, NAMES, 0.1, **how)]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["loss", "val_loss", "accuracy", "val/acc"], ("loss", "val_loss", "accuracy", "val/acc")),
        (["train.loss", "Test Loss", "train_acc"], ("train.loss", "Test Loss", "train_acc", None)),
        (["loss", "train_loss", "eval_loss", "test_loss"], ("loss", "eval_loss", None, None)),
        (["lr", "loss_box", "my_loss_accuracy", "lossy", ""], (None, None, None, None)),
    ],
)
def test_losses_and_accuracies_are_known_by_their_names(names: list[str], found: tuple[str | None, ...]) -> None:
    roles = find_roles(names)
    assert tuple(roles.get(one) for one in ("train_loss", "test_loss", "train_accuracy", "test_accuracy")) == found


def test_the_example_of_the_theory() -> None:
    epochs = course(
        [0.95, 0.7, 0.52, 0.41, 0.33, 0.26, 0.21, 0.17, 0.13], [0.9, 0.61, 0.5, 0.48, 0.49, 0.5, 0.52, 0.55, 0.57]
    )
    stop, overfits = hints(epochs, NAMES, 0.1)
    assert stop == Hint(
        kind="early_stop",
        series="val_loss",
        sentence="val_loss was best after 4 epochs (0.48) and has not improved by 0.1% in the 5 since: "
        "4 epochs are enough",
        parameter="epochs",
        value=4.0,
    )
    assert (overfits.kind, overfits.parameter) == ("overfits", None)
    assert hints(epochs[:-1], NAMES, 0.1) == ()


def test_a_loss_that_is_not_a_number_asks_for_a_lower_rate_and_nothing_else() -> None:
    (hint,) = hints(course([0.9, 0.8, *[math.nan] * 6, None]), NAMES, 0.1)
    assert hint.kind == "not_a_number"
    assert hint.value == pytest.approx(0.01)
    assert "since epoch 3: with a learning rate of 0.1 the training diverges; try 0.01" in hint.sentence


@pytest.mark.parametrize(
    ("train", "found"),
    [
        ([0.9, 0.5, 0.9, 1.0], ["loss_rises"]),
        ([0.9, 0.5, 0.9], []),
        ([0.9, 0.5, *[0.5001] * PATIENCE], ["plateau"]),
        ([0.9, 0.5, *[0.5001] * (PATIENCE - 1)], []),
        ([0.9 * 0.99**n for n in range(20)], []),
        ([0.9, math.nan, 0.5, None], []),
        ([], []),
        ([0.5], []),
    ],
)
def test_a_rate_is_too_high_where_the_loss_rises_or_stays(train: list[float | None], found: list[str]) -> None:
    assert kinds(course(train)) == found


def test_a_plateau_says_that_the_rate_could_go_down_unless_it_does() -> None:
    epochs = course([0.9, 0.5, *[0.5] * PATIENCE])
    fixed, other = (hints(epochs, NAMES, 0.1, policy)[0].sentence for policy in ("fixed", "step"))
    assert fixed == f"{other}, or let it go down as the training goes (`lr_policy`)"


losses = st.lists(st.none() | st.just(math.nan) | st.floats(-10, 10), max_size=12)


@given(losses, losses, st.floats(1e-6, 10))
def test_every_hint_has_its_reason_and_proposes_less(
    train: list[float | None], test: list[float | None], rate: float
) -> None:
    epochs = course(train, [None if one is not None and math.isnan(one) else one for one in test[: len(train)]])
    for hint in hints(epochs, NAMES, rate):
        assert hint.series in hint.sentence
        if hint.parameter == "learning_rate":
            assert hint.value is not None
            assert 0 < hint.value < rate
        if hint.parameter == "epochs":
            assert hint.value is not None
            assert 1 <= hint.value <= len(epochs)


def bucket(epoch: int, *values: float) -> Bucket:
    known = [value for value in values if not math.isnan(value)]
    return Bucket(
        num_points=len(values),
        num_values=len(known),
        lowest=min(known, default=None),
        highest=max(known, default=None),
        total=sum(known),
        first_step=0,
        last_step=0,
        epoch=epoch,
        at=0.0,
    )


def test_means_are_over_all_points_of_an_epoch() -> None:
    loss = Series(name="loss", buckets=(bucket(0, 1, 2), bucket(0, 6), bucket(1, 1, math.nan), bucket(2, math.inf)))
    accuracy = Series(name="acc", buckets=(bucket(1, 0.5), bucket(3, 0.75)))
    assert by_epoch({"train_loss": loss, "test_accuracy": accuracy}) == (
        EpochMeans(epoch=0, train_loss=3.0),
        EpochMeans(epoch=1, not_numbers=("train_loss",), test_accuracy=0.5),
        EpochMeans(epoch=2, not_numbers=("train_loss",)),
        EpochMeans(epoch=3, test_accuracy=0.75),
    )
