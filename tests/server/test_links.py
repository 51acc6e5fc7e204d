"""The control link, with a real WebSocket client."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any
from urllib.parse import unquote

import pytest
from tests.link_proofs import new_proof
from tests.server.conftest import SECRET
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from pliant.api.link import MAX_FRAME_BYTES, decode_to_task, encode
from pliant.control.jobs.orders import job_token
from pliant.core.job import JobId, TaskId
from pliant.core.lifecycle import TaskState
from pliant.core.link import Abandon, Form, FromTask, Hello, Note, Pulse, Ready, Stored
from pliant.core.link_proof import PROOF_HEADER
from pliant.core.ports import EventFilter

Served = Any
Eventually = Callable[[Callable[[], Any]], Any]
TASK = TaskId("job-1.1")


@pytest.fixture
def open_link(server: Served) -> Iterator[Callable[[], ClientConnection]]:
    server.submit()
    server.tick()
    with ExitStack() as stack:
        yield lambda: stack.enter_context(
            connect(server.link_url(TASK), additional_headers=server.link_headers("job-1"))
        )


def say(link: ClientConnection, message: FromTask) -> None:
    link.send(encode(message))


def test_a_task_says_hello_is_heard_and_is_told(
    server: Served, open_link: Callable[[], ClientConnection], eventually: Eventually
) -> None:
    link = open_link()
    say(link, Hello(task_id=TASK, pid=77))
    say(link, Ready(host="127.0.0.1", port=9, virtual_workers=8))

    def warm() -> bool:
        server.tick()
        return bool(server.store.tasks()[0].state is TaskState.WARM)

    eventually(warm)
    assert server.store.tasks()[0].pid == 77
    form = decode_to_task(link.recv(timeout=30))
    assert isinstance(form, Form)
    assert form.members == (TASK,)


def refusal(server: Served, task_id: str, headers: dict[str, str]) -> tuple[int, str]:
    """Return status and text of the answer, with the id of the task left out."""
    with pytest.raises(InvalidStatus) as refused, connect(server.link_url(task_id), additional_headers=headers):
        pass
    response = refused.value.response
    return response.status_code, (response.body or b"").decode().replace(task_id, "TASK")


def test_the_token_of_a_job_opens_no_link_of_a_task_that_it_does_not_have(server: Served) -> None:
    server.submit()
    server.tick()
    own, another = partial(server.link_headers, "job-1"), partial(server.link_headers, "job-5")

    wrong = refusal(server, TASK, another(TASK))
    strange = ("job-1.2", "job-1.999", "job-1.", "job-1.1.1", "job-1.1%00")
    refusals = [refusal(server, task, own(unquote(task))) for task in strange]

    assert wrong[0] == 401
    assert [status for status, _ in refusals] == [401] * 5
    assert (
        refusals[0] == refusal(server, "job-5.1", another()) == refusal(server, "job-1.2", another("job-1.2")) == wrong
    )
    assert refusal(server, TASK, own("job-1.2")) == wrong, "a proof is one task's alone"


def test_the_link_of_a_task_that_has_ended_is_closed_for_good(
    server: Served, open_link: Callable[[], ClientConnection], eventually: Eventually
) -> None:
    say(open_link(), Hello(task_id=TASK, pid=1))
    before = refusal(server, "job-1.2", server.link_headers("job-1", "job-1.2"))
    server.cluster.exit(TASK, 1)

    eventually(lambda: (server.tick(), server.store.tasks()[0].ended)[1])

    assert refusal(server, TASK, server.link_headers("job-1")) == before


def test_a_token_that_travels_opens_no_link_and_neither_does_a_proof_for_another_server(server: Served) -> None:
    server.submit()
    server.tick()
    token = job_token(SECRET, JobId("job-1"))
    elsewhere = new_proof(TASK, "of the server before").authorization(token)

    refused = [refusal(server, TASK, {"Authorization": value}) for value in (f"Bearer {token}", elsewhere)]

    assert refused == [refusal(server, TASK, server.link_headers("job-5", TASK))] * 2


def test_the_server_proves_itself_whether_it_opens_a_link_or_refuses_it(
    server: Served, open_link: Callable[[], ClientConnection]
) -> None:
    token = job_token(SECRET, JobId("job-1"))
    proofs = {task: new_proof(task, "") for task in (TASK, "job-1.77")}
    with connect(
        server.link_url(TASK), additional_headers={"Authorization": proofs[TASK].authorization(token)}
    ) as link:
        assert link.response is not None
        opened = link.response.headers
    headers = {"Authorization": proofs["job-1.77"].authorization(token)}
    with pytest.raises(InvalidStatus) as refused, connect(server.link_url("job-1.77"), additional_headers=headers):
        pass

    assert proofs[TASK].proves("open", token, opened[PROOF_HEADER])
    assert not proofs[TASK].proves("refused", token, opened[PROOF_HEADER])
    assert proofs["job-1.77"].proves("refused", token, refused.value.response.headers[PROOF_HEADER])


@pytest.mark.parametrize("token", [None, "Bearer wrong", "Pliant-Task", "Pliant-Task x y", f"Pliant-Task {'0' * 64} "])
def test_a_wrong_token_opens_no_link(server: Served, token: str | None) -> None:
    headers = {"Authorization": token} if token else {}
    with pytest.raises(InvalidStatus) as refused, connect(server.link_url(TASK), additional_headers=headers):
        pass
    assert refused.value.response.status_code == 401


def test_a_newer_connection_replaces_the_older(
    server: Served, open_link: Callable[[], ClientConnection], eventually: Eventually
) -> None:
    old = open_link()
    say(old, Hello(task_id=TASK, pid=1))
    new = open_link()
    say(new, Hello(task_id=TASK, pid=1))
    with pytest.raises(ConnectionClosed) as closed:
        old.recv(timeout=30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4000
    server.links.send(TASK, Abandon(generation=1, reason="test"))
    assert decode_to_task(new.recv(timeout=30)) == Abandon(generation=1, reason="test")


@pytest.mark.parametrize(
    "frame",
    [
        "no json",
        '{"kind": "ready", "host": "h", "port": 1, "virtual_workers": 1}',
        '{"kind": "hello", "task_id": "job-1.2", "pid": 1}',
        b"\x00\x01",
    ],
)
def test_what_is_no_first_message_closes_the_link(
    server: Served, open_link: Callable[[], ClientConnection], frame: str | bytes
) -> None:
    link = open_link()
    link.send(frame)
    with pytest.raises(ConnectionClosed) as closed:
        link.recv(timeout=30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


def test_a_frame_over_the_limit_is_refused(server: Served, open_link: Callable[[], ClientConnection]) -> None:
    link = open_link()
    with suppress(ConnectionClosed):
        link.send("x" * (MAX_FRAME_BYTES + 10))
    with pytest.raises(ConnectionClosed) as closed:
        link.recv(timeout=30)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


def test_the_end_of_a_link_is_told_after_all_that_was_said(
    server: Served, open_link: Callable[[], ClientConnection], eventually: Eventually
) -> None:
    link = open_link()
    say(link, Hello(task_id=TASK, pid=1))
    for i in range(200):
        say(link, Ready(host="h", port=i + 1, virtual_workers=8))
    link.close()

    def silent() -> bool:
        server.control.tick()
        return TASK in server.control._intake._disconnected

    eventually(silent)
    assert server.control.jobs()["job-1"].membership.tasks[TASK].port == 200


def test_links_close_with_the_server(server: Served, open_link: Callable[[], ClientConnection]) -> None:
    link = open_link()
    say(link, Hello(task_id=TASK, pid=1))
    server.links.send(TASK, Abandon(generation=1, reason="last words"))
    assert isinstance(decode_to_task(link.recv(timeout=30)), Abandon)
    server.links.close_all()
    with pytest.raises(ConnectionClosed):
        link.recv(timeout=30)


def test_a_pulse_is_a_sign_of_life_and_nothing_else(
    server: Served, open_link: Callable[[], ClientConnection], eventually: Eventually
) -> None:
    link = open_link()
    say(link, Hello(task_id=TASK, pid=77))
    eventually(lambda: (server.tick(), server.store.tasks()[0].pid)[1] == 77)  # its lease begins before it is heard
    revision = server.store.jobs()[0].revision
    server.control._leases.drop(TASK)
    say(link, Pulse(step=3))
    eventually(lambda: server.control._leases.has_lease(TASK))
    server.tick()
    assert server.store.jobs()[0].revision == revision


@pytest.mark.parametrize("goodbye", [True, False], ids=["goodbye", "cut"])
def test_a_goodbye_is_told_from_a_connection_that_was_cut(
    server: Served, open_link: Callable[[], ClientConnection], eventually: Eventually, goodbye: bool
) -> None:
    told: list[tuple[str, bool]] = []
    server.control.disconnect = lambda task_id, goodbye=False: told.append((task_id, goodbye))
    link = open_link()
    say(link, Hello(task_id=TASK, pid=1))
    if goodbye:
        link.close()
    else:
        link.socket.shutdown(socket.SHUT_RDWR)

    eventually(lambda: told)

    assert told == [(TASK, goodbye)]


def test_the_audience_hears_that_the_links_are_read(server: Served, eventually: Eventually) -> None:
    eventually(lambda: server.control._leases._delivered_at is not None)


def test_what_a_task_says_is_told_as_stored_only_after_it_is_and_heard_once(
    server: Served, open_link: Callable[[], ClientConnection], eventually: Eventually
) -> None:
    def notes() -> int:
        return sum(event.message.endswith("mind this") for event in server.store.events(EventFilter()))

    frame = encode(Note(message="mind this"), 1)
    link = open_link()
    say(link, Hello(task_id=TASK, pid=77))
    link.send(frame)
    link.send(frame)  # said again before it was stored
    with pytest.raises(TimeoutError):
        link.recv(timeout=0.2)
    assert notes() == 0
    eventually(lambda: (server.tick(), notes())[1] == 1)
    assert decode_to_task(link.recv(timeout=30)) == Stored(number=1)
    again = open_link()
    say(again, Hello(task_id=TASK, pid=77))
    again.send(frame)  # its answer was lost with the connection
    server.tick()
    assert decode_to_task(again.recv(timeout=30)) == Stored(number=1)
    server.tick()
    assert notes() == 1
    server.links._received.clear()  # as the links of the next server, which were never told
    again.send(frame)
    assert eventually(lambda: (server.tick(), received(again))[1]) == Stored(number=1)
    assert notes() == 1


def received(link: ClientConnection) -> object:
    try:
        return decode_to_task(link.recv(timeout=0.05))
    except TimeoutError:
        return None


def test_a_number_that_is_none_closes_the_link(open_link: Callable[[], ClientConnection]) -> None:
    link = open_link()
    say(link, Hello(task_id=TASK, pid=77))
    link.send(encode(Note(message="x"), 1).replace('"number":1', '"number":-1'))
    with pytest.raises(ConnectionClosed, match="number"):
        link.recv(timeout=30)
