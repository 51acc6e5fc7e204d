"""The account of the endpoint: what is told is what was seen, and every check can fail."""

from dataclasses import replace

import pytest
import torch
from tests.examples.serve_demo.conftest import CREST_AT, T0, WAVE_AT, A, B, answers, make_recording

from examples.demo.account import Account, Resize
from examples.demo.audit import Ledger
from examples.demo.recording import Answer, Seen
from examples.serve_demo.account import (
    ServeAccount,
    digest_of,
    same_result_check,
    serve_account_of,
    serve_checks_of,
    sharing_check_of,
)

WAVE, LAST = 10.0, 20.0


def account_of(seen: Seen, num_sent: int = 111) -> ServeAccount:
    return serve_account_of(seen, shared=(A, B), wave_at=WAVE_AT, crest_at=CREST_AT, num_sent=num_sent)


def broken(account: ServeAccount) -> list[str]:
    checks = serve_checks_of(account, num_kernels=4, release_delay_s=3.0)
    return [check.claim for check in checks if not check.holds]


def resize(at: float, before: int, size: int) -> Resize:
    return Resize(at=at, from_size=before, to_size=size, step=0, pause_ms=12.0, redone_steps=0)


def test_the_account_tells_when_kernels_came_and_slots_went_back(seen: Seen) -> None:
    account = account_of(seen)

    assert (account.num_sent, account.num_answered, account.most_per_s) == (111, 111, 10)
    assert account.kernels == (1, 2, 3, 4, 3, 2, 1)
    assert account.first_extra_s == pytest.approx(1.5)
    assert account.all_kernels_s == pytest.approx(2.6)
    assert account.kernels_back_s == pytest.approx(5.0)  # the last request was sent after 20 s
    assert account.slots_back_s == pytest.approx(5.7)


def test_latency_counts_from_when_a_request_was_to_be_sent(seen: Seen) -> None:
    account = account_of(seen)

    assert (account.before.num, account.wave.num, account.crest.num) == (10, 101, 61)
    assert account.before.p95_s == pytest.approx(0.1)
    assert account.wave.p50_s == pytest.approx(0.1)
    assert account.wave.p95_s == pytest.approx(1.0)
    assert account.crest.max_s == pytest.approx(0.1)


def test_what_went_well_passes_every_check(seen: Seen) -> None:
    assert broken(account_of(seen)) == []


@pytest.mark.parametrize(
    ("answer", "claim"),
    [
        (
            Answer(intended_at=T0 + 12, sent_at=T0 + 12, done_at=T0 + 13, status=503, fault="no kernel"),
            "answered every request",
        ),
        (
            Answer(intended_at=T0 + 12, sent_at=T0 + 12, done_at=T0 + 13, status=0, fault="ReadError"),
            "answered every request",
        ),
        (
            Answer(
                intended_at=T0 + 12,
                sent_at=T0 + 12,
                done_at=T0 + 13,
                status=200,
                fault="3 of 360 digits have other scores",
            ),
            "answered as the model did beforehand",
        ),
    ],
)
def test_one_bad_answer_is_found_and_shown(answer: Answer, claim: str) -> None:
    seen = make_recording([*answers(), answer]).at(T0 + 42.0)

    checks = serve_checks_of(account_of(seen, 112), num_kernels=4, release_delay_s=3.0)

    assert [(check.claim, answer.fault in check.found) for check in checks if not check.holds] == [(claim, True)]


def test_a_request_without_any_answer_is_found(seen: Seen) -> None:
    assert broken(account_of(seen, num_sent=112)) == ["answered every request"]


def test_an_endpoint_that_did_not_grow_or_kept_slots_is_found(seen: Seen) -> None:
    account = account_of(seen)
    back = "gave back what it had taken, once it was not needed for 3 s"

    assert broken(replace(account, kernels=(1, 2, 3, 2, 1))) == ["grew from 1 to 4 kernels"]
    assert broken(replace(account, first_extra_s=None)) == ["got an extra kernel when the wave came"]
    assert broken(replace(account, kernels_back_s=None)) == [back]
    assert broken(replace(account, slots_back_s=None)) == [back]


def test_slots_that_trainings_never_got_back_are_not_told_as_back(seen: Seen) -> None:
    early = replace(seen, events=tuple(event for event in seen.events if event.at < T0 + 25.5))

    assert account_of(early).slots_back_s is None


@pytest.mark.parametrize(
    ("sizes", "holds"),
    [
        ([(1.0, 4), (11.0, 3), (12.0, 2), (24.0, 4)], True),
        ([(1.0, 3), (11.0, 2), (24.0, 3)], True),
        ([(1.0, 4), (24.0, 5)], False),
        ([(1.0, 4), (11.0, 3)], False),
        ([(1.0, 4), (11.0, 3), (24.0, 2)], False),
        ([(1.0, 4), (11.0, 5), (24.0, 6)], False),
        ([], False),
    ],
)
def test_a_training_shares_if_it_shrank_in_the_wave_and_grew_after_it(
    sizes: list[tuple[float, int]], holds: bool
) -> None:
    ledger = Ledger(num_steps=0, redone=(), lost_commits=(), samples_per_epoch={}, faults=())
    account = Account(
        label="A",
        job_id="job-4",
        state="completed",
        ledger=ledger,
        resizes=tuple(resize(at, 0, size) for at, size in sizes),
        accuracy=1.0,
    )

    assert sharing_check_of(account, wave_at=WAVE, last_at=LAST).holds is holds


def test_one_bit_of_one_parameter_changes_the_digest() -> None:
    state = {"weight": torch.tensor([1.0, 2.0]), "bias": torch.tensor([0.0])}
    other = {**state, "bias": torch.tensor([-0.0])}

    assert digest_of(state) == digest_of({name: state[name].clone() for name in reversed(state)})
    assert digest_of(state) != digest_of(other)
    assert same_result_check("A", digest_of(state), digest_of(state)).holds
    assert not same_result_check("A", digest_of(other), digest_of(state)).holds
