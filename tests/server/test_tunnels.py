"""Tunnels at the server, with real WebSockets at both ends, beside tasks of a simulated cluster."""

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from tests.server.conftest import packed
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from pliant.core.access import Role
from pliant.core.event import EventKind
from pliant.core.job import TaskId
from pliant.core.link_proof import NUM_BYTES, PROOF_HEADER, LinkProof
from pliant.core.notebook import SCRIPT, SCRIPT_TEXT
from pliant.core.ports import EventFilter, StartOrder
from pliant.core.tunnel import MAX_FRAME_BYTES, SidecarSettings
from pliant.server.tunnels import MAX_PER_JOB, MAX_PER_PERSON

Served = Any
ClientOf = Callable[..., httpx.Client]
Eventually = Callable[[Callable[[], Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A tunnel that was asked for, and what its sidecar was told."""

    url: str
    ticket: str
    order: StartOrder
    told: SidecarSettings

    def outside(self, ticket: str | None = None) -> ClientConnection:
        headers = {"Authorization": f"Bearer {ticket or self.ticket}"}
        return connect(self.url, additional_headers=headers, compression=None)

    def inside(self, key: str | None = None) -> ClientConnection:
        headers = {"Authorization": self._proof().authorization(key or self.told.key)}
        return connect(f"{self.url}/inside", additional_headers=headers, compression=None)

    def _proof(self) -> LinkProof:
        return LinkProof(task_id=self.told.tunnel_id, challenge="", nonce=secrets.token_hex(NUM_BYTES))


@pytest.fixture
def job_id(module_server: Served) -> Iterator[str]:
    """A job with one task that runs."""
    made = module_server.submit(fixed=True, env={"A": "b", "API_KEY": "s3cr3t"}).json()["id"]
    module_server.tick(1.0)
    yield made
    module_server.control.requests.stop(made, now=True)
    module_server.tick(1.0)


@pytest.fixture
def client_of(module_server: Served) -> Iterator[ClientOf]:
    """Give a function that returns a client of a user, made if need be."""
    with ExitStack() as stack:
        yield lambda name, role=Role.USER: stack.enter_context(module_server.client_of(name, role))


def ask(server: Served, job_id: str, http: httpx.Client | None = None, **body: object) -> httpx.Response:
    return (http or server.http).post(f"/jobs/{job_id}/shells", json=body)


def make(server: Served, job_id: str, http: httpx.Client | None = None, **body: object) -> Made:
    answer = ask(server, job_id, http, **body)
    assert answer.status_code == 201, answer.text
    view = answer.json()
    order, beside, _ = server.cluster.sidecars[TaskId(f"{view['task_id']}-{view['id']}")]
    assert beside == view["task_id"]
    return Made(
        url=f"ws://{server.address}/v1/tunnels/{view['id']}",
        ticket=view["ticket"],
        order=order,
        told=SidecarSettings.from_env(order.env),
    )


def status_of(opening: Callable[[], ClientConnection]) -> int:
    with pytest.raises(InvalidStatus) as refused, opening():
        pass
    return refused.value.response.status_code


def test_what_comes_from_one_end_goes_to_the_other_until_one_is_closed(module_server: Served, job_id: str) -> None:
    made = make(module_server, job_id, command=["ls", "-l"], terminal={"term": "vt100", "rows": 7, "columns": 9})
    told = made.told
    assert (told.command, told.terminal, told.rows, told.columns) == ('["ls", "-l"]', "vt100", 7, 9)
    with made.outside() as outside, made.inside() as inside:
        assert inside.response is not None
        assert inside.response.headers[PROOF_HEADER]
        frames = [b"d" + bytes([number]) * (MAX_FRAME_BYTES - 1) for number in range(40)]
        for frame in (b"", b"anything at all", *frames):
            outside.send(frame)
            assert inside.recv(timeout=30) == frame
            inside.send(frame)
            assert outside.recv(timeout=30) == frame
        inside.send(b"the last")
        inside.close()
        assert outside.recv(timeout=30) == b"the last"
        assert _end_of(outside) == (1000, "")


def _end_of(end: ClientConnection) -> tuple[int, str]:
    """Wait until the server closes this end; return with which words."""
    with pytest.raises(ConnectionClosed) as closed:
        end.recv(timeout=30)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code, closed.value.rcvd.reason


def test_a_ticket_and_a_key_open_one_end_each_once_and_nothing_else_does(
    module_server: Served, job_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    made, other = make(module_server, job_id), make(module_server, job_id)

    wrong: list[Callable[[], ClientConnection]] = [
        lambda: made.outside("wrong"),
        lambda: made.outside(other.ticket),
        lambda: made.outside(made.told.key),
        lambda: made.outside("the-token"),
        lambda: made.inside("wrong"),
        lambda: made.inside(other.told.key),
        lambda: made.inside(made.ticket),
        lambda: connect(made.url),
        lambda: connect(f"{made.url}/inside"),
        lambda: connect(
            made.url.replace(made.told.tunnel_id, "0" * 16), additional_headers={"Authorization": "Bearer "}
        ),
    ]
    assert [status_of(one) for one in wrong] == [401] * len(wrong)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == [], "strangers fill no log"
    with made.outside(), made.inside():
        assert status_of(made.outside) == status_of(made.inside) == 401
    with other.outside():
        pass
    assert status_of(other.outside) == 401, "it is not opened again"


def test_only_who_may_change_a_job_opens_one_and_its_owner_learns_who_did(
    module_server: Served, job_id: str, client_of: ClientOf
) -> None:
    owner, eve = client_of("ada"), client_of("eve")
    viewer = client_of("vic", Role.VIEWER)
    theirs = owner.post(
        "/jobs",
        files={
            "job": (None, '{"script": "train.py", "fixed": true, "env": {"A": "b", "API_KEY": "s3cr3t"}}'),
            "code": ("c.tar.gz", packed({"train.py": "print()\n"})),
        },
    ).json()["id"]
    module_server.tick(1.0)
    owner.put(f"/jobs/{theirs}/shares", json={"shared_with": ["eve"]})

    assert [ask(module_server, theirs, http).status_code for http in (eve, viewer)] == [403, 403]
    assert ask(module_server, job_id, owner).status_code == 404
    with module_server.client({}) as nobody:
        assert ask(module_server, theirs, nobody).status_code == 401

    own = make(module_server, theirs, owner).order.env
    administrators = make(module_server, theirs).order.env
    assert (own["A"], own["API_KEY"]) == ("b", "s3cr3t")
    assert (administrators["A"], administrators["API_KEY"]) == ("b", "(hidden)")
    events = module_server.store.events(EventFilter(job_id=theirs, kinds=(EventKind.TASK_ENTERED,)))
    assert [event.data["who"] for event in events] == ["ada", module_server.http.get("/me").json()["name"]]
    audited = [(entry.who, entry.action, entry.status) for entry in module_server.store.audit.entries(limit=100)]
    assert ("ada", f"POST /v1/jobs/{theirs}/shells", 201) in audited
    assert ("eve", f"POST /v1/jobs/{theirs}/shells", 403) in audited
    module_server.control.requests.stop(theirs, now=True)


def test_a_tunnel_to_a_notebook_is_for_those_who_may_change_its_job_and_for_jobs_that_run_one(
    module_server: Served, job_id: str, client_of: ClientOf
) -> None:
    answer = module_server.http.post(f"/jobs/{job_id}/notebook")
    assert (answer.status_code, answer.json()["problems"][0]["field"]) == (422, "job")
    assert "runs train.py and no notebook; open a shell beside it instead" in answer.text

    made = module_server.submit({SCRIPT: SCRIPT_TEXT}, fixed=True, script=SCRIPT).json()["id"]
    module_server.tick(1.0)
    assert client_of("eve").post(f"/jobs/{made}/notebook").status_code == 404
    assert client_of("vera", Role.VIEWER).post(f"/jobs/{made}/notebook").status_code == 403
    view = module_server.http.post(f"/jobs/{made}/notebook").json()
    order, beside, _ = module_server.cluster.sidecars[TaskId(f"{view['task_id']}-{view['id']}")]
    told = SidecarSettings.from_env(order.env)
    assert (beside, told.notebook, told.command, told.terminal) == (view["task_id"], True, None, None)
    (event,) = module_server.store.events(EventFilter(job_id=made, kinds=(EventKind.TASK_ENTERED,)))
    assert event.message == f"admin opened the notebook of {made}.1"
    module_server.control.requests.stop(made, now=True)
    module_server.tick(1.0)


def test_a_sidecar_is_not_taken_for_the_task_and_knows_no_token_of_its_job(module_server: Served, job_id: str) -> None:
    elastic = module_server.submit().json()["id"]
    module_server.tick(1.0)
    (task,) = [order for order in module_server.cluster.orders if order.env["PLIANT_JOB_ID"] == elastic]
    beside = make(module_server, elastic).order

    assert "PLIANT_TASK_TOKEN" in task.env
    assert not {"PLIANT_TASK_TOKEN", "PLIANT_URL", "PLIANT_SERVER_FILE"} & beside.env.keys()
    assert beside.confinement == task.confinement
    assert (beside.cwd, beside.python, beside.log_dir) == (task.cwd, task.python, "")
    module_server.control.requests.stop(elastic, now=True)


@pytest.mark.parametrize("frame", [b"x" * (MAX_FRAME_BYTES + 1), "text"])
@pytest.mark.parametrize("end", ["outside", "inside"])
def test_an_end_that_does_not_keep_to_the_rules_is_hung_up_on(
    module_server: Served, job_id: str, frame: bytes | str, end: str
) -> None:
    made = make(module_server, job_id)
    with made.outside() as outside, made.inside() as inside:
        (outside if end == "outside" else inside).send(frame)
        assert [_end_of(one)[0] for one in (outside, inside)] == [1008, 1008]


def test_an_end_that_reads_nothing_stops_the_other_one(module_server: Served, job_id: str) -> None:
    made = make(module_server, job_id)
    with made.outside() as outside, made.inside() as inside:
        inside.socket.settimeout(2.0)
        assert _num_taken(inside) < 64 << 20, "what is under way lies in buffers of the system"
        outside.close_socket()
        inside.close_socket()


def _num_taken(end: ClientConnection) -> int:
    """Send until nobody takes it any more; return how many bytes were taken."""
    sent = 0
    with suppress(TimeoutError, ConnectionClosed):
        while sent < 1 << 30:
            end.send(b"d" * MAX_FRAME_BYTES)
            sent += MAX_FRAME_BYTES
    return sent


def test_it_ends_with_words_when_the_sidecar_does_and_with_the_callers_access(
    module_server: Served, job_id: str, client_of: ClientOf
) -> None:
    made = make(module_server, job_id)
    with made.outside() as outside:
        module_server.cluster.sidecars.pop(made.order.task_id)[2]("it cannot be kept apart from others")
        assert _end_of(outside)[1] == "it cannot be kept apart from others"

    killed = make(module_server, job_id)
    with killed.outside() as outside, killed.inside() as inside:
        inside.close_socket()
        module_server.cluster.sidecars.pop(killed.order.task_id)[2]("its task has ended")
        assert _end_of(outside)[1] == "its task has ended"

    lost = make(module_server, job_id, client_of("boss", Role.ADMIN))
    client_of("second", Role.ADMIN)
    with lost.outside() as outside, lost.inside():
        changed = module_server.http.patch("/users/boss", json={"role": "user"})
        assert changed.is_success, changed.text
        assert _end_of(outside) == (1008, f"{job_id} is admin's, and yours to change no more")


def test_a_client_that_is_gone_ends_its_sidecar(module_server: Served, job_id: str, eventually: Eventually) -> None:
    made = make(module_server, job_id)
    with made.outside() as outside, made.inside() as inside:
        outside.close_socket()
        with pytest.raises(ConnectionClosed):
            inside.recv(timeout=30)

    eventually(lambda: _is_ended(module_server, made))


@pytest.mark.parametrize("num_sent", [0, 3])
@pytest.mark.parametrize("is_polite", [True, False])
def test_a_client_that_goes_away_while_the_sidecar_starts_ends_it_at_once(
    module_server: Served, job_id: str, eventually: Eventually, num_sent: int, is_polite: bool
) -> None:
    made = make(module_server, job_id)
    with made.outside() as outside:
        for _ in range(num_sent):
            outside.send(b"d" + bytes(MAX_FRAME_BYTES - 1))
        outside.close() if is_polite else outside.close_socket()

    eventually(lambda: _is_ended(module_server, made))
    assert status_of(made.inside) == 401, "nobody waits for it any more"


def _is_ended(server: Served, made: Made) -> bool:
    server.tick()
    return made.order.task_id not in server.cluster.sidecars


def test_what_a_client_sends_before_the_sidecar_is_there_comes_first_and_in_order(
    module_server: Served, job_id: str
) -> None:
    made = make(module_server, job_id)
    frames = [number.to_bytes(4, "big") * (1 << 12) for number in range(100)]  # more than the server keeps
    with made.outside() as outside:
        sender = threading.Thread(target=lambda: deque(map(outside.send, frames), maxlen=0))
        sender.start()
        with made.inside() as inside:
            assert [inside.recv(timeout=30) for _ in frames] == frames
        sender.join(30)


def test_what_a_sidecar_has_sent_before_it_ended_waits_for_the_client(module_server: Served, job_id: str) -> None:
    made = make(module_server, job_id)
    with made.inside() as inside:
        inside.send(b"the last")
        closing = threading.Thread(target=inside.close)
        closing.start()
        with made.outside() as outside:
            assert outside.recv(timeout=30) == b"the last"
            assert _end_of(outside) == (1000, "")
        closing.join(30)


def test_a_person_has_so_many_at_most_and_others_have_theirs(
    module_server: Served, job_id: str, client_of: ClientOf
) -> None:
    owner = client_of("greta")
    theirs = [
        owner.post(
            "/jobs",
            files={"job": (None, '{"script": "a.py", "fixed": true}'), "code": ("c.tar.gz", packed({"a.py": ""}))},
        ).json()["id"]
        for _ in range(3)
    ]
    module_server.tick(1.0)
    for number in range(MAX_PER_PERSON):
        assert ask(module_server, theirs[number % 2], owner).status_code == 201
    full = ask(module_server, theirs[2], owner)
    assert (full.status_code, full.json()["detail"]) == (
        409,
        "greta has as many shells and notebooks as a person may have open; end one of them first",
    )
    assert ask(module_server, theirs[2]).status_code == 201, "an administrator's own"
    assert ask(module_server, job_id).status_code == 201
    for one in theirs:
        module_server.control.requests.stop(one, now=True)
    module_server.tick(1.0)


def test_a_job_has_so_many_at_most_and_what_is_wrong_is_told(module_server: Served, job_id: str) -> None:
    other = module_server.submit(fixed=True).json()["id"]
    module_server.tick(1.0)
    for _ in range(MAX_PER_JOB):
        make(module_server, other)
    full = ask(module_server, other)
    assert (full.status_code, full.json()["detail"]) == (
        409,
        f"{other} has as many shells and notebooks as it may have open; end one of them first",
    )
    assert ask(module_server, job_id).status_code == 201
    module_server.control.requests.stop(other, now=True)
    module_server.tick(1.0)

    assert ask(module_server, other).status_code == 409
    assert ask(module_server, "job-999").status_code == 404
    assert ask(module_server, job_id, task=7).status_code == 404
    for wrong in (
        {"command": [""]},
        {"command": ["a\0b"]},
        {"command": ["x" * 70_000]},
        {"terminal": {"term": "$(id)", "rows": 1, "columns": 1}},
        {"terminal": {"rows": 0}},
        {"task": 0},
        {"more": 1},
    ):
        assert ask(module_server, job_id, **wrong).status_code == 422, wrong
