"""Notices are sent at least once, in the end given up, and hold up nobody; over a real store and a real receiver."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.databases import new_sqlite
from tests.notices.conftest import JOB, until
from tests.notices.receivers import mailbox, receiving

from pliant.core.errors import Deposed
from pliant.core.event import Event, EventKind
from pliant.core.job import Job, JobId
from pliant.core.lifecycle import JobState
from pliant.core.notice import Notice, NoticeSettings
from pliant.core.ports import EventFilter, Writes
from pliant.core.registry import iterate_nouns
from pliant.entry.clock import SystemClock
from pliant.notices.addresses import WebhookRules, read_allowed
from pliant.notices.background import Lanes
from pliant.notices.keeper import NoticeKeeper
from pliant.notices.limits import HourlyLimits
from pliant.notices.mail import Mailer, MailSettings
from pliant.notices.message import Writer
from pliant.notices.sender import NoticeSender, Ways
from pliant.notices.webhook import Webhooks
from pliant.sim.clock import VirtualClock
from pliant.store.sql import SqlStore

HERE = Path(__file__)
RULES = WebhookRules(allowed=(read_allowed("127.0.0.0/8"),))


class World:
    """A store with jobs, and a sender of what is kept there."""

    def __init__(self, store: SqlStore, mail: MailSettings | None = None, limits: HourlyLimits | None = None) -> None:
        self.store, self.clock = store, VirtualClock(2000.0)
        self.num_ids = 0
        self.mail = mail
        self.keeper = NoticeKeeper(
            registry=store.registry, clock=self.clock, token_hex=self._next_id, rules=RULES, mail=mail
        )
        self.sender = sender_of(store, self.clock, mail, limits)

    def _next_id(self, num_bytes: int) -> str:
        self.num_ids += 1
        return f"id-{self.num_ids}"

    def submit(self, job_id: str, wanted: NoticeSettings, owner: str = "ada") -> Job:
        self.keeper.keep(JobId(job_id), wanted, owner)
        job = replace(JOB, id=JobId(job_id), owner=owner, state=JobState.RUNNING, ended_at=None, reason="")
        self.store.write(Writes(jobs=(job,)))
        return job

    def end(self, job: Job, state: JobState = JobState.FAILED) -> None:
        data = {"from": "running", "to": state.value}
        event = Event(at=self.clock.now(), kind=EventKind.JOB_STATE, message="it is over", job_id=job.id, data=data)
        job = replace(job, state=state, ended_at=self.clock.now())
        self.store.write(Writes(jobs=(job,), events=(event,)))
        self.sender.wake()

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.sender.wake()

    def tried(self, num_tries: int) -> Callable[[], list[Notice]]:
        return lambda: [one for one in self.kept() if one.num_tries == num_tries]

    def kept(self) -> list[Notice]:
        return [kept.noun for kept in iterate_nouns(self.store.registry, Notice)]

    def said(self, *kinds: EventKind) -> list[str]:
        which = EventFilter(kinds=kinds or (EventKind.JOB_NOTIFIED, EventKind.WARNING))
        return [event.message for event in self.store.events(which)]


def sender_of(
    store: SqlStore, clock: Any, mail: MailSettings | None = None, limits: HourlyLimits | None = None
) -> NoticeSender:
    def ways() -> Ways:
        mailer = None if mail is None else Mailer(settings=mail, lanes=Lanes(2))
        return Ways(webhooks=Webhooks(rules=RULES, lanes=Lanes(4)), mailer=mailer)

    return NoticeSender(store=store, clock=clock, writer=Writer(url="http://test"), ways=ways, limits=limits)


@contextmanager
def opened(folder: Path, **settings: Any) -> Iterator[World]:
    """Open a store of its own and send what is kept there."""
    store = SqlStore(new_sqlite(folder))
    world = World(store, **settings)
    try:
        world.sender.load()
        world.sender.start()
        yield world
    finally:
        world.sender.close(10.0)
        store.close()


def test_who_asked_is_sent_a_message_when_the_job_is_over_and_not_before(tmp_path: Path) -> None:
    with receiving() as hook, opened(tmp_path) as world:
        first = world.submit("job-1", NoticeSettings(webhook=hook.url))
        second = world.submit("job-2", NoticeSettings(webhook=hook.url))
        world.end(second, JobState.COMPLETED)
        until(lambda: len(world.kept()) == 1)
        assert json.loads(hook.got[0].body)["job"]["id"] == "job-2"
        world.end(first)
        until(lambda: world.kept() == [])
        assert [json.loads(got.body)["id"] for got in hook.got] == ["id-2", "id-1"]
        shown = f"the webhook http://127.0.0.1:{hook.port} says that"
        assert until(lambda: len(world.said()) == 2 and world.said()) == [
            f"{shown} job-2 has completed",
            f"{shown} job-1 has failed",
        ]


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.STOPPED])
def test_who_asked_for_failures_is_spared_the_rest(tmp_path: Path, state: JobState) -> None:
    with receiving() as hook, opened(tmp_path) as world:
        world.end(world.submit("job-1", NoticeSettings(webhook=hook.url, notify_on="failure")), state)
        until(lambda: world.kept() == [])
        world.end(world.submit("job-2", NoticeSettings(webhook=hook.url, notify_on="failure")))
        until(lambda: len(world.said()) == 1)
    assert [json.loads(got.body)["job"]["id"] for got in hook.got] == ["job-2"]


def test_a_receiver_that_is_down_is_tried_again_later_and_later(tmp_path: Path) -> None:
    with receiving(503, 500, 200) as hook, opened(tmp_path) as world:
        world.end(world.submit("job-1", NoticeSettings(webhook=hook.url)))
        for num_tries, wait_s in ((1, 10.0), (2, 30.0)):
            (one,) = until(world.tried(num_tries))
            assert one.next_at == world.clock.now() + wait_s
            until(hook.has(num_tries))
            world.pass_time(wait_s - 0.1)
            assert len(hook.got) == num_tries
            world.pass_time(0.1)
            until(hook.has(num_tries + 1))
        until(lambda: world.kept() == [])
    assert len({json.loads(got.body)["id"] for got in hook.got}) == 1


def test_it_is_given_up_with_an_event_that_shows_no_secret(tmp_path: Path) -> None:
    with receiving(404) as hook, opened(tmp_path) as world:
        world.end(world.submit("job-1", NoticeSettings(webhook=hook.url)))
        for num_tries in (1, 2):
            until(world.tried(num_tries))
            until(hook.has(num_tries))
            world.pass_time(100.0)
        (words,) = until(lambda: world.said(EventKind.WARNING))
        assert words == f"the webhook http://127.0.0.1:{hook.port} answered 404; given up after 3 tries"
        assert world.kept() == []
        assert not any("SECRET" in repr(event) for event in world.store.events(EventFilter()))


def test_email_is_sent_and_its_address_stands_in_no_event(tmp_path: Path) -> None:
    with mailbox() as server:
        mail = MailSettings(host="127.0.0.1", port=server.port, sender="pliant@gpu1.test")
        with opened(tmp_path, mail=mail) as world:
            world.end(world.submit("job-1", NoticeSettings(mail="ada@example.org")))
            until(lambda: world.kept() == [])
            assert until(world.said) == ["the e-mail says that job-1 has failed"]
    assert [letter.recipients for letter in server.letters] == [["ada@example.org"]]


def test_a_person_sends_so_many_in_an_hour_and_others_are_not_held_up(tmp_path: Path) -> None:
    with receiving() as hook, opened(tmp_path, limits=HourlyLimits({"webhook": 2, "mail": 1})) as world:
        wanted = NoticeSettings(webhook=hook.url)
        for number in range(1, 4):
            world.end(world.submit(f"job-{number}", wanted))
            until(lambda: world.kept() == [])
        world.end(world.submit("job-4", wanted, owner="bob"))
        until(lambda: len(hook.got) == 3)
        assert until(lambda: world.said(EventKind.WARNING)) == [
            f"the webhook http://127.0.0.1:{hook.port} was not sent: ada's jobs have sent 2 in the last hour"
        ]
        world.pass_time(3600.0)
        world.end(world.submit("job-5", wanted))
        until(lambda: len(hook.got) == 4)


def test_receivers_of_one_person_that_hang_hold_up_nobody_else(tmp_path: Path) -> None:
    with receiving() as stuck, receiving() as hook, opened(tmp_path) as world:
        stuck.silent.set()
        for number in range(1, 20):
            world.end(world.submit(f"job-{number}", NoticeSettings(webhook=stuck.url)))
        world.end(world.submit("job-20", NoticeSettings(webhook=hook.url), owner="bob"))
        until(lambda: hook.got, 10.0)
        assert len(stuck.got) <= 2


def test_what_a_server_left_is_taken_up_and_what_belongs_to_no_job_is_removed(tmp_path: Path) -> None:
    store = SqlStore(new_sqlite(tmp_path))
    with receiving() as hook:
        world = World(store)
        over = world.submit("job-1", NoticeSettings(webhook=hook.url))
        world.end(over)
        world.submit("job-2", NoticeSettings(webhook=hook.url))
        world.keeper.keep(JobId("job-3"), NoticeSettings(webhook=hook.url), "ada")  # killed before it kept the job
        world.sender.load()
        assert [one.job_id for one in world.kept()] == ["job-1", "job-2"]
        world.sender.start()
        until(lambda: [one.job_id for one in world.kept()] == ["job-2"])
        world.sender.close(10.0)
    store.close()
    assert [json.loads(got.body)["job"]["id"] for got in hook.got] == ["job-1"]


def test_a_server_that_is_killed_while_it_sends_sends_again_with_the_same_id(tmp_path: Path) -> None:
    url = new_sqlite(tmp_path)
    with receiving() as hook:
        hook.silent.set()
        child = subprocess.Popen([sys.executable, str(HERE), url, hook.url], env={**os.environ, "PYTHONPATH": "."})
        try:
            until(lambda: hook.got or child.poll() is not None)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait(30)
        assert len(hook.got) == 1, "it was killed between the end of the job and the answer"
        hook.silent.clear()
        store = SqlStore(url)
        world = World(store)
        world.clock.advance(10.0**10)
        assert [one.num_tries for one in world.kept()] == [1], "a try is written down before it is made"
        world.sender.load()
        world.sender.start()
        until(lambda: world.kept() == [])
        world.sender.close(10.0)
        store.close()
    first, second = hook.got
    assert first.body == second.body
    assert first.headers["X-Pliant-Delivery"] == second.headers["X-Pliant-Delivery"]


def test_a_server_that_does_not_lead_any_more_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = threading.Event()

    def replace_nothing(*_: object, **__: object) -> None:
        refused.set()
        raise Deposed("another server leads now")

    with receiving() as hook, opened(tmp_path) as world:
        monkeypatch.setattr(world.store.registry, "replace", replace_nothing)
        world.end(world.submit("job-1", NoticeSettings(webhook=hook.url)))
        assert refused.wait(30)
        world.sender.close(10.0)
        assert hook.got == []
        assert len(world.kept()) == 1


def send_until_killed(url: str, hook: str) -> None:
    """Submit a job, end it, and send."""
    store = SqlStore(url)
    keeper = NoticeKeeper(
        registry=store.registry, clock=SystemClock(), token_hex=lambda n: "5eed", rules=RULES, mail=None
    )
    keeper.keep(JOB.id, NoticeSettings(webhook=hook), "ada")
    store.write(Writes(jobs=(JOB,)))
    sender = sender_of(store, SystemClock())
    sender.load()
    sender.start()
    signal.pause()


if __name__ == "__main__":
    send_until_killed(*sys.argv[1:])
