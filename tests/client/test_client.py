"""The client against the real server over a played cluster; what only a broken server does comes over `wires`."""

import gc
import io
import math
import socket
import ssl
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.client.wires import Cutter, answering
from tests.server.played import PROGRESS, Played

from pliant.api.arrays import ArrayRequest
from pliant.api.job_views import JobDetail, LogFile
from pliant.api.jobs import JobPatch, JobRequest
from pliant.api.pool import SlotView
from pliant.client import Client
from pliant.client.http.connection import Connection
from pliant.client.http.patience import Patience
from pliant.client.http.stream import stream_events
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
from pliant.core.event import EventKind
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState
from pliant.core.ports import EventFilter

JOB = JobId("job-1")


def test_questions_come_back_as_nouns(client: Client, shown: Played) -> None:
    store = shown.store
    detail = JobDetail(job=shown.job(JOB), tasks=store.tasks(JOB), generations=store.generations(JOB))
    assert client.job(JOB) == detail
    assert len(detail.tasks) == len(detail.generations) == 2
    assert client.events(after=3).events == store.events(EventFilter(after=3))
    assert client.events(job_id="job-2", limit=1).events == store.events(EventFilter(job_id=JobId("job-2"), limit=1))
    assert client.usage(since=1000.5).points == store.usage(since=1000.5) != ()
    assert client.cluster().slots[1] == SlotView(node_id="local", slot=1, taken=True, job_id=JOB, task_id="job-1.2")
    assert client.why(JOB).num_tasks == 2
    assert client.healthy()


def test_series_are_read_by_name_and_step(client: Client, shown: Played) -> None:
    shown.measure("job-2", 0.5, 0.4)
    shown.measure("job-2", 0.9, name="accuracy")
    found = client.metrics("job-2", names=["loss"], after_step=1).points
    assert found == shown.store.metrics(JobId("job-2"), names=["loss"], after_step=1)
    assert [(point.name, point.value) for point in found] == [("loss", 0.4)]


def test_jobs_are_paged_and_filtered(own: Client, pool: Played) -> None:
    pool.add()
    pool.fail(pool.add())
    pool.add()
    first = own.jobs(limit=2)
    assert ([job.id for job in first.jobs], first.next) == (["job-3", "job-2"], "job-2")
    assert [job.id for job in own.jobs(before=first.next).jobs] == ["job-1"]
    assert [job.id for job in own.jobs(states=[JobState.FAILED, JobState.PAUSED]).jobs] == ["job-2"]
    own.change("job-2", JobPatch(tags={"lr": 0.1, "best": ""}))
    assert [job.tags for job in own.jobs(tags=["lr=0.1", "best"], states=["ended"]).jobs] == [{"lr": "0.1", "best": ""}]
    assert own.jobs(tags=["lr=0.2"], owners="admin", queues=["default"]).jobs == ()
    assert [job.id for job in own.jobs(states="failed,paused").jobs] == ["job-2"]
    with pytest.raises(InvalidInput, match="no queue 'defautl'"):
        own.jobs(queues=["defautl"])


def test_a_job_and_an_array_are_deleted(own: Client, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    array = own.arrays.submit(tmp_path, ArrayRequest(script="train.py", array={"lr": (1, 2)}, tags={"sweep": 1}))
    assert [job.tags for job in array.jobs] == [{"sweep": "1"}] * 2
    job_id = pool.add()
    with pytest.raises(Conflict, match="job-3 is running; stop it first"):
        own.delete(job_id)
    for one in ("job-1", "job-2", job_id):
        pool.fail(one)
    own.delete(job_id)
    own.arrays.delete(array.id)
    assert own.jobs().jobs == ()


def test_a_folder_is_submitted_with_its_request(own: Client, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "model.py").write_text("x = 1")
    request = JobRequest(script="train.py", args=("--lr", "0.1"), max_tasks=4, env={"A": "b"})
    job = own.submit(tmp_path, request)
    assert (job.id, job.state, job.spec) == (JOB, JobState.PENDING, request.spec())
    assert pool.code(JOB) == {"train.py": "print(1)", "net/model.py": "x = 1"}


def test_a_script_that_is_not_in_the_folder_is_refused_before_uploading(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("")
    refusal = r"script: 'train.py' is not among the files .* there are other\.py"
    with answering() as url, Client(url, "t") as client, pytest.raises(InvalidInput, match=refusal):
        client.submit(tmp_path, JobRequest(script="train.py"))


def test_a_job_is_changed_and_stopped(own: Client, pool: Played) -> None:
    pool.add(min_tasks=1, max_tasks=2)
    assert own.change(JOB, JobPatch(priority=10_000)).priority == 10_000
    assert own.change(JOB, JobPatch(min_tasks=1, max_tasks=3)).max_tasks == 3
    assert own.stop(JOB).state is JobState.STOPPING
    pool.until_ended(JOB)
    assert own.wait(JOB, timeout_s=30.0).state is JobState.STOPPED
    own.shutdown()
    assert pool.num_shutdowns == 1


def test_waiting_has_a_deadline(client: Client) -> None:
    with pytest.raises(TimeoutError, match=r"job-1 has not ended after 0\.02 s; it is running"):
        client.wait(JOB, timeout_s=0.02, poll_s=0.01)


def test_waiting_bears_a_server_that_is_away_for_a_moment(shown: Played) -> None:
    ended = shown.http.get("/jobs/job-2").content
    with answering((503, "starting"), (503, "starting"), (200, ended)) as url, Client(url, "t") as client:
        assert client.wait("job-2", timeout_s=30.0).state is JobState.FAILED


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
def test_a_status_becomes_the_error_it_stands_for(status: int, error: type[Exception]) -> None:
    details = f'{{"title": "t", "status": {status}, "detail": "what to do"}}'
    with answering((status, details), (status, "<html>oops")) as url, Client(url, "t") as client:
        with pytest.raises(error, match="what to do"):
            client.cluster()
        with pytest.raises(error, match="oops"):
            client.cluster()


def test_invalid_input_keeps_every_problem() -> None:
    problems = '[{"field": "a", "message": "too small"}, {"field": "b", "message": "not a number"}]'
    details = f'{{"title": "t", "status": 422, "detail": "d", "problems": {problems}}}'
    with answering((422, details)) as url, Client(url, "t") as client, pytest.raises(InvalidInput) as caught:
        client.cluster()
    assert caught.value.problems == (
        Problem(field="a", message="too small"),
        Problem(field="b", message="not a number"),
    )


def test_unknown_job_wrong_token_and_ended_job_are_told_apart(client: Client) -> None:
    with pytest.raises(NotFound, match="no job is named 'job-77'"):
        client.job("job-77")
    with Client(client.url, "wrong") as stranger, pytest.raises(Unauthorized, match="token"):
        stranger.jobs()
    with pytest.raises(Conflict, match="has already failed"):
        client.change("job-2", JobPatch(priority=1))


def test_an_answer_of_another_shape_is_told() -> None:
    told = "GET /v1/jobs is not what this client understands"
    with answering((200, '{"jobs": 3}')) as url, Client(url, "t") as client, pytest.raises(InternalError, match=told):
        client.jobs()


def test_a_training_that_diverged_can_still_be_shown(own: Client, pool: Played) -> None:
    metrics = {"perplexity": math.inf, "accuracy": 0.5}
    pool.report(pool.add(), replace(PROGRESS, samples_per_s=math.inf, loss=math.nan, metrics=metrics))
    pool.measure(JOB, math.nan, 0.5)
    found = own.job(JOB).job.progress
    assert found is not None
    assert repr(found.metrics) == "{'perplexity': nan, 'accuracy': 0.5}"
    assert math.isnan(found.samples_per_s)
    assert len(own.jobs().jobs) == 1
    assert [repr(point.value) for point in own.metrics(JOB).points] == ["nan", "0.5"]


def test_a_job_id_cannot_lead_to_another_route(client: Client) -> None:
    with pytest.raises(NotFound):
        client.job("../cluster?x=")


def test_the_certificates_that_this_machine_trusts_are_not_read_for_a_server_without_tls() -> None:
    def holding() -> set[int]:
        contexts = [found for found in gc.get_objects() if issubclass(type(found), ssl.SSLContext)]
        return {id(context) for context in contexts if context.cert_store_stats()["x509"]}

    before = holding()
    with Client("http://127.0.0.1:1", "t"):
        assert holding() <= before
    with Client("https://127.0.0.1:1", "t"):
        assert len(holding() - before) == 1


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


def test_a_home_names_its_server_or_says_that_none_runs(shown: Played, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=rf"no server runs for {tmp_path}; start one with `pliant up`"):
        Client.from_home(tmp_path)
    (tmp_path / "server.json").write_text(f'{{"url": "{shown.url}", "pid": 1, "started_at": 3.5}}')
    with pytest.raises(Unavailable, match="token cannot be read"):
        Client.from_home(tmp_path)
    (tmp_path / "token").write_text(f"{shown.token}\n")
    with Client.from_home(tmp_path) as client:
        assert len(client.jobs().jobs) == 2
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


def test_the_stream_gives_every_event_once_though_it_breaks(shown: Played) -> None:
    events = shown.store.events(EventFilter())
    with (
        closing(Cutter(shown.port, [600, 1, 1500, 2000], of_answers=True)) as cutter,
        Client(cutter.url, shown.token) as client,
    ):
        stream = client.stream(after=0)
        assert tuple(next(stream) for _ in events) == events
        assert cutter.cuts == []
        stream.close()  # type: ignore[attr-defined]


def test_a_stream_without_a_number_begins_now(own: Client, pool: Played) -> None:
    pool.submit()
    stream = own.stream()
    pool.submit()
    event = next(stream)
    assert (event.kind, event.job_id) == (EventKind.JOB_SUBMITTED, "job-2")


def test_the_stream_of_one_job_starts_after_a_number(client: Client, shown: Played) -> None:
    first, *rest = shown.store.events(EventFilter(job_id=JobId("job-2")))
    stream = client.stream(after=first.seq, job_id="job-2")
    assert [next(stream) for _ in rest] == rest


def test_the_stream_gives_up_when_the_server_stays_away(shown: Played) -> None:
    pauses: list[float] = []
    cutter = Cutter(shown.port, [])
    connection = Connection(cutter.url, shown.token, 1.0)
    stream = stream_events(connection, after=0, job_id=None, patience=Patience(sleep=pauses.append))
    assert next(stream).seq == 1
    cutter.close()
    with pytest.raises(Unavailable, match="no server answers"):
        list(stream)
    assert pauses[:4] == [0.2, 0.4, 0.8, 1.6]
    assert len(pauses) == 9
    connection.close()


LOG = "".join(f"line {n} ü\u2028x\r\n" for n in range(1, 5001)).encode() + b"no end \xff"


def _lines(log: bytes) -> list[str]:
    return [line.removesuffix("\r") for line in log.decode("utf-8", "replace").split("\n")]


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server with one job, which has ended after it printed much."""
    pool = Played(tmp_path_factory.mktemp("logged"))
    pool.add()
    pool.print("job-1.1", "stdout", LOG)
    pool.print("job-1.1", "stderr", b"")
    pool.complete(JOB)
    yield pool
    pool.close()


def test_logs_are_listed_and_read_whole_from_an_offset_or_from_the_end(logged: Played) -> None:
    with Client(logged.url, logged.token) as client:
        assert client.logs(JOB)[0] == LogFile(task_id="job-1.1", stream="stderr", num_bytes=0)
        assert list(client.read_log(JOB, "job-1.1", "stdout")) == _lines(LOG)
        assert list(client.read_log(JOB, "job-1.1", "stdout", offset=len(LOG) - 3)) == _lines(LOG[-3:])
        assert list(client.read_log(JOB, "job-1.1", "stdout", tail=2)) == _lines(LOG)[-2:]
        assert list(client.read_log(JOB, "job-1.1", "stderr")) == []
        with pytest.raises(NotFound, match="no stream 'stdin'"):
            list(client.read_log(JOB, "job-1.1", "stdin"))


@pytest.mark.parametrize("tail", [0, 1, 2, 4000, 5000, 5001, 9999])
def test_following_from_the_end_starts_at_the_right_line(logged: Played, tail: int) -> None:
    expected = _lines(LOG)[-tail:] if tail else []
    with Client(logged.url, logged.token) as client:
        assert list(client.read_log(JOB, "job-1.1", "stdout", tail=tail, follow=True)) == expected


def test_following_goes_on_at_the_byte_where_the_connection_broke(logged: Played) -> None:
    with closing(Cutter(logged.port, [1, 500, 700, 30_011], of_answers=True)) as cutter:
        with Client(cutter.url, logged.token) as client:
            assert list(client.read_log(JOB, "job-1.1", "stdout", follow=True)) == _lines(LOG)
        assert cutter.cuts == []


def _tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def test_results_are_unpacked_into_a_new_folder(client: Client, tmp_path: Path) -> None:
    to = tmp_path / "deep" / "out"
    assert client.result(JOB, to) == to
    assert (to / "model" / "model.pt").read_bytes() == b"weights"
    assert sorted(path.name for path in to.parent.iterdir()) == ["out"]


def test_results_never_overwrite_anything(client: Client, tmp_path: Path) -> None:
    (tmp_path / "full" / "model").mkdir(parents=True)
    (tmp_path / "full" / "model" / "model.pt").write_text("old")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Conflict, match="is not empty"):
        client.result(JOB, tmp_path / "full")
    with pytest.raises(Conflict, match="is no folder"):
        client.result(JOB, tmp_path / "full" / "model" / "model.pt")
    client.result(JOB, tmp_path / "empty")
    assert (tmp_path / "full" / "model" / "model.pt").read_text() == "old"
    assert (tmp_path / "empty" / "model" / "model.pt").read_text() == "weights"


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
def test_results_that_cannot_be_trusted_leave_nothing_behind(tmp_path: Path, archive: bytes) -> None:
    told = "archive of results"
    with answering((200, archive)) as url, Client(url, "t") as client, pytest.raises(InternalError, match=told):
        client.result(JOB, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_results_that_are_not_there_are_told(client: Client, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no job is named 'job-77'"):
        client.result("job-77", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
