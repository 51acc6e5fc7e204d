"""The task's end of the control link, against a real server on loopback."""

import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.train.link.link_server import TOKEN, LinkServer
from websockets.exceptions import ConnectionClosed

from pliant.api.server_address import ServerAddress
from pliant.api.trust import Trust
from pliant.core.job import Progress, TaskId
from pliant.core.link import Abandon, Dismiss, Finished, Hello, Leaving, Note, Point, Pulse, Report, ToTask
from pliant.entry.server.tls import TlsSettings, prepare
from pliant.files.folder import write_whole
from pliant.train.link.link import Link, PulseSettings
from pliant.train.link.send_queue import WINDOW
from pliant.train.link.unsent_file import UnsentFile

TASK = TaskId("job-1.1")


def note(text: str) -> Note:
    return Note(message=text)


def report(step: int) -> Report:
    progress = Progress(epoch=0, num_epochs=1, step=step, num_steps=9, samples=step, samples_per_s=1.0)
    return Report(
        generation=1,
        progress=progress,
        points=(Point(name="loss", step=step, epoch=0, at=0.0, value=1.0),),
    )


class Told:
    """Keeps what the link delivers, and says hello with a number that grows."""

    def __init__(self) -> None:
        self.messages: list[ToTask] = []
        self.num_hellos = 0

    def hello(self) -> Hello:
        self.num_hellos += 1
        return Hello(task_id=TASK, pid=self.num_hellos)

    def wait(self, condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"waited {timeout_s} s; told {self.messages}"
            time.sleep(0.01)  # between two looks at the condition


@pytest.fixture
def told() -> Told:
    return Told()


def link_to(url: str, told: Told, *, pulse: PulseSettings | None = None, unsent: UnsentFile | None = None) -> Link:
    return Link(
        address=ServerAddress(url),
        task_id=TASK,
        token=TOKEN,
        hello=told.hello,
        deliver=told.messages.append,
        pulse=pulse,
        unsent=unsent,
    )


@pytest.fixture
def server() -> Iterator[LinkServer]:
    with LinkServer() as server:
        yield server


def test_hello_comes_first_after_a_proof_of_the_job_s_token(server: LinkServer, told: Told) -> None:
    link = link_to(server.url, told)
    link.send(note("early"))
    link.start()

    assert link.close(10)

    assert server.heard_in_all(2) == [Hello(task_id=TASK, pid=1), note("early")]
    assert server.requests[0].path == f"/v1/link?task={TASK}"
    assert server.task_was_proven == [True]
    assert TOKEN not in str(server.requests[0].headers), "it never travels"


def test_messages_of_the_server_are_handed_over_in_order_and_nonsense_is_ignored(
    server: LinkServer, told: Told, capsys: pytest.CaptureFixture[str]
) -> None:
    link = link_to(server.url, told)
    link.start()
    server.wait(lambda: len(server.all_heard()) == 1)

    server.say(Abandon(generation=1, reason="a"))
    server.say_raw('{"kind": "nonsense"}')
    server.say(Abandon(generation=2, reason="b"))

    told.wait(lambda: len(told.messages) == 2)
    assert told.messages == [Abandon(generation=1, reason="a"), Abandon(generation=2, reason="b")]
    assert "ignored a message of the server" in capsys.readouterr().out
    link.close(10)


def test_what_was_said_while_the_server_was_away_arrives_in_order_after_a_new_hello(told: Told, port: int) -> None:
    first = LinkServer(port=port)
    link = link_to(first.url, told)
    link.start()
    first.wait(lambda: len(first.all_heard()) == 1)
    first.close()
    for text in ("one", "two", "three"):
        link.send(note(text))

    with LinkServer(port=port) as second:
        second.wait(lambda: len(second.all_heard()) >= 4)
        link.send(note("four"))
        assert link.close(10)

    said = second.heard_in_all(5)
    assert said[0] == Hello(task_id=TASK, pid=told.num_hellos)
    assert said[1:] == [note("one"), note("two"), note("three"), note("four")]


def test_every_connection_begins_with_a_hello_of_its_own(told: Told, port: int) -> None:
    hellos = []
    link = None
    for _ in range(3):
        with LinkServer(port=port) as server:
            if link is None:
                link = link_to(server.url, told)
                link.start()
            server.wait(lambda server=server: len(server.all_heard()) >= 1)  # type: ignore[misc]
            hellos += server.all_heard()
    assert link is not None
    link.close(0.1)

    assert [hello.pid for hello in hellos if isinstance(hello, Hello)] == [1, 2, 3]


def test_reports_that_wait_are_merged_and_no_point_is_lost(server: LinkServer, told: Told) -> None:
    link = link_to(server.url, told)
    for step in (1, 2, 3):
        link.send(report(step))
    link.send(Finished(step=3))
    link.send(report(4))
    link.start()
    assert link.close(10)

    _, merged, finished, last = server.heard_in_all(4)
    assert isinstance(merged, Report)
    assert (merged.progress.step, [point.step for point in merged.points]) == (3, [1, 2, 3])
    assert (finished, last) == (Finished(step=3), report(4))


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND], ids=str)
def test_task_that_is_refused_is_dismissed_and_does_not_wait_to_say_goodbye(
    told: Told, status: HTTPStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.train.link.link._REFUSED_S", 0.2)
    with LinkServer(status=status) as server:
        link = link_to(server.url, told)
        link.send(note("never heard"))
        link.start()
        told.wait(lambda: bool(told.messages))

        began_at = time.monotonic()
        assert not link.close(30)

    assert told.messages == [Dismiss(reason=f"the server refuses this task (HTTP {status.value})")]
    assert time.monotonic() - began_at < 10
    assert len(server.requests) > 1


def test_a_stranger_at_the_address_of_a_server_that_is_down_dismisses_nobody(told: Told, port: int) -> None:
    with LinkServer(port=port, status=HTTPStatus.UNAUTHORIZED) as stranger:
        link = link_to(stranger.url, told)
        link.send(note("kept"))
        link.start()
        told.wait(lambda: len(stranger.requests) > 1)
    with LinkServer(port=port) as server:
        assert server.heard_in_all(2)[1:] == [note("kept")]
    assert told.messages == []
    link.close(0.1)


def test_a_stranger_in_the_server_s_place_is_told_nothing_and_tells_nothing(
    told: Told, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with LinkServer(port=port, token="of its own") as stranger:
        link = link_to(stranger.url, told)
        link.send(note("for the server"))
        link.start()
        stranger.wait(lambda: len(stranger.heard) > 1)
        with suppress(ConnectionClosed):
            stranger.say(Dismiss(reason="go away"))
        stranger.wait(lambda: len(stranger.heard) > 2)
    with LinkServer(port=port) as server:
        assert server.heard_in_all(2)[1:] == [note("for the server")]

    assert stranger.all_heard() == []
    assert all(TOKEN not in str(request.headers) for request in stranger.requests)
    assert told.messages == []
    assert capsys.readouterr().out.count("is not this job's server") == 1
    link.close(0.1)


def test_no_is_taken_from_a_stranger_only_after_much_longer_than_from_the_server(
    told: Told, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.train.link.link._REFUSED_S", 0.0)
    with LinkServer(port=port, status=HTTPStatus.UNAUTHORIZED, token="of its own") as stranger:
        link = link_to(stranger.url, told)
        link.start()
        told.wait(lambda: len(stranger.requests) > 2)
        assert told.messages == []
        monkeypatch.setattr("pliant.train.link.link._STRANGER_S", 0.0)
        told.wait(lambda: bool(told.messages))
    link.close(0.1)


def test_the_proof_is_made_for_the_server_that_the_file_names_now(told: Told, port: int, tmp_path: Path) -> None:
    file = tmp_path / "server.json"

    def announce(challenge: str) -> None:
        write_whole(file, json.dumps({"url": f"http://127.0.0.1:{port}", "challenge": challenge}).encode())

    announce("first")
    address = ServerAddress(f"http://127.0.0.1:{port}", file)
    link = Link(address=address, task_id=TASK, token=TOKEN, hello=told.hello, deliver=told.messages.append)
    with LinkServer(port=port, challenge="first") as first:
        link.start()
        first.wait(lambda: bool(first.all_heard()))
    with LinkServer(port=port, challenge="second") as second:
        second.wait(lambda: bool(second.task_was_proven))
        announce("second")
        second.wait(lambda: bool(second.all_heard()))
    link.close(0.1)

    assert first.task_was_proven == [True]
    assert second.task_was_proven[0] is False, "what was sent before is worth nothing here"
    assert second.task_was_proven[-1] is True


def test_a_server_that_says_nothing_after_the_tls_handshake_is_asked_again(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.train.link.link._OPEN_S", 0.3)
    tls = prepare(TlsSettings(), tmp_path, now=time.time())
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(tls.certificate, tls.key)
    silent: list[ssl.SSLSocket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        trust = Trust(certificate=tls.trusted, server_name="localhost")
        where = ServerAddress(f"https://127.0.0.1:{listener.getsockname()[1]}", None, trust)
        link = Link(address=where, task_id=TASK, token=TOKEN, hello=told.hello, deliver=told.messages.append)
        link.start()
        while len(silent) < 3:
            asking, _ = listener.accept()
            with suppress(OSError):  # where this test is too slow to shake hands it gives up, and asks again
                silent.append(theirs.wrap_socket(asking, server_side=True))
    link.close(0.1)
    for one in silent:
        one.close()

    assert told.num_hellos == 0


def test_server_that_is_overloaded_is_asked_again(told: Told) -> None:
    with LinkServer(status=HTTPStatus.SERVICE_UNAVAILABLE) as server:
        link = link_to(server.url, told)
        link.start()
        told.wait(lambda: len(server.requests) >= 3)
    link.close(0.1)

    assert told.messages == []


def test_goodbye_waits_for_a_server_that_comes_back(told: Told, port: int) -> None:
    first = LinkServer(port=port)
    first.close()
    link = link_to(first.url, told)
    link.send(Leaving(reason="last words"))
    link.start()
    with LinkServer(port=port) as second:
        assert link.close(20)

    assert second.heard_in_all(2) == [Hello(task_id=TASK, pid=told.num_hellos), Leaving(reason="last words")]


def test_goodbye_to_a_server_that_stays_away_ends_in_time(told: Told, port: int) -> None:
    gone = LinkServer(port=port)
    gone.close()
    link = link_to(gone.url, told)
    link.send(note("never heard"))
    link.start()

    began_at = time.monotonic()
    assert not link.close(0.3)
    assert time.monotonic() - began_at < 5


def test_goodbye_waits_for_a_slow_server_as_long_as_it_stores_something(told: Told) -> None:
    with LinkServer(slow_s=0.1) as server:
        link = link_to(server.url, told)
        for number in range(35):
            link.send(note(f"{number}"))
        link.start()
        assert link.close(3.0)  # all of it takes longer

    assert server.heard_in_all(36)[1:] == [note(f"{number}") for number in range(35)]


def pulsing(lease_s: float = 0.4) -> PulseSettings:
    return PulseSettings(make=Pulse, lease_s=lease_s)


def test_a_link_with_nothing_to_say_shows_life_a_few_times_in_every_lease(server: LinkServer, told: Told) -> None:
    made_at: list[float] = []

    def make() -> Pulse:
        made_at.append(time.monotonic())
        return Pulse(step=12)

    link = link_to(server.url, told, pulse=PulseSettings(make=make, lease_s=0.4))
    link.start()
    server.wait(lambda: len(server.all_heard()) >= 7)
    link.close(10)

    hello, *pulses = server.all_heard()
    assert isinstance(hello, Hello)
    assert set(pulses) == {Pulse(step=12)}
    assert made_at[5] - made_at[0] >= 0.4, "more often than needed"


def test_life_is_shown_again_after_the_connection_was_cut(told: Told, port: int) -> None:
    with LinkServer(port=port) as first:
        link = link_to(first.url, told, pulse=pulsing())
        link.start()
        first.wait(lambda: Pulse() in first.all_heard())
    with LinkServer(port=port) as second:
        second.wait(lambda: Pulse() in second.all_heard())
        link.close(10)

    assert isinstance(second.heard[-1][0], Hello)


def test_a_link_that_has_much_to_say_sends_no_pulse(server: LinkServer, told: Told) -> None:
    link = link_to(server.url, told, pulse=pulsing(lease_s=20.0))
    link.start()
    for number in range(50):
        link.send(note(str(number)))
    assert link.close(10)

    assert server.heard_in_all(51)[1:] == [note(str(number)) for number in range(50)]


def test_a_link_that_was_told_no_lease_sends_no_pulse(server: LinkServer, told: Told) -> None:
    link = link_to(server.url, told)
    link.start()
    server.wait(lambda: bool(server.all_heard()))
    link.send(note("only this"))
    assert link.close(10)

    assert server.heard_in_all(2)[1:] == [note("only this")]


def test_what_was_sent_and_never_stored_is_said_again_to_the_next_server(told: Told, port: int) -> None:
    first = LinkServer(port=port, forgetful=True)
    link = link_to(first.url, told)
    link.start()
    for text in ("one", "two"):
        link.send(note(text))
    first.wait(lambda: len(first.all_heard()) == 3)
    assert not link_is_done(link)
    first.close()

    with LinkServer(port=port) as second:
        link.send(note("three"))
        assert link.close(10)

    assert second.heard_in_all(4)[1:] == [note("one"), note("two"), note("three")]


def link_is_done(link: Link) -> bool:
    """Tell whether all that was said is stored, without waiting."""
    return not link._queue


def test_a_server_that_stores_nothing_gets_no_more_than_a_window(told: Told) -> None:
    with LinkServer(forgetful=True) as server:
        link = link_to(server.url, told)
        link.start()
        for number in range(WINDOW + 20):
            link.send(note(str(number)))
        server.wait(lambda: len(server.all_heard()) == WINDOW + 1)
        assert not link.close(0.2)
    assert len(server.all_heard()) == WINDOW + 1


def test_a_link_leaves_a_server_that_says_nothing_for_the_one_that_leads_now(told: Told, tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    with LinkServer(forgetful=True) as stopped, LinkServer() as leader:
        file.write_text(json.dumps({"url": stopped.url}))
        link = Link(
            address=ServerAddress("http://127.0.0.1:1", file),
            task_id=TASK,
            token=TOKEN,
            hello=told.hello,
            deliver=told.messages.append,
            pulse=pulsing(),
        )
        link.start()
        link.send(note("one"))
        stopped.wait(lambda: note("one") in stopped.all_heard())
        (tmp_path / "new").write_text(json.dumps({"url": leader.url}))
        (tmp_path / "new").replace(file)
        leader.wait(lambda: note("one") in leader.all_heard())
        assert link.close(10)
    assert isinstance(leader.heard[0][0], Hello)
