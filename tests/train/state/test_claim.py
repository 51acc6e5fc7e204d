"""What a training may claim of its results, and why it claims less."""

from typing import Any

import pytest

from pliant.train.state.claim import TrainingClaim


def claim_of(level: Any = "exact", fingerprint: str = "here", reason: str = "") -> TrainingClaim:
    return TrainingClaim(level, fingerprint, reason)


@pytest.mark.parametrize(
    ("mine", "saved", "expected"),
    [
        (claim_of(), claim_of(), ("exact", "")),
        (claim_of(), claim_of(fingerprint="there"), ("statistical", "it went on from [there] on [here]")),
        (claim_of(), claim_of("statistical", reason="why"), ("statistical", "why")),
        (claim_of(), claim_of("fast"), ("statistical", "it was trained in fast mode before")),
        (claim_of("fast"), claim_of(), ("fast", "")),
    ],
)
def test_a_claim_never_becomes_more_than_it_was(
    mine: TrainingClaim, saved: TrainingClaim, expected: tuple[str, str]
) -> None:
    mine.load_state_dict(saved.state_dict())

    assert (mine.level, mine.reason) == expected
    mine.load_state_dict(claim_of().state_dict())
    assert mine.level == expected[0]


def test_the_first_reason_stays() -> None:
    one = claim_of()
    one.downgrade("first")
    one.downgrade("second")

    assert (one.level, one.reason) == ("statistical", "first")
