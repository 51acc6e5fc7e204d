"""What a training may claim of its results, and why it claims less."""

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import torch
from tests.train.loops import Case, make, mlp, surrounded, train
from torch.nn import functional as F

from pliant.train.claim import Standing, digest


@pytest.fixture(autouse=True)
def _surrounded() -> Iterator[None]:
    with surrounded():
        yield


def unsteady() -> Case:
    """A case with an operation that has no deterministic kernel."""
    model = mlp()

    def loss(batch: Any) -> torch.Tensor:
        torch.zeros(3).put_(torch.tensor([0]), torch.ones(1))
        return F.cross_entropy(model(batch[1]), batch[2])

    return make(model, loss=loss)


@pytest.mark.parametrize("action", ["default", "ignore", "error"])
def test_an_operation_that_is_not_deterministic_is_noticed_however_warnings_are_shown(
    action: Literal["default", "ignore", "error"],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter(action)
        run = train(unsteady(), virtual_workers=2)

    assert run.claim == "statistical"
    assert "put_ does not have a deterministic implementation" in (run._engine.shared.standing.reason)


def test_a_second_training_of_the_process_notices_it_too() -> None:
    assert [train(unsteady()).claim for _ in range(2)] == ["statistical", "statistical"]


def test_warnings_of_the_script_are_shown_as_before() -> None:
    model = mlp()

    def loss(batch: Any) -> torch.Tensor:
        warnings.warn("the script's own", UserWarning, stacklevel=1)
        return F.cross_entropy(model(batch[1]), batch[2])

    with pytest.warns(UserWarning, match="the script's own"):
        run = train(make(model, loss=loss), num_epochs=1)

    assert run.claim == "exact"


def standing(claim: Any = "exact", fingerprint: str = "here", reason: str = "") -> Standing:
    return Standing(claim, fingerprint, reason)


@pytest.mark.parametrize(
    ("mine", "saved", "expected"),
    [
        (standing(), standing(), ("exact", "")),
        (standing(), standing(fingerprint="there"), ("statistical", "it went on from [there] on [here]")),
        (standing(), standing("statistical", reason="why"), ("statistical", "why")),
        (standing(), standing("fast"), ("statistical", "it was trained in fast mode before")),
        (standing("fast"), standing(), ("fast", "")),
    ],
)
def test_a_claim_never_becomes_more_than_it_was(mine: Standing, saved: Standing, expected: tuple[str, str]) -> None:
    mine.load_state_dict(saved.state_dict())

    assert (mine.claim, mine.reason) == expected
    mine.load_state_dict(standing().state_dict())
    assert mine.claim == expected[0]


def test_the_first_reason_stays() -> None:
    one = standing()
    one.downgrade("first")
    one.downgrade("second")

    assert (one.claim, one.reason) == ("statistical", "first")


def test_a_digest_tells_bits_shapes_types_and_names_apart() -> None:
    zero = torch.zeros(2)
    trees: list[Any] = [
        {"a": zero},
        {"b": zero},
        {"a": -zero},
        {"a": zero.double()},
        {"a": zero.reshape(1, 2)},
        {"a": [zero]},
        {"a": [zero, zero]},
        {"a": zero.to(torch.complex64)},
        {"a": 0.0},
    ]

    assert len({digest(tree) for tree in trees}) == len(trees)
    assert digest({"a": torch.zeros(2)}) == digest({"a": zero})
