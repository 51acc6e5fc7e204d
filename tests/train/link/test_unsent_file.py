"""What a task that ends while its server is away leaves behind, and how long it waits then."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.train.link.link_server import LinkServer
from tests.train.link.test_link import TASK, Told, link_to, note

from pliant.api.unsent import unpack
from pliant.core.link import Finished, FromTask
from pliant.core.ports import UNSENT_FILE
from pliant.train.link.link import Link
from pliant.train.link.unsent_file import UnsentFile

LONG_S, LEFT_S = 60.0, 0.4
pytestmark = pytest.mark.timeout(30)
Left = tuple[tuple[int, FromTask], ...]


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a task wait a fraction of what it waits in life."""
    monkeypatch.setattr("pliant.train.link.link.LEFT_S", LEFT_S)
    monkeypatch.setattr("pliant.train.link.link._AT_ONCE_S", 0.2)


def left_in(folder: Path) -> Left | None:
    """Return what a server would find there."""
    path = folder / UNSENT_FILE
    return unpack(path.read_text(), TASK) if path.exists() else None


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never comes true"
        time.sleep(0.005)  # between two looks at the condition


class Closing:
    """A link that is being closed, in a thread."""

    def __init__(self, link: Link) -> None:
        self.began_at = time.monotonic()
        self.flushed: list[bool] = []
        self._thread = threading.Thread(target=lambda: self.flushed.append(link.close(LONG_S)), daemon=True)
        self._thread.start()

    def end(self) -> float:
        """Wait for the end; return how long it all took, seconds."""
        self._thread.join(20)
        assert self.flushed, "it still waits"
        return time.monotonic() - self.began_at


def test_with_a_server_there_is_never_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    monkeypatch.setattr(UnsentFile, "write", lambda _self, messages: written.append(messages))
    with LinkServer(slow_s=0.02) as server:
        link = link_to(server.url, Told(), unsent=UnsentFile(tmp_path, TASK))
        link.start()
        for number in range(10):
            link.send(note(f"{number}"))

        assert link.close(LONG_S)

    assert (written, list(tmp_path.iterdir())) == ([], [])


@pytest.mark.usefixtures("brief")
def test_a_task_that_ends_without_a_server_leaves_at_once_what_is_not_stored_and_is_soon_gone(tmp_path: Path) -> None:
    with LinkServer() as server:
        link = link_to(server.url, Told(), unsent=UnsentFile(tmp_path, TASK))
        link.start()
        link.send(note("stored"))
        server.wait(lambda: len(server.all_heard()) == 2)
        until(lambda: not link._queue)
    link.send(note("one"))
    link.send(Finished(step=9))
    closing = Closing(link)

    until(lambda: left_in(tmp_path))
    assert closing.flushed == [], "who is killed in the wait has left it before"
    took_s = closing.end()

    assert left_in(tmp_path) == ((2, note("one")), (3, Finished(step=9)))
    assert [path.name for path in tmp_path.iterdir()] == [UNSENT_FILE]
    assert closing.flushed == [False]
    assert LEFT_S <= took_s < LONG_S / 2


@pytest.mark.usefixtures("brief")
def test_what_was_sent_to_a_server_that_did_not_say_it_is_stored_is_left_too(tmp_path: Path) -> None:
    with LinkServer(forgetful=True) as server:
        link = link_to(server.url, Told(), unsent=UnsentFile(tmp_path, TASK))
        link.start()
        link.send(Finished(step=9))
        server.wait(lambda: len(server.all_heard()) == 2)
        closing = Closing(link)
        until(lambda: left_in(tmp_path))

    closing.end()
    assert left_in(tmp_path) == ((1, Finished(step=9)),)


def test_a_server_that_comes_back_in_time_stores_it_and_no_file_is_left(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pliant.train.link.link.LEFT_S", LONG_S)
    with LinkServer(port=port) as first:
        link = link_to(first.url, Told(), unsent=UnsentFile(tmp_path, TASK))
        link.start()
        first.wait(lambda: len(first.all_heard()) == 1)
    link.send(Finished(step=9))
    closing = Closing(link)
    until(lambda: left_in(tmp_path))
    with LinkServer(port=port) as second:
        closing.end()

        assert closing.flushed == [True]
        assert second.heard_in_all(2)[1:] == [Finished(step=9)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("brief")
def test_what_is_said_during_the_wait_is_left_too(tmp_path: Path) -> None:
    link = link_to("http://127.0.0.1:1", Told(), unsent=UnsentFile(tmp_path, TASK))
    link.start()
    link.send(Finished(step=9))
    closing = Closing(link)
    until(lambda: left_in(tmp_path))

    link.send(note("late"))

    until(lambda: left_in(tmp_path) == ((1, Finished(step=9)), (2, note("late"))))
    closing.end()


@pytest.mark.usefixtures("brief")
def test_a_task_that_can_leave_nothing_waits_as_long_as_it_may(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = link_to("http://127.0.0.1:1", Told(), unsent=UnsentFile(tmp_path / "gone", TASK))
    link.start()
    link.send(Finished(step=9))

    began_at = time.monotonic()
    assert not link.close(LEFT_S + 0.4)

    assert time.monotonic() - began_at >= LEFT_S + 0.4
    assert f"cannot be left in {tmp_path}/gone/{UNSENT_FILE}" in capsys.readouterr().out
