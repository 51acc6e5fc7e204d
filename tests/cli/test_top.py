"""Searches in the live view and in `why`: what stands there, however narrow the terminal and many the trials."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from tests.cli.conftest import Run
from tests.contracts.store import a_job
from tests.tiny_searches import SearchServer, search_server, view

from pliant.api.job_views import JobPage, Why
from pliant.api.pool import ClusterView
from pliant.api.searches import SearchView, SearchWhy, TrialWhy
from pliant.cli.jobs.frame import View, draw
from pliant.cli.screen import console
from pliant.core.job import Job, JobId, Progress
from pliant.core.lifecycle import JobState
from pliant.core.plan import PolicyName
from pliant.core.search import SearchState
from pliant.core.trial_part import TrialPart

CLUSTER = ClusterView(version="0.1", policy=PolicyName.FAIRSHARE, nodes=(), slots=(), now=0.0)
PROGRESS = Progress(epoch=2, num_epochs=9, step=30, num_steps=90, samples=9, samples_per_s=9.0, eta_s=60.0)


def a_trial(number: int, search: str = "digits", *, num_slots: int = 2, hold: str = "") -> Job:
    """Return the job of a trial, which trains unless it is held."""
    job = a_job(f"job-{number + 10}", state=JobState.PAUSED if hold else JobState.RUNNING)
    part = TrialPart(search=search, number=number, values={"lr": 0.01 * number, "act": "relu"})
    spec = replace(job.spec, name=f"{search}#{number}", trial=part)
    return replace(job, spec=spec, num_slots=0 if hold else num_slots, hold=hold, progress=PROGRESS)


def drawn(jobs: Sequence[Job], *searches: SearchView, width: int = 120, height: int = 30) -> list[str]:
    """Return the lines of a frame."""
    screen = console()
    screen.width = width
    frame = View(cluster=CLUSTER, jobs=tuple(reversed(jobs)), searches=searches, events=(), url="http://pliant")
    with screen.capture() as captured:
        screen.print(draw(frame, width=width, height=height))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_trials_stand_below_their_search_and_other_jobs_apart() -> None:
    jobs = [a_job("job-3"), a_trial(1), a_trial(2, hold="it waits at rung 1 of 2"), a_trial(3, "gone")]
    lines = drawn(jobs, view())

    at = next(place for place, line in enumerate(lines) if line.startswith("SEARCH"))
    assert lines[at].split() == [
        *("SEARCH", "STATE", "SLOTS", "RUN", "PAUSED", "DONE", "PROGRESS", "BEST", "LEFT", "OWNER", "VALUES"),
    ]
    assert lines[at + 1].split() == [
        *("digits", "running", "2", "3", "2", "7/40", "██░░░░░░░░", "18%", "0.5", "5m", "ada", "best:", "lr=0.05"),
        "act=relu",
    ]
    assert lines[at + 2].split() == [
        *("job-11", "#1", "running", "2", "2/9", "███░░░░░░░", "33%", "1m00s", "lr=0.01", "act=relu"),
    ]
    assert lines[at + 3] == ""
    below = [line.split()[0] for line in lines[at + 5 : at + 7]]
    assert below == ["job-13", "job-3"], "a trial whose search is not there is a job as others are"


def test_of_many_trials_five_are_shown_those_with_slots_first() -> None:
    jobs = [a_trial(number, num_slots=number % 2) for number in range(12)]
    lines = drawn(jobs, view(), view(name="idle"))

    own = [line.split()[1] for line in lines if line.startswith("  job-")]
    assert own == ["#1", "#3", "#5", "#7", "#9"]
    assert "  … 7 more" in lines
    assert any(line.startswith("idle ") for line in lines)
    assert "No other job waits or runs." in lines


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (80, 16)])
def test_it_fits_its_screen(width: int, height: int) -> None:
    names = [f"a-search-of-some-length-{number}" for number in range(9)]
    jobs = [a_trial(number, names[number % 9]) for number in range(90)] + [a_job(f"job-{n}") for n in range(200, 230)]
    lines = drawn(jobs, *(view(name=name) for name in names), width=width, height=height)

    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert any(line.startswith("a-search-of") for line in lines)
    assert any(line.startswith("and ") for line in lines)


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as server:
        yield server


WHY = SearchWhy(
    name="digits",
    state=SearchState.RUNNING,
    num_slots=4,
    sentences=("2 trials train or wait for slots, of 2 that may at once: that is its limit.", "Nobody waits."),
    trials=(
        TrialWhy(number=3, job_id=JobId("job-13"), job_state=JobState.RUNNING, num_slots=4, sentence="4 of 4 slots"),
        TrialWhy(number=4, job_id=JobId("job-14"), job_state=None, num_slots=0, sentence="its job is not queued yet"),
    ),
)


def test_why_tells_of_a_search_and_each_of_its_trials(run: Run, server: SearchServer) -> None:
    server.answer("GET /v1/searches/digits", view())
    server.answer("GET /v1/searches/digits/why", WHY)
    server.answer("GET /v1/jobs", JobPage(jobs=(), next=None, total=0))

    said = run(server, "why", "digits").out.splitlines()
    assert said[0].startswith("digits is running, 7/40 trials ended, 3 running, 2 paused, about 5 min left, best 0.5")
    assert said[1:4] == ["Its trials hold 4 slots.", *WHY.sentences]
    assert [line.split(maxsplit=4) for line in said[6:]] == [
        ["TRIAL", "JOB", "STATE", "SLOTS", "WHY"],
        ["3", "job-13", "running", "4", "4 of 4 slots"],
        ["4", "job-14", "–", "0", "its job is not queued yet"],
    ]
    assert server.asked[1].query["trials"] == ["false"]
    assert run(server, "searches", "why", "digits").out.splitlines() == said
    assert json.loads(run(server, "why", "digits", "--json").out)["trials"][0]["num_slots"] == 4


def test_a_job_that_goes_on_is_meant_where_a_search_of_its_name_is_over(run: Run, server: SearchServer) -> None:
    job = replace(a_job("job-3"), spec=replace(a_job().spec, name="digits"))
    answer = Why(
        job_id="job-3", state="running", num_tasks=1, target_tasks=1, sentence="Yes.", history=(), search="x", trial=4
    )
    server.answer("GET /v1/jobs", JobPage(jobs=(job,), next=None, total=1))
    server.answer("GET /v1/jobs/job-3/why", answer)
    server.answer("GET /v1/searches/digits", view())

    unclear = run(server, "why", "digits")
    assert unclear.code == 5
    assert "'digits' is a search, and job-3; give that id, or use `pliant searches why digits`" in unclear.err
    server.answer("GET /v1/searches/digits", view(state=SearchState.COMPLETED))
    assert run(server, "why", "digits").out.splitlines() == [
        "job-3 (trial 4 of the search x) is running with 1 task.",
        "Yes.",
        "`pliant why x` tells how its search stands.",
    ]


def test_trials_are_left_out_of_a_list_or_asked_for(run: Run, server: SearchServer) -> None:
    server.answer("GET /v1/jobs", JobPage(jobs=(), next=None, total=0))

    assert "No such job waits or runs" in run(server, "ps", "--no-trials").out
    assert run(server, "ps", "--all", "--search", "digits,other").out == "There is no such job.\n"
    assert [(one.query.get("trials"), one.query.get("search")) for one in server.asked] == [
        (["false"], None),
        (None, ["digits,other"]),
    ]
    both = run(server, "ps", "--no-trials", "--search", "digits")
    assert both.code == 2
    assert "--no-trials: --search asks for trials of digits; leave one or the other out" in both.err
