"""What is said at submission of a webhook whose name leads nowhere, or somewhere else."""

import socket
import threading
from collections.abc import Callable, Sequence

import pytest

from pliant.core.notice import NoticeSettings
from pliant.notices import keeper
from pliant.notices.addresses import WebhookRules
from pliant.notices.keeper import NoticeKeeper
from pliant.sim.clock import VirtualClock
from pliant.sim.registry import MemoryRegistry


def said(resolve: Callable[[str, int], Sequence[str]]) -> list[str]:
    """Return what is said of a webhook of this name."""
    one = NoticeKeeper(
        registry=MemoryRegistry(),
        clock=VirtualClock(0.0),
        token_hex=lambda num_bytes: "5eed",
        rules=WebhookRules(),
        mail=None,
        resolve=resolve,
        is_own=lambda address: False,
    )
    return [problem.message for problem in one.problems(NoticeSettings(webhook="https://hooks.test/SECRET"))]


def failing(errno: int) -> Callable[[str, int], Sequence[str]]:
    def resolve(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(errno, "no")

    return resolve


def test_a_name_that_nobody_has_is_refused() -> None:
    assert said(failing(socket.EAI_NONAME)) == ["hooks.test has no address; look at how it is written"]


def test_names_that_cannot_be_looked_up_now_are_taken() -> None:
    assert said(failing(socket.EAI_AGAIN)) == []


def test_a_name_that_leads_inside_is_refused_unless_one_of_its_addresses_may_be_called() -> None:
    (words,) = said(lambda host, port: ("10.0.0.1", "::1"))
    assert words.startswith("https://hooks.test leads to an address of a private network")
    assert said(lambda host, port: ("10.0.0.1", "8.8.8.8")) == []


def test_a_name_that_hangs_holds_up_a_submission_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_LOOK_UP_S", 0.05)
    released = threading.Event()

    def hang(host: str, port: int) -> Sequence[str]:
        released.wait(30)
        return ()

    assert said(hang) == []
    released.set()
