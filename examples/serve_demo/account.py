"""The account of the endpoint and its load, and the checks that it adds to those of the trainings.

Pure: it is handed what was seen, and says what holds and what does not. Times are told; only what happened is checked.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import groupby
from typing import Any

from examples.demo.account import Account, Check, Resize
from examples.demo.recording import Answer, Seen, quantile
from pliant.core.event import EventKind
from pliant.core.job import JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Of some requests, from when they were to be sent; seconds, NaN if there were none."""

    num: int
    p50_s: float
    p95_s: float
    max_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeAccount:
    """What happened to the endpoint."""

    label: str
    num_sent: int
    num_answered: int
    """With a status of 200."""
    faults: tuple[str, ...]
    """Of requests that failed."""
    wrong: tuple[str, ...]
    """Of answers that came, and are not what the model says."""
    kernels: tuple[int, ...]
    """How many answered, one number after the other."""
    before: Latency
    """Of requests before the wave."""
    wave: Latency
    crest: Latency
    """Once all kernels were there."""
    sender_late_s: float
    """By how much the load program was late at most; the latencies hold it."""
    most_per_s: float
    """Requests in the busiest second."""
    first_extra_s: float | None
    """From the wave to the first extra kernel that answers."""
    all_kernels_s: float | None
    """From the wave to the last one."""
    kernels_back_s: float | None
    """From the last request's sending until the endpoint held a slot only for the least number of kernels."""
    slots_back_s: float | None
    """From the last request's sending until the trainings computed on all others."""


def serve_account_of(
    seen: Seen, *, shared: Sequence[JobId], wave_at: float, crest_at: float, num_sent: int
) -> ServeAccount:
    """Return the account of the endpoint.

    Args:
        seen: all of it, with every event.
        shared: the trainings that share the slots with it.
        wave_at: when the wave began.
        crest_at: when there were all kernels, and what had gathered before was answered.
        num_sent: requests, as the load program counted them.
    """
    endpoint = seen.endpoint_id
    assert endpoint is not None
    came = [answer for answer in seen.answers if answer.status == HTTPStatus.OK]
    ready = sorted(event.at for event in seen.events_of(EventKind.TASK_READY, endpoint))
    extra_s = [at - wave_at for at in ready if at >= wave_at]
    last_at = max((answer.intended_at for answer in seen.answers), default=wave_at)
    times = sorted({seen.began_at, *(event.at for event in seen.events), *(point.at for point in seen.usage)})
    least = seen.slots_at(endpoint, wave_at)
    left = seen.num_slots - least
    return ServeAccount(
        label=seen.labels[endpoint],
        num_sent=num_sent,
        num_answered=len(came),
        faults=tuple(f"{answer.status} {answer.fault}" for answer in seen.answers if answer.status != HTTPStatus.OK),
        wrong=tuple(answer.fault for answer in came if answer.fault),
        kernels=tuple(num for num, _ in groupby(seen.kernels_at(at) for at in (wave_at, *times) if at >= wave_at)),
        before=_latency([answer for answer in came if answer.intended_at < wave_at]),
        wave=_latency([answer for answer in came if answer.intended_at >= wave_at]),
        crest=_latency([answer for answer in came if answer.intended_at >= crest_at]),
        sender_late_s=max((answer.sent_at - answer.intended_at for answer in seen.answers), default=0.0),
        most_per_s=max(Counter(int(answer.intended_at) for answer in seen.answers).values(), default=0),
        first_extra_s=extra_s[0] if extra_s else None,
        all_kernels_s=extra_s[-1] if extra_s else None,
        kernels_back_s=_first_after(times, last_at, lambda at: seen.slots_at(endpoint, at) <= least),
        slots_back_s=_first_after(times, last_at, lambda at: sum(seen.working_at(j, at) for j in shared) >= left),
    )


def _latency(answers: Sequence[Answer]) -> Latency:
    all_s = [answer.latency_s for answer in answers]
    return Latency(
        num=len(all_s),
        p50_s=quantile(all_s, 0.5),
        p95_s=quantile(all_s, 0.95),
        max_s=quantile(all_s, 1.0),
    )


def _first_after(times: Sequence[float], after: float, holds: Callable[[float], bool]) -> float | None:
    """Return how long after an instant something held first; None if it never did."""
    return next((at - after for at in times if at >= after and holds(at)), None)


def serve_checks_of(account: ServeAccount, *, num_kernels: int, release_delay_s: float) -> tuple[Check, ...]:
    """Return every claim about the endpoint with what was found."""
    num_failed = account.num_sent - account.num_answered
    peak = max(account.kernels, default=0)
    shown = " → ".join(map(str, account.kernels))

    def check(claim: str, holds: bool, found: str) -> Check:
        return Check(label=account.label, claim=claim, holds=holds, found=found)

    def after(seconds: float | None, what: str) -> str:
        return f"{what} {seconds:.1f} s later" if seconds is not None else f"never: {what}"

    return (
        check(
            "answered every request",
            account.num_sent > 0 and num_failed == 0 and not account.faults,
            "; ".join([f"{account.num_answered} of {account.num_sent}", *account.faults[:3]]),
        ),
        check(
            "answered as the model did beforehand",
            account.num_answered > 0 and not account.wrong,
            "; ".join([f"{account.num_answered - len(account.wrong)} of {account.num_answered}", *account.wrong[:3]]),
        ),
        check(f"grew from 1 to {num_kernels} kernels", peak == num_kernels, f"{shown} answered"),
        check(
            "got an extra kernel when the wave came",
            account.first_extra_s is not None,
            after(account.first_extra_s, "the first answers"),
        ),
        check(
            f"gave back what it had taken, once it was not needed for {release_delay_s:g} s",
            account.kernels_back_s is not None and account.slots_back_s is not None,
            "after the last request, "
            + after(account.kernels_back_s, "one kernel is left")
            + ", "
            + after(account.slots_back_s, "the trainings compute on all other slots"),
        ),
    )


def sharing_check_of(account: Account, *, wave_at: float, last_at: float) -> Check:
    """Return whether a training gave slots to the endpoint during the wave, and got some back."""
    before = [resize.to_size for resize in account.resizes if resize.at < wave_at][-1:]
    during = [resize.to_size for resize in account.resizes if wave_at <= resize.at <= last_at]
    after = [resize.to_size for resize in account.resizes if resize.at > last_at]
    sizes = [*before, *during, *after]
    return Check(
        label=account.label,
        claim="gave slots up at step boundaries and got some back",
        holds=bool(before and during and after) and min(during) < before[0] and max(after) > min(during),
        found=" → ".join(map(str, sizes)) + f" around the wave, {_stood_still(account.resizes, wave_at)}",
    )


def _stood_still(resizes: Sequence[Resize], since: float) -> str:
    pauses = [resize.pause_ms for resize in resizes if resize.at >= since]
    return f"stood still for {max(pauses):.0f} ms at most" if pauses else "never resized"


def same_result_check(label: str, disturbed: str, undisturbed: str) -> Check:
    """Return whether two trainings came to the same bits; they are given by their digests."""
    return Check(
        label=label,
        claim="came to the same result, bit for bit, as undisturbed",
        holds=disturbed == undisturbed,
        found=disturbed[:12] if disturbed == undisturbed else f"{disturbed[:12]}, undisturbed {undisturbed[:12]}",
    )


def digest_of(state: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a model's parameters (tensors by name): of their names, types, shapes and bits."""
    digest = hashlib.sha256()
    for name in sorted(state):
        array = state[name].detach().cpu().numpy()
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
