"""A handle on a job, and how a client finds its server: as commands do."""

from pathlib import Path

import pytest
from tests.client.wires import answering
from tests.server.conftest import PASSWORD
from tests.server.played import Played

from pliant.client import Client, Forbidden, InvalidInput, JobRequest, JobState, NotFound, Unauthorized, Unavailable
from pliant.client.http.credentials import Login
from pliant.client.http.session import credentials


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Somebody whose environment names no server, and who has no login; their home folder."""
    for name in ("PLIANT_URL", "PLIANT_TOKEN", "PLIANT_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PLIANT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_a_job_is_submitted_with_options_and_followed_by_its_handle(own: Client, pool: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    job = own.submit(str(tmp_path), max_tasks=2, args=["--lr", "0.1"], name="digits")
    assert job.spec == JobRequest(script="train.py", max_tasks=2, args=("--lr", "0.1"), name="digits").spec()
    assert list(job.lines()) == []
    pool.tick(1.0)
    pool.report(job.id)
    pool.print(job.show().tasks[0].id, "stdout", b"one\ntwo\n")
    assert (job.state, list(job.lines(tail=1))) == (JobState.RUNNING, ["two"])
    assert job.change(priority=9).priority == 9
    assert job.why().num_tasks == len(job.show().tasks)
    pool.measure(job.id, 0.5, 0.4)
    assert [point.value for point in job.series()] == [0.5, 0.4]
    pool.add_user("ben")
    assert job.share("ben").shared_with == ("ben",)
    pool.complete(job.id)
    assert job.wait(timeout_s=30).state is JobState.COMPLETED
    assert [event.data["to"] for event in job.events(follow=True) if event.kind == "job.state"][-1] == "completed"
    pool.save(job.id, "model/model.pt", b"weights")
    assert "model/model.pt" in [file.path for file in job.files().files]
    assert (job.result(str(tmp_path / "out")) / "model" / "model.pt").read_bytes() == b"weights"
    assert own.handle(job.id).state is JobState.COMPLETED
    job.delete()
    with pytest.raises(NotFound, match="job-1 was deleted by"):
        job.show()


def test_what_is_wrong_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    with answering() as url, Client(url, "t") as client:
        with pytest.raises(InvalidInput, match=r"say which file of .* \(it has no Python file at its top\)"):
            client.submit(tmp_path)
        (tmp_path / "train.py").write_text("")
        with pytest.raises(InvalidInput) as caught:
            client.submit(tmp_path, max_task=3, priority=0)
        assert {problem.field for problem in caught.value.problems} == {"max_task", "priority"}
        with pytest.raises(TypeError, match="not both"):
            client.submit(tmp_path, JobRequest(script="train.py"), max_tasks=2)


def test_a_handle_on_a_job_that_is_not_there(client: Client) -> None:
    with pytest.raises(NotFound, match="no job is named 'job-99'"):
        client.handle("job-99")


def test_a_client_finds_its_server_as_commands_do(nobody: Path, shown: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match="no server runs for"):
        Client.connect()
    with pytest.raises(Unauthorized, match="use `pliant login`"):
        Client.connect(shown.url)
    credentials().keep(Login(url=shown.url, name="admin", token=shown.token, expires_at=2e9))
    with Client.connect(f"{shown.url}/") as client:
        assert client.people.me().name == "admin"
    monkeypatch.setenv("PLIANT_URL", shown.url)
    with Client.connect() as client:
        assert client.healthy()
    with Client.connect(token="wrong") as client, pytest.raises(Unauthorized):
        client.jobs()
    with pytest.raises(Unauthorized, match="nobody is logged in at"):
        Client.connect("https://pool.example.org:7311")


def test_a_session_begins_with_a_password_that_never_passes_in_the_clear(nobody: Path, pool: Played) -> None:
    pool.add_user("ada")
    with Client.log_in("ada", PASSWORD, pool.url) as client:
        assert client.people.me().name == "ada"
        with pytest.raises(Forbidden):
            client.shutdown()
        client.people.log_off()
    assert credentials().find(pool.url) is None
    with pytest.raises(Unauthorized):
        Client.log_in("ada", "wrong", pool.url)
    with pytest.raises(InvalidInput, match="others could read your password"):
        Client.log_in("ada", PASSWORD, "http://pool.example.org:7311")


def test_a_folder_becomes_a_data_set_in_one_call(own: Client, tmp_path: Path) -> None:
    (tmp_path / "flowers").mkdir()
    (tmp_path / "flowers" / "a.txt").write_text("a")
    own.datasets.add_files(tmp_path / "flowers", "flowers")
    assert own.datasets.wait("flowers", timeout_s=50).state.value == "ready"
    with pytest.raises(InvalidInput, match="kind"):
        own.datasets.add_files(tmp_path / "flowers", "other", kind="videos")
