"""The client against a real server on loopback that speaks the wire shapes."""

import io
import math
import socket
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.rest import World, serve
from tests.contracts.store import a_job, a_metric, a_task, an_event

from pliant.api.jobs import JobDetail, JobPatch, JobRequest, LogFile, SlotView
from pliant.client import Client
from pliant.client.connection import Connection, Patience
from pliant.client.stream import stream_events
from pliant.core.errors import (
    Conflict,
    Forbidden,
    InternalError,
    InvalidInput,
    NotFound,
    Problem,
    Stale,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from pliant.core.event import Usage
from pliant.core.job import JobId, NodeId, Progress
from pliant.core.lifecycle import JobState
from pliant.core.plan import NodeView

JOB = JobId("job-1")


@pytest.fixture
def world() -> World:
    world = World(node=NodeView(id=NodeId("here"), slots=(0, 1, 2, 3)))
    world.jobs = {f"job-{n}": a_job(f"job-{n}") for n in range(1, 4)}
    world.tasks = {"job-1.1": a_task()}
    world.events = [replace(an_event(f"event {n}\u2028", job_id=f"job-{1 + n % 2}"), seq=n) for n in range(1, 6)]
    return world


@pytest.fixture
def url(world: World) -> Iterator[str]:
    with serve(world) as url:
        yield url


@pytest.fixture
def client(url: str, world: World) -> Iterator[Client]:
    with Client(url, world.token, timeout_s=30.0) as client:
        yield client


def test_questions_come_back_as_nouns(client: Client, world: World) -> None:
    world.metrics = [a_metric(1), a_metric(2, "accuracy"), a_metric(3)]
    world.usage = [Usage(at=1.0, job_id=JOB, num_slots=2)]
    assert client.job("job-1") == JobDetail(job=world.jobs["job-1"], tasks=(a_task(),), generations=())
    assert client.events(after=3).events == tuple(world.events[3:])
    assert client.events(job_id="job-2", limit=1).last == 1
    assert client.metrics("job-1", names=["loss"], after_step=1).points == (a_metric(3),)
    assert client.usage(since=0.5).points == tuple(world.usage)
    assert client.cluster().slots[3] == SlotView(node_id="here", slot=3, taken=True, job_id="job-1", task_id="job-1.1")
    assert client.why("job-1").num_tasks == 1
    assert client.healthy()


def test_jobs_are_paged_and_filtered(client: Client, world: World) -> None:
    world.jobs["job-2"] = a_job("job-2", state=JobState.FAILED)
    first = client.jobs(limit=2)
    assert ([job.id for job in first.jobs], first.next) == (["job-3", "job-2"], "job-2")
    assert [job.id for job in client.jobs(before=first.next).jobs] == ["job-1"]
    assert [job.id for job in client.jobs(states=[JobState.FAILED, JobState.PAUSED]).jobs] == ["job-2"]


def test_a_folder_is_submitted_with_its_request(client: Client, world: World, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "model.py").write_text("x = 1")
    request = JobRequest(script="train.py", args=("--lr", "0.1"), max_tasks=4, env={"A": "b"})
    job = client.submit(tmp_path, request)
    assert (job.id, job.state, job.spec.args) == ("job-4", JobState.PENDING, ("--lr", "0.1"))
    assert world.uploads[0].request == request
    assert world.uploads[0].files == {"train.py": b"print(1)", "net/model.py": b"x = 1"}


def test_a_script_that_is_not_in_the_folder_is_refused_before_uploading(
    client: Client, world: World, tmp_path: Path
) -> None:
    (tmp_path / "other.py").write_text("")
    with pytest.raises(InvalidInput, match=r"script: 'train.py' is not among the files .* there are other\.py"):
        client.submit(tmp_path, JobRequest(script="train.py"))
    assert world.asked == []


def test_a_job_is_changed_and_stopped(client: Client) -> None:
    assert client.change("job-1", JobPatch(priority=10_000)).priority == 10_000
    assert client.change("job-1", JobPatch(min_tasks=1, max_tasks=3)).max_tasks == 3
    assert client.stop("job-1").state is JobState.STOPPED
    assert client.wait("job-1", timeout_s=30.0).ended
    client.shutdown()


def test_waiting_has_a_deadline(client: Client) -> None:
    with pytest.raises(TimeoutError, match=r"job-2 has not ended after 0\.02 s; it is running"):
        client.wait("job-2", timeout_s=0.02, poll_s=0.01)


def test_waiting_bears_a_server_that_is_away_for_a_moment(client: Client, world: World) -> None:
    world.jobs["job-1"] = a_job(state=JobState.COMPLETED)
    world.failures = [(503, "starting"), (503, "starting")]
    assert client.wait("job-1", timeout_s=30.0).state is JobState.COMPLETED


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidInput),
        (401, Unauthorized),
        (403, Forbidden),
        (412, Stale),
        (404, NotFound),
        (409, Conflict),
        (413, TooLarge),
        (422, InvalidInput),
        (500, InternalError),
        (503, Unavailable),
    ],
)
def test_a_status_becomes_the_error_it_stands_for(
    client: Client, world: World, status: int, error: type[Exception]
) -> None:
    world.failures = [(status, f'{{"title": "t", "status": {status}, "detail": "what to do"}}'), (status, "<html>oops")]
    with pytest.raises(error, match="what to do"):
        client.cluster()
    with pytest.raises(error, match="oops"):
        client.cluster()


def test_invalid_input_keeps_every_problem(client: Client, world: World, tmp_path: Path) -> None:
    problems = '[{"field": "a", "message": "too small"}, {"field": "b", "message": "not a number"}]'
    world.failures = [(422, f'{{"title": "t", "status": 422, "detail": "d", "problems": {problems}}}')]
    with pytest.raises(InvalidInput) as caught:
        client.cluster()
    assert caught.value.problems == (
        Problem(field="a", message="too small"),
        Problem(field="b", message="not a number"),
    )


def test_unknown_job_wrong_token_and_ended_job_are_told_apart(client: Client, url: str, world: World) -> None:
    with pytest.raises(NotFound, match="no job 'job-77'"):
        client.job("job-77")
    with Client(url, "wrong") as stranger, pytest.raises(Unauthorized, match="token"):
        stranger.jobs()
    world.jobs["job-1"] = a_job(state=JobState.COMPLETED)
    with pytest.raises(Conflict, match="has ended"):
        client.change("job-1", JobPatch(priority=1))


def test_an_answer_of_another_shape_is_told(client: Client, world: World) -> None:
    world.failures = [(200, '{"jobs": 3}')]
    with pytest.raises(InternalError, match=r"GET /v1/jobs is not what this client understands"):
        client.jobs()


def test_a_training_that_diverged_can_still_be_shown(client: Client, world: World) -> None:
    progress = Progress(
        epoch=0,
        num_epochs=1,
        step=1,
        num_steps=2,
        samples=1,
        samples_per_s=math.inf,
        loss=math.nan,
        metrics={"perplexity": math.inf, "accuracy": 0.5},
    )
    world.jobs["job-1"] = replace(a_job(), progress=progress)
    world.metrics = [a_metric(1, value=math.nan), a_metric(2)]
    found = client.job("job-1").job.progress
    assert found is not None
    assert repr(found.metrics) == "{'perplexity': nan, 'accuracy': 0.5}"
    assert math.isnan(found.samples_per_s)
    assert len(client.jobs().jobs) == 3
    assert [repr(point.value) for point in client.metrics("job-1").points] == ["nan", "0.5"]


def test_a_job_id_cannot_lead_to_another_route(client: Client, world: World) -> None:
    with pytest.raises(NotFound):
        client.job("../cluster?x=")
    assert world.asked == ["GET /v1/jobs/..%2Fcluster%3Fx%3D"]


def test_no_server_at_the_address_is_told_with_what_to_do() -> None:
    with socket.socket() as taken:  # nobody listens, and nobody else can have the port meanwhile
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with Client(f"http://127.0.0.1:{port}", "t") as client:
            with pytest.raises(Unavailable, match=rf"no server answers at http://127\.0\.0\.1:{port}; start one with"):
                client.jobs()
            assert not client.healthy()


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Client(url, "t", timeout_s=0.05) as client, pytest.raises(Unavailable, match="did not answer in time"):
            client.jobs()


def test_a_home_names_its_server_or_says_that_none_runs(url: str, world: World, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=rf"no server runs for {tmp_path}; start one with `pliant up`"):
        Client.from_home(tmp_path)
    (tmp_path / "server.json").write_text(f'{{"url": "{url}", "pid": 1, "started_at": 3.5}}')
    with pytest.raises(Unavailable, match="token cannot be read"):
        Client.from_home(tmp_path)
    (tmp_path / "token").write_text(f"{world.token}\n")
    with Client.from_home(tmp_path) as client:
        assert len(client.jobs().jobs) == 3
    (tmp_path / "server.json").write_text("{")
    with pytest.raises(Unavailable, match=r"server\.json cannot be read"):
        Client.from_home(tmp_path)


@pytest.mark.parametrize("bad", ["", "127.0.0.1:7311", "ftp://host", "http://", "http://[::"])
def test_an_address_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInput, match="url: "):
        Client(bad, "t")


@pytest.mark.parametrize("bad", ["two words", "line\nbreak", "ключ"])
def test_a_token_that_cannot_be_sent_is_refused(bad: str) -> None:
    with pytest.raises(InvalidInput):
        Client("http://127.0.0.1:1", bad)


def test_the_stream_gives_every_event_once_though_it_breaks(client: Client, world: World, url: str) -> None:
    world.cut_after = [2, 0, 1]
    stream = client.stream(after=0)
    assert [next(stream).seq for _ in range(5)] == [1, 2, 3, 4, 5]
    stream.close()  # type: ignore[attr-defined]


def test_a_stream_without_a_number_begins_now(client: Client, world: World) -> None:
    stream = client.stream()
    world.events.append(replace(world.events[0], seq=6))
    assert next(stream).seq == 6


def test_the_stream_of_one_job_starts_after_a_number(client: Client, world: World) -> None:
    stream = client.stream(after=2, job_id="job-2")
    assert [next(stream), next(stream)] == [world.events[2], world.events[4]]


def test_the_stream_gives_up_when_the_server_stays_away(world: World) -> None:
    pauses: list[float] = []
    with serve(world) as url:
        connection = Connection(url, world.token, 1.0)
        stream = stream_events(connection, after=0, job_id=None, patience=Patience(sleep=pauses.append))
        assert [next(stream).seq for _ in range(5)] == [1, 2, 3, 4, 5]
    with pytest.raises(Unavailable, match="no server answers"):
        next(stream)
    assert pauses[:4] == [0.2, 0.4, 0.8, 1.6]
    assert len(pauses) == 9
    connection.close()


LOG = "".join(f"line {n} ü\u2028x\r\n" for n in range(1, 5001)).encode() + b"no end \xff"


def _lines(log: bytes) -> list[str]:
    return [line.removesuffix("\r") for line in log.decode("utf-8", "replace").split("\n")]


def test_logs_are_listed_and_read_whole_from_an_offset_or_from_the_end(client: Client, world: World) -> None:
    world.logs = {("job-1.1", "stdout"): LOG, ("job-1.1", "stderr"): b""}
    assert client.logs("job-1")[1] == LogFile(task_id="job-1.1", stream="stderr", num_bytes=0)
    assert list(client.read_log("job-1", "job-1.1", "stdout")) == _lines(LOG)
    assert list(client.read_log("job-1", "job-1.1", "stdout", offset=len(LOG) - 3)) == _lines(LOG[-3:])
    assert list(client.read_log("job-1", "job-1.1", "stdout", tail=2)) == _lines(LOG)[-2:]
    assert list(client.read_log("job-1", "job-1.1", "stderr")) == []
    with pytest.raises(NotFound, match="no log 'stdin'"):
        list(client.read_log("job-1", "job-1.1", "stdin"))


@pytest.mark.parametrize("tail", [0, 1, 2, 4000, 5000, 5001, 9999])
def test_following_from_the_end_starts_at_the_right_line(client: Client, world: World, tail: int) -> None:
    world.logs = {("job-1.1", "stdout"): LOG}
    expected = _lines(LOG)[-tail:] if tail else []
    assert list(client.read_log("job-1", "job-1.1", "stdout", tail=tail, follow=True)) == expected


def test_following_goes_on_at_the_byte_where_the_connection_broke(client: Client, world: World) -> None:
    world.logs = {("job-1.1", "stdout"): LOG}
    world.cut_after = [1, 500, 11]
    assert list(client.read_log("job-1", "job-1.1", "stdout", follow=True)) == _lines(LOG)


def _tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def test_results_are_unpacked_into_a_new_folder(client: Client, world: World, tmp_path: Path) -> None:
    world.results = {"job-1": _tar((tarfile.TarInfo("model/model.pt"), b"weights"))}
    to = tmp_path / "deep" / "out"
    assert client.result("job-1", to) == to
    assert (to / "model" / "model.pt").read_bytes() == b"weights"
    assert sorted(path.name for path in to.parent.iterdir()) == ["out"]


def test_results_never_overwrite_anything(client: Client, world: World, tmp_path: Path) -> None:
    world.results = {"job-1": _tar((tarfile.TarInfo("a"), b"new"))}
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("old")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Conflict, match="is not empty"):
        client.result("job-1", tmp_path / "full")
    with pytest.raises(Conflict, match="is no folder"):
        client.result("job-1", tmp_path / "full" / "a")
    client.result("job-1", tmp_path / "empty")
    assert (tmp_path / "full" / "a").read_text() == "old"
    assert (tmp_path / "empty" / "a").read_text() == "new"


def _link(kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo("link")
    member.type, member.linkname = kind, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    "archive",
    [
        _tar((tarfile.TarInfo("fine"), b"x"), (_link(tarfile.SYMTYPE), b"")),
        _tar((_link(tarfile.LNKTYPE), b"")),
        _tar((_link(tarfile.FIFOTYPE), b"")),
        _tar((tarfile.TarInfo("../out"), b"x")),
        _tar((tarfile.TarInfo("/tmp/out"), b"x")),
        _tar((tarfile.TarInfo("whole"), bytes(range(256)) * 40))[:-90],
        b"no archive",
    ],
    ids=["symbolic link", "hard link", "pipe", "outside", "absolute", "cut off", "no archive"],
)
def test_results_that_cannot_be_trusted_leave_nothing_behind(
    client: Client, world: World, tmp_path: Path, archive: bytes
) -> None:
    world.results = {"job-1": archive}
    with pytest.raises(InternalError, match="archive of results"):
        client.result("job-1", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_results_that_are_not_there_are_told(client: Client, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no results yet"):
        client.result("job-1", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
