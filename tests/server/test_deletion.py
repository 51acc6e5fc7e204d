"""Deleting jobs over REST: who may, what goes with a job, and what is left of it for whom."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread

import httpx
import pytest
from tests.contracts.store import a_job, a_spec, an_array
from tests.server.conftest import wait_for
from tests.server.played import Played
from tests.server.test_models import add_model, add_template, train

from pliant.control.requests.sharing import JobShare
from pliant.core.access import Role
from pliant.core.job import DeletedJob, JobId
from pliant.core.lifecycle import JobState
from pliant.core.notice import Notice
from pliant.core.ports import EventFilter, Writes


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    played = Played(tmp_path_factory.mktemp("deleted"))
    yield played
    played.close()


@pytest.fixture
def ann(pool: Played) -> Iterator[httpx.Client]:
    with pool.client_of("ann") as client:
        yield client


def an_ended(pool: Played, owner: str = "ann", **changes: object) -> JobId:
    """Put a job that has ended into the store and on disk."""
    job_id = JobId(f"job-{pool.store.next_id('job')}")
    spec = replace(a_spec(), weights=None, resume_from=None, array=None)
    job = replace(a_job(job_id, state=JobState.COMPLETED), owner=owner, spec=spec, ended_at=2.0)
    pool.store.write(Writes(jobs=(replace(job, **changes),)))  # type: ignore[arg-type]
    pool.save(job_id, "model/model.pt", b"weights")
    return job_id


def test_a_deleted_job_is_there_for_nobody_and_its_owner_learns_why(pool: Played, ann: httpx.Client) -> None:
    job_id = an_ended(pool)
    pool.measure(job_id, 1.0, 2.0)
    assert ann.put(f"/jobs/{job_id}/shares", json={"shared_with": ["*"]}).is_success
    with pool.client_of("bob") as bob:
        assert bob.get(f"/jobs/{job_id}").status_code == 200
        assert bob.delete(f"/jobs/{job_id}").status_code == 403
        gone = ann.delete(f"/jobs/{job_id}")
        assert (gone.status_code, gone.content) == (204, b"")
        strange = bob.get(f"/jobs/{job_id}")
        assert (strange.status_code, strange.json()["detail"]) == (
            404,
            f"no job is named '{job_id}'; list them to see which there are",
        )
        assert all(job["id"] != job_id for job in bob.get("/jobs").json()["jobs"])
        assert all(event["job_id"] != job_id for event in bob.get("/events").json()["events"])
    for client in (ann, pool.http):
        answer = client.get(f"/jobs/{job_id}")
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith(f"{job_id} was deleted by ann at ")
        for path in ("", "/stop", "/why", "/logs", "/result"):
            method = "POST" if path == "/stop" else "GET"
            assert client.request(method, f"/jobs/{job_id}{path}").status_code == 404
        assert client.delete(f"/jobs/{job_id}").status_code == 404
    assert not (pool.home / "jobs" / job_id).exists()
    assert pool.store.registry.get(JobShare, job_id) is None
    entry = pool.store.audit.entries(who="ann")
    assert [(one.action, one.status) for one in entry if "DELETE" in one.action] == [
        (f"DELETE /v1/jobs/{job_id}", 404),
        (f"DELETE /v1/jobs/{job_id}", 204),
    ], "the audit log stays"


def test_a_viewer_and_a_token_that_only_reads_delete_nothing(pool: Played, ann: httpx.Client) -> None:
    job_id = an_ended(pool, owner="eve")
    with pool.client_of("eve", Role.VIEWER) as eve:
        assert eve.delete(f"/jobs/{job_id}").status_code == 403
    assert ann.delete(f"/jobs/{job_id}").status_code == 404, "it is not theirs to see"
    with pool.client_of("olga", Role.OPERATOR) as olga:
        assert olga.delete(f"/jobs/{job_id}").status_code == 204


def test_a_job_that_runs_is_refused_and_its_message_at_the_end_goes_with_it(pool: Played) -> None:
    job_id = pool.add(webhook=f"http://{pool.address}/nobody", webhook_secret="s3cret-s3cret")
    refused = pool.http.delete(f"/jobs/{job_id}")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        f"{job_id} is running; stop it first, or wait for its end",
    )
    assert pool.store.registry.get(Notice, f"{job_id}.webhook") is not None
    pool.fail(job_id)
    assert pool.http.delete(f"/jobs/{job_id}").status_code == 204
    assert pool.store.registry.get(Notice, f"{job_id}.webhook") is None
    (left,) = pool.store.events(EventFilter(job_id=job_id))
    assert left.message == f"{job_id} was deleted by admin"


def test_the_training_of_a_model_is_kept(pool: Played) -> None:
    assert add_template(pool.http).is_success
    assert add_model(pool.http).is_success
    started = train(pool.http, name="first")
    assert started.is_success, started.text
    job_id = started.json()["job_id"]
    pool.tick(1.0)
    pool.fail(job_id)
    refused = pool.http.delete(f"/jobs/{job_id}")
    assert refused.status_code == 409
    assert refused.json()["detail"] == (
        f"{job_id} is the training 'first' of the model 'digits', which keeps its results; remove the training first"
    )
    assert pool.http.delete("/models/digits/trainings/first").status_code == 204
    assert pool.http.delete(f"/jobs/{job_id}").status_code == 204


def test_an_array_is_deleted_whole_or_not_at_all(pool: Played, ann: httpx.Client) -> None:
    members = [
        an_ended(pool, spec=replace(a_spec(), weights=None, resume_from=None, array=an_array("array-9", number)))
        for number in range(3)
    ]
    assert ann.delete("/arrays/array-9", params={}).status_code == 204
    assert ann.get("/arrays/array-9").status_code == 404
    assert all(not (pool.home / "jobs" / job_id).exists() for job_id in members)
    with pool.client_of("bob") as bob:
        an_ended(pool, spec=replace(a_spec(), array=an_array("array-10")))
        assert bob.delete("/arrays/array-10").status_code == 404


def test_a_list_goes_on_behind_a_job_that_was_deleted_meanwhile(pool: Played, ann: httpx.Client) -> None:
    first, second, third = (an_ended(pool) for _ in range(3))
    page = ann.get("/jobs", params={"limit": 2}).json()
    assert page["next"] == second
    assert ann.delete(f"/jobs/{second}").status_code == 204
    rest = ann.get("/jobs", params={"limit": 2, "before": page["next"]}).json()
    assert rest["jobs"][0]["id"] == first
    assert ann.get("/jobs", params={"before": "job-9999"}).status_code == 404
    assert ann.get(f"/jobs/{third}").status_code == 200


def test_the_upkeep_goes_on_with_what_a_killed_server_left(pool: Played) -> None:
    upkeep, job_id = pool.app.state.context.upkeep, an_ended(pool)
    gone = DeletedJob(id=job_id, owner="ann", deleted_at=3.0, deleted_by="ann")
    pool.store.write(Writes(deleted=(gone,)))
    (pool.home / "jobs" / ".trash-abc" / "0").mkdir(parents=True)
    thread = Thread(target=upkeep.run)
    thread.start()
    wait_for(lambda: not pool.store.deleted_jobs())
    upkeep.close()
    thread.join(30)
    assert not (pool.home / "jobs" / job_id).exists()
    assert not list((pool.home / "jobs").glob(".trash-*"))
