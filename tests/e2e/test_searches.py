"""Searches over real processes: whatever is killed, the trials, their values and their results are the same."""

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.conftest import running
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

from pliant.api.jobs import JobRequest
from pliant.api.searches import SearchView
from pliant.client import Client
from pliant.core.job import Job, JobId
from pliant.core.search import Trial
from pliant.core.space import arguments_of
from pliant.policy.tuning.front import find_front

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

SCRIPT = HERE / "tuned.py"
NUM_TRIALS = 8
SPACE = {"lr": "log:1e-3..1", "width": "int:4..32"}
OPTIONS = {
    "metric": "val_loss",
    "max_trials": NUM_TRIALS,
    "parallel": 2,
    "halving": "1..4:2",
    "sampler": {"name": "tpe", "seed": 3, "options": {"n_startup_trials": 2}},
    "max_tasks": 2,
    "virtual_workers": 4,
}


@pytest.fixture(scope="module")
def calm(_pool: Pool) -> Iterator[SearchView]:
    """A search that nobody disturbs, begun as a person would."""
    running(_pool)
    space = [word for name, domain in SPACE.items() for word in ("--param", f"{name}={domain}")]
    sampler = ("--sampler", "tpe", "--seed", "3", "--sampler-option", "n_startup_trials=2")
    limits = ("--metric", "val_loss", "--max-trials", str(NUM_TRIALS), "--parallel", "2", "--halving", "1..4:2")
    tasks = ("--max", "2", "--virtual-workers", "4")
    _pool.cli("tune", str(SCRIPT), *space, *sampler, *limits, *tasks, "--name", "calm", "--wait")
    with _pool.client() as client:
        yield client.searches.get("calm")


def begin(client: Client, name: str, *args: str) -> None:
    client.tune(SCRIPT, parameters=SPACE, name=name, args=args, **OPTIONS)  # type: ignore[arg-type]


def outcome(client: Client, name: str) -> Sequence[tuple[Trial, str | None]]:
    """Return what became of all trials, with the digests of those that are complete."""
    return [
        (replace(trial, search="", job_id=JobId(""), begun_at=0.0, ended_at=None), digest_of(client, trial))
        for trial in client.searches.trials(name)
    ]


def digest_of(client: Client, trial: Trial) -> str | None:
    return client.job(trial.job_id).job.digest if trial.state == "completed" else None


def jobs_of(client: Client, name: str) -> list[str]:
    return sorted(job.spec.name for job in client.jobs(limit=1000).jobs if job.spec.name.startswith(f"{name}#"))


def alone(client: Client, trial: Trial) -> Job:
    """Train what a trial has trained, on one slot and for itself."""
    args = arguments_of(trial.values)
    job = client.submit(SCRIPT, JobRequest(script=SCRIPT.name, args=args, max_tasks=1, virtual_workers=4))
    return client.wait(job.id, timeout_s=60, poll_s=0.1)


def is_training(client: Client, name: str) -> bool:
    return any(
        job.progress is not None and job.progress.step > 0 and not job.ended
        for job in client.jobs(limit=1000).jobs
        if job.spec.name.startswith(f"{name}#")
    )


def decided(client: Client, name: str, kind: str, times: int = 1) -> bool:
    return sum(one.kind == kind for one in client.searches.decisions(name)) >= times


def test_a_server_that_is_killed_again_and_again_changes_nothing(
    pool: Pool, client: Client, calm: SearchView, pace: Pace
) -> None:
    begin(client, "killed", "--pace", str(pace))
    moments: Sequence[tuple[str, Callable[[], bool]]] = (
        ("trials train", lambda: is_training(client, "killed")),
        ("a rung is decided", lambda: decided(client, "killed", "promote")),
    )
    for what, moment in moments:
        pool.until(moment, what)
        pool.signal(signal.SIGKILL)
        pool.up()
    pace.set(0.0)
    search = client.searches.wait("killed", timeout_s=90, poll_s=0.2)

    assert (search.state, search.reason) == (calm.state, calm.reason)
    assert outcome(client, "killed") == outcome(client, "calm")
    assert jobs_of(client, "killed") == sorted(f"killed#{number}" for number in range(NUM_TRIALS))
    assert calm.best is not None
    assert alone(client, calm.best).digest == digest_of(client, calm.best)


def test_what_chooses_values_is_killed_and_another_one_chooses_the_same(
    pool: Pool, client: Client, calm: SearchView
) -> None:
    begin(client, "adviser")
    for num_asked in (2, 5):
        pool.until(lambda num=num_asked: decided(client, "adviser", "ask", num), "values were chosen")  # type: ignore[misc]
        for pid in advisers_of(pool):
            os.kill(pid, signal.SIGKILL)
    search = client.searches.wait("adviser", timeout_s=90, poll_s=0.2)

    assert (search.state, search.reason) == (calm.state, calm.reason)
    assert outcome(client, "adviser") == outcome(client, "calm")


def advisers_of(pool: Pool) -> list[int]:
    """Return the processes that choose values for a server."""
    assert pool.process is not None
    threads = Path(f"/proc/{pool.process.pid}/task").iterdir()
    children = [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
    return [pid for pid in children if b"pliant.entry.adviser" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_the_best_is_fetched_and_deployed_by_its_searchs_name(
    pool: Pool, client: Client, calm: SearchView, tmp_path: Path
) -> None:
    assert calm.best is not None
    pool.cli("best", "calm", "--output", str(tmp_path / "best"))
    fetched = json.loads((tmp_path / "best" / "parameters.json").read_text())
    pool.cli("deploy", "calm", "--name", "best-of-calm")
    try:
        (scores,) = client.endpoints.predict("best-of-calm", {"input": [[0.5] * 12, [-0.5] * 12]}).values()
    finally:
        client.endpoints.remove("best-of-calm")

    assert fetched == dict(calm.best.values)
    assert (tmp_path / "best" / "model" / "model.pt").exists()
    assert scores.shape == (2, 2)


WRONG = {
    "raises": (("--wrong", "raises"), "tuned.py raised LookupError: there is no data"),
    "silent": (("--wrong", "silent"), "it ended without a value of val_loss; it reported loss."),
    "deaf": (("--unknown",), "unrecognized arguments: --unknown"),
}
"""Scripts that cannot be tuned: their arguments, and what is said of them."""


def test_a_script_that_cannot_be_tuned_fails_its_search_with_one_message(client: Client) -> None:
    for name, (args, _) in WRONG.items():
        begin(client, name, *args)

    for name, (_, said) in WRONG.items():
        search = client.searches.wait(name, timeout_s=60, poll_s=0.2)
        assert search.state == "failed"
        assert search.reason.startswith("its first 2 trials failed alike, so it ends: ")
        assert said in search.reason
        assert len(search.reason.splitlines()) == 1


def test_several_objectives_within_a_bound_come_to_a_list_a_report_and_an_endpoint(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    space = ("--param", "lr=log:1e-3..1", "--param", "width=choice:4,8,16,32", "--param", "epochs=fixed:1")
    goals = ("--objective", "val_loss:minimize", "--objective", "size:minimize", "--constraint", "size<=300")
    sampler = ("--sampler", "nsga2", "--sampler-option", "population_size=4", "--max-trials", "6")
    pool.cli("tune", str(SCRIPT), *space, *goals, *sampler, "--name", "two", "--wait")
    trials = list(client.searches.trials("two"))
    kept = [one for one in trials if one.values["width"] != 32]
    assert [(one.state, len(one.results or ())) for one in trials] == [("completed", 2)] * 6
    assert {one.number for one in trials if one.is_feasible} == {one.number for one in kept}

    listed = pool.cli("searches", "best", "two").splitlines()[1:]
    first, *others = find_front(client.searches.get("two").settings.objectives, kept)
    assert [int(line.split()[0]) for line in listed] == [first.number, *(one.number for one in others)]
    assert "no trial of it is simply the best" in pool.cli("best", "two", code=5)
    pool.cli("searches", "report", "two", "--output", str(tmp_path / "report"))
    assert sorted(path.name for path in (tmp_path / "report").glob("*.png"))[0] == "history.png"
    pool.cli("deploy", first.job_id, "--name", "one-of-two")
    try:
        (scores,) = client.endpoints.predict("one-of-two", {"input": [[0.5] * 12]}).values()
    finally:
        client.endpoints.remove("one-of-two")
    assert scores.shape == (1, 2)
