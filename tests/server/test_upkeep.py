"""Retention over REST: rules, dry runs, and what a clean-up leaves alone."""

import io
import tarfile
from dataclasses import replace
from pathlib import Path

from tests.contracts.store import a_job, a_metric
from tests.server.conftest import Served

from pliant.control.upkeep.cleanup import Upkeep
from pliant.core.access import Role
from pliant.core.job import JobId
from pliant.core.lifecycle import JobState
from pliant.core.ports import EventFilter, Writes
from pliant.core.upkeep import Material, Rule

DAY_S = 86_400.0


def ended(server: Served, number: int, *, days_ago: float, state: JobState = JobState.COMPLETED) -> Path:
    """Put a job with something of everything into the store and on disk; return its result folder."""
    at = server.clock.now()
    spec = replace(a_job().spec, weights=None, resume_from=None)
    job = replace(a_job(f"job-{number}", state=state), spec=spec)
    if state in (JobState.COMPLETED, JobState.FAILED):
        job = replace(job, ended_at=at - days_ago * DAY_S)
    server.store.write(Writes(jobs=(job,), metrics=tuple(a_metric(i, job_id=job.id) for i in range(40))))
    result = server.home / "jobs" / job.id / "result"
    for name in ("log/t/stdout", "checkpoint/step-1.ckpt", "model/model.pt", "note.txt"):
        (result / name).parent.mkdir(parents=True, exist_ok=True)
        (result / name).write_bytes(b"x" * 100)
    return result


def names(result: Path) -> set[str]:
    return {path.relative_to(result).as_posix() for path in result.rglob("*") if path.is_file()}


def fetched(server: Served, **params: str) -> dict[str, bytes]:
    answer = server.http.get("/jobs/job-1/result", params=params)
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        return {member.name: file.read() for member in tar if (file := tar.extractfile(member)) is not None}


def test_without_rules_nothing_is_removed(server: Served) -> None:
    result = ended(server, 1, days_ago=1000)
    assert server.http.get("/retention").json() == {"rules": [], "revision": 0}
    assert server.http.post("/cleanup").json()["removals"] == []
    assert len(names(result)) == 4


def test_a_dry_run_tells_and_a_clean_up_does(server: Served) -> None:
    old, new = ended(server, 1, days_ago=10), ended(server, 2, days_ago=1)
    running = ended(server, 3, days_ago=0, state=JobState.PAUSED)
    rules = [{"material": name, "max_age_days": 7} for name in ("logs", "metrics", "checkpoints")]
    put = server.http.put("/retention", json={"rules": rules})
    assert (put.status_code, put.headers["ETag"]) == (200, '"1"')
    told = server.http.post("/cleanup", params={"dry_run": True}).json()
    assert [(r["job_id"], r["material"], r["num_bytes"]) for r in told["removals"]] == [
        ("job-1", "checkpoints", 100),
        ("job-1", "logs", 100),
        ("job-1", "metrics", 4000),
    ]
    assert (told["dry_run"], told["num_bytes"], len(names(old))) == (True, 4200, 4)
    done = server.http.post("/cleanup").json()
    assert done["removals"] == told["removals"]
    assert done["failed"] == []
    assert names(old) == {"model/model.pt", "note.txt"}
    assert len(names(new)) == len(names(running)) == 4
    assert server.store.metrics(JobId("job-1")) == ()
    assert server.store.chart(JobId("job-1")) == ()
    assert len(server.store.metrics(JobId("job-2"))) == 40
    (event,) = [e for e in server.store.events(EventFilter()) if e.kind == "cleaned_up"]
    assert event.data["num_bytes"] == 4200
    assert server.http.post("/cleanup").json()["removals"] == []


def test_logs_that_were_removed_say_so(server: Served) -> None:
    ended(server, 1, days_ago=10)
    server.http.put("/retention", json={"rules": [{"material": "logs", "max_age_days": 7}]})
    assert server.http.get("/jobs/job-1/logs").status_code == 200
    server.http.post("/cleanup")
    answer = server.http.get("/jobs/job-1/logs")
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("the logs of job-1 were removed at ")
    assert answer.json()["detail"].endswith(" by the clean-up: its job ended 10.0 days ago; logs are kept for 7 days")
    (line,) = server.http.get("/jobs/job-1/files").json()["left_out"]
    assert line == f"log: removed at {answer.json()['detail'].partition(' removed at ')[2]}"
    assert fetched(server)["left-out.txt"] == f"{line}\n".encode()
    assert fetched(server, only="*.pt").keys() == {"model/model.pt"}
    (event,) = [e for e in server.store.events(EventFilter()) if e.kind == "cleaned_up"]
    assert event.message.startswith("the clean-up removed 1 thing of 1 ended job, ")


def test_what_cannot_be_removed_is_told_without_its_place(server: Served) -> None:
    result = ended(server, 1, days_ago=10)
    (result.parent / ".trash-left").write_text("a file, where a clean-up that was cut off has left a folder")
    server.http.put("/retention", json={"rules": [{"material": "logs", "max_age_days": 7}]})

    (failed,) = server.http.post("/cleanup").json()["failed"]

    assert failed == "the logs of job-1 could not be removed: Not a directory"


def test_what_an_unfinished_job_starts_from_stays(server: Served) -> None:
    result = ended(server, 1, days_ago=10)
    spec = replace(a_job().spec, weights=str(result / "model" / "model.pt"), resume_from=None)
    server.store.write(Writes(jobs=(replace(a_job("job-2", state=JobState.PENDING), spec=spec),)))
    server.http.put("/retention", json={"rules": [{"material": "results", "max_bytes": 0}]})
    assert server.http.post("/cleanup").json()["removals"] == []
    server.store.write(Writes(jobs=(replace(a_job("job-2", state=JobState.STOPPED), spec=spec, ended_at=1.0),)))
    assert [r["job_id"] for r in server.http.post("/cleanup").json()["removals"]] == ["job-1"]
    assert names(result) == {"log/t/stdout", "checkpoint/step-1.ckpt"}


def test_wrong_rules_are_all_named_and_two_people_do_not_overwrite_each_other(server: Served) -> None:
    wrong = [{"material": "logs"}, {"material": "dust", "max_age_days": -1}]
    answer = server.http.put("/retention", json={"rules": wrong})
    assert answer.status_code == 422
    assert {problem["field"] for problem in answer.json()["problems"]} == {
        "rules.0",
        "rules.1.material",
        "rules.1.max_age_days",
    }
    twice = [{"material": "logs", "max_age_days": 1}] * 2
    assert "two rules for logs" in server.http.put("/retention", json={"rules": twice}).json()["detail"]
    good = {"rules": [{"material": "logs", "max_age_days": 1}]}
    assert server.http.put("/retention", json=good).status_code == 200
    assert server.http.put("/retention", json=good, headers={"If-Match": '"1"'}).json()["revision"] == 2
    stale = server.http.put("/retention", json=good, headers={"If-Match": '"1"'})
    assert (stale.status_code, stale.json()["title"]) == (412, "Changed meanwhile")


def test_a_trial_of_a_search_that_goes_on_keeps_all(server: Served) -> None:
    results = [ended(server, number, days_ago=10) for number in (1, 2)]
    before = names(results[0])
    upkeep = Upkeep(
        store=server.store,
        records=server.store.records,
        clock=server.clock,
        settings=server.control.settings,
        trials=lambda: ["job-1"],
    )
    upkeep.change(tuple(Rule(material=material, max_bytes=0) for material in Material))
    upkeep.sweep(dry_run=False)
    assert (names(results[0]), names(results[1])) == (before, set())
    assert len(server.store.metrics(JobId("job-1"))) == 40


def test_a_training_of_a_model_keeps_all_but_its_checkpoints(server: Served) -> None:
    results = [ended(server, number, days_ago=10) for number in (1, 2)]
    upkeep = Upkeep(
        store=server.store,
        records=server.store.records,
        clock=server.clock,
        settings=server.control.settings,
        trainings=lambda: ["job-1"],
    )
    upkeep.change(tuple(Rule(material=material, max_bytes=0) for material in Material))
    upkeep.sweep(dry_run=False)
    assert names(results[0]) == {"log/t/stdout", "model/model.pt", "note.txt"}
    assert names(results[1]) == set()
    assert len(server.store.metrics(JobId("job-1"))) == 40


def audited(server: Served) -> list[tuple[str, str]]:
    """Return what the audit log holds, newest first: actions and targets."""
    return [(entry.action, entry.target) for entry in server.store.audit.entries()]


def test_old_entries_of_the_audit_log_go_and_that_is_an_entry(server: Served) -> None:
    for number in range(2):
        server.http.post(f"/jobs/job-{number}/stop")
    server.clock.advance(400 * DAY_S)
    server.http.put("/retention", json={"rules": [{"material": "audit", "max_age_days": 400}]})
    put = ("PUT /v1/retention", "")
    server.clock.advance(1.0)

    told = server.http.post("/cleanup", params={"dry_run": True}).json()
    why = "2 entries of the audit log are older than 400 days"
    assert told["removals"] == [{"job_id": None, "material": "audit", "num_bytes": 400, "why": why}]
    asked = ("POST /v1/cleanup", "")
    assert audited(server) == [asked, put, ("POST /v1/jobs/job-1/stop", ""), ("POST /v1/jobs/job-0/stop", "")]

    assert server.http.post("/cleanup").json()["removals"] == told["removals"]
    assert audited(server) == [asked, ("clean up", why), asked, put]
    (event,) = [e for e in server.store.events(EventFilter()) if e.kind == "cleaned_up"]
    assert event.message == "the clean-up removed old entries of the audit log, 400 bytes"
    assert server.http.post("/cleanup").json()["removals"] == []


def test_the_audit_log_is_kept_as_long_as_an_administrator_says(server: Served) -> None:
    audit, logs = {"material": "audit", "max_age_days": 400}, {"material": "logs", "max_age_days": 1}
    with server.client_of("olaf", Role.OPERATOR) as operator:
        refused = operator.put("/retention", json={"rules": [audit]})
        assert (refused.status_code, "administrators" in refused.json()["detail"]) == (403, True)
        assert server.http.put("/retention", json={"rules": [audit]}).status_code == 200
        assert operator.put("/retention", json={"rules": []}).status_code == 403
        assert operator.put("/retention", json={"rules": [audit, logs]}).status_code == 200
    by_size = server.http.put("/retention", json={"rules": [{"material": "audit", "max_bytes": 1}]})
    assert (by_size.status_code, "by age only" in by_size.json()["detail"]) == (422, True)
