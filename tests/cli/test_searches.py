"""The commands `searches …` and `best`: what they ask for, and what they show."""

import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.conftest import Run
from tests.tiny_searches import SETTINGS, SearchServer, page, search_server, trial, view

from pliant.api.searches import DecisionPage, SearchPage, TrialsRequest
from pliant.cli.searches.frame import Going, SearchFrame, draw_search
from pliant.cli.searches.searches import print_log
from pliant.core.errors import Problem
from pliant.core.population import Population
from pliant.core.search import Constraint, Decision, Objective, SearchState, TrialState


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as server:
        server.answer("GET /v1/searches/digits", view())
        server.answer("GET /v1/searches/digits/best", page(trial(4), trial(2, results=(0.75,))))
        yield server


def test_searches_are_listed_with_and_without_the_verb(run: Run, server: SearchServer) -> None:
    server.answer("GET /v1/searches", SearchPage(searches=(view(),), next=None))

    listed = run(server, "searches").out.splitlines()
    assert listed[0].split() == ["SEARCH", "STATE", "TRIALS", "BEST", "OF", "RAN", "LEFT", "OWNER"]
    assert listed[1].split() == ["digits", "running", "7/40", "0.5", "val_loss", "1m30s", "5m", "ada"]
    assert run(server, "searches", "list").out.splitlines() == listed
    assert json.loads(run(server, "searches", "--json").out)["searches"][0]["name"] == "digits"
    server.answer("GET /v1/searches", SearchPage(searches=(), next=None))
    assert run(server, "searches").out == "There are no searches yet; `pliant tune PATH` begins one.\n"


def test_a_search_is_shown(run: Run, server: SearchServer) -> None:
    shown = run(server, "searches", "show", "digits").out

    facts = dict(line.split(maxsplit=1) for line in shown.partition("\n\n")[0].splitlines())
    assert facts["parallel"] == "4 at most: with more tpe chooses worse, and each trial may take several slots"
    assert facts["trials"] == "7/40: 3 running, 2 paused, 7 completed"
    assert facts["best"] == "trial 4: 0.5 with lr=0.05 act=relu (job-14)"
    assert (facts["lr"], facts["act"]) == ("log:1e-05..0.1", "choice:relu,gelu")
    assert facts["objective"] == "val_loss:minimize"
    assert shown.splitlines()[-1].split() == ["2", "completed", "0.75", "2", "0.03", "relu", "job-12"]
    assert json.loads(run(server, "searches", "show", "digits", "--json").out)["settings"]["max_trials"] == 40
    assert run(server, "searches", "show", "other").code == 3


def test_trials_are_listed_by_state(run: Run, server: SearchServer) -> None:
    reason = "0.9 is not among the best 3 of 9\nwhat else it printed"
    pruned = trial(1, state=TrialState.PRUNED, reason=reason, values={"lr": 1e-05})
    server.answer("GET /v1/searches/digits/trials", page(pruned))

    listed = run(server, "searches", "trials", "digits", "--state", "pruned,failed").out.splitlines()
    assert listed[0].split() == ["TRIAL", "STATE", "val_loss", "AT", "lr", "act", "JOB", "WHY"]
    assert listed[1].split(maxsplit=7) == [
        *("1", "pruned", "0.5", "2", "1e-05", "–", "job-11"),
        "0.9 is not among the best 3 of 9",
    ]
    assert len(listed) == 2
    assert server.asked[-1].query["state"] == ["pruned", "failed"]
    wrong = run(server, "searches", "trials", "digits", "--state", "done")
    assert "--state: 'done' is no state of a trial; give one of running, paused" in wrong.err


def test_trials_of_a_population_say_from_which_they_go_on(run: Run, server: SearchServer) -> None:
    settings = replace(SETTINGS, population=Population(size=8, every=3, max=27))
    server.answer("GET /v1/searches/digits", view(settings=settings))
    server.answer("GET /v1/searches/digits/trials", page(trial(1), trial(9, parent=1, parent_epoch=6)))

    listed = run(server, "searches", "trials", "digits").out.splitlines()
    assert listed[0].split()[:5] == ["TRIAL", "STATE", "val_loss", "EPOCH", "FROM"]
    assert [line.split()[4:7] for line in listed[1:]] == [["–", "0.02", "relu"], ["1", "at", "6"]]
    server.answer("GET /v1/searches/digits/best", page(trial(9, parent=1, parent_epoch=6)))
    server.answer("GET /v1/searches/digits/trials/1", trial(1, values={"lr": 0.02}))
    shown = run(server, "searches", "show", "digits").out
    assert "8:3..27, fraction=0.25, factor=1.2, resample=0.25" in shown
    schedule = shown.partition("Schedule of the best\n")[2].splitlines()
    assert [line.split() for line in schedule] == [
        ["EPOCHS", "TRIAL", "lr", "act"],
        ["1–6", "1", "0.02", "–"],
        ["7–end", "9", "0.1", "relu"],
    ]


def test_the_best_are_listed(run: Run, server: SearchServer) -> None:
    listed = run(server, "searches", "best", "digits", "--limit", "2").out.splitlines()

    assert [line.split()[0] for line in listed] == ["TRIAL", "4", "2"]
    assert server.asked[-1].query == {"limit": ["2"]}


def test_a_search_is_changed_stopped_resumed_and_forgotten(run: Run, server: SearchServer) -> None:
    server.answer("PATCH /v1/searches/digits", view())
    server.answer("POST /v1/searches/digits/stop", view(state=SearchState.STOPPED))
    server.answer("POST /v1/searches/digits/resume", view())
    server.answer("DELETE /v1/searches/digits", 204)

    changed = run(server, "searches", "set", "digits", "--max-trials", "100", "--parallel", "off", "--max-time", "2h")
    assert changed.out == "digits is changed; it is running\n"
    assert server.sent("PATCH /v1/searches/digits") == [{"max_trials": 100, "parallel": None, "max_time_s": 7200.0}]
    assert "'many' is no whole number" in run(server, "searches", "set", "digits", "--max-trials", "many").err
    assert "nothing to change" in run(server, "searches", "set", "digits").err
    stopped = run(server, "searches", "stop", "digits").out
    assert stopped == "digits is stopped; `pliant searches resume digits` lets it go on\n"
    assert run(server, "searches", "resume", "digits").out == "digits is running\n"
    assert run(server, "searches", "remove", "digits").out == "digits is forgotten\n"


def test_values_of_ones_own_are_added(run: Run, server: SearchServer, tmp_path: Path) -> None:
    route = "POST /v1/searches/digits/trials"
    server.answer(route, view())
    added = run(server, "searches", "add", "digits", "--param", "lr=0.01", "--param", "layers=[64,64]")
    assert added.out == "digits: it is tried next\n"
    file = tmp_path / "values.json"
    file.write_text('[{"lr": 0.1}, {"act": "gelu"}]')
    assert run(server, "searches", "add", "digits", str(file)).out == "digits: these 2 are tried next\n"

    bodies = [TrialsRequest.model_validate(one).trials for one in server.sent(route)]
    assert bodies == [({"lr": 0.01, "layers": (64, 64)},), ({"lr": 0.1}, {"act": "gelu"})]
    for text in ("[1]", "{", '"a"'):
        file.write_text(text)
        assert run(server, "searches", "add", "digits", str(file)).code == 2
    assert "give values, or a file" in run(server, "searches", "add", "digits").err
    wrong = Problem(field="trials.0.lr", message="7 is not from 0 to 1")
    server.answer(route, (422, (wrong,)))
    assert "--param lr: 7 is not from 0 to 1" in run(server, "searches", "add", "digits", "--param", "lr=7").err
    file.write_text('{"lr": 7}')
    assert "trials.0.lr: 7 is not from 0 to 1" in run(server, "searches", "add", "digits", str(file)).err
    twice = run(server, "searches", "add", "digits", "--param", "lr=1", "--param", "lr=2")
    assert "--param: 'lr' is given twice" in twice.err


def test_decisions_are_printed_with_their_reasons(run: Run, server: SearchServer) -> None:
    made = [
        Decision(search="digits", position=1, at=0.0, kind="ask", trial=0, reason="the sampler chose lr=0.1"),
        Decision(search="digits", position=2, at=0.0, kind="end", trial=None, reason="40 trials have ended"),
    ]
    first, rest = DecisionPage(decisions=tuple(made), last=2), DecisionPage(decisions=(), last=2)
    server.answer("GET /v1/searches/digits/decisions", first, rest)

    lines = run(server, "searches", "log", "digits").out.splitlines()
    assert [line.split(maxsplit=5)[-3:] for line in lines[1:]] == [
        ["ask", "0", "the sampler chose lr=0.1"],
        ["end", "–", "40 trials have ended"],
    ]


def test_the_best_trial_is_fetched_with_its_values(run: Run, server: SearchServer, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("model/model.pt")
        member.size = 7
        tar.addfile(member, io.BytesIO(b"weights"))
    server.answer("GET /v1/jobs/job-14/result", packed.getvalue())

    done = run(server, "best", "digits", "--output", str(tmp_path / "best"))

    assert done.out.startswith("trial 4 of digits (job-14): 0.5 with lr=0.05 act=relu\n")
    assert (tmp_path / "best" / "model" / "model.pt").read_bytes() == b"weights"
    assert json.loads((tmp_path / "best" / "parameters.json").read_text()) == {"lr": 0.05, "act": "relu"}


def test_a_search_without_a_best_trial_says_so(run: Run, server: SearchServer) -> None:
    two = (*SETTINGS.objectives, Objective(metric="size", direction="minimize"))
    server.answer("GET /v1/searches/digits", view(best=None), view(settings=_with(two), best=None))

    assert "no trial of digits has completed yet" in run(server, "best", "digits").err
    several = run(server, "best", "digits")
    assert (several.code, "no trial of it is simply the best" in several.err) == (5, True)


def test_a_search_shows_who_violates_its_constraints(run: Run, server: SearchServer) -> None:
    bounds = (Constraint(metric="memory", upper=8.0), Constraint(metric="acc", lower=0.9))
    settings = replace(SETTINGS, constraints=bounds)
    server.answer("GET /v1/searches/digits", view(settings=settings, best=None, nearest=3))
    server.answer("GET /v1/searches/digits/best", page())
    tried = (trial(0, violations=(1.5, -0.1)), trial(1, violations=(0.0, 0.0)), trial(2, violations=(inf, 0.25)))
    server.answer("GET /v1/searches/digits/trials", page(*tried, trial(4, state=TrialState.RUNNING)))
    none = "no trial keeps memory<=8 and acc>=0.9; trial 3 is nearest"

    facts = dict(line.split(maxsplit=1) for line in run(server, "searches", "show", "digits").out.splitlines())
    assert (facts["best"], facts["constraints"]) == (none, "memory<=8, acc>=0.9")
    assert run(server, "searches", "best", "digits").out == f"N{none[1:]}.\n"
    fetched = run(server, "best", "digits")
    assert (fetched.code, f"digits has no best trial: {none}" in fetched.err) == (5, True)
    head, *rows = run(server, "searches", "trials", "digits").out.splitlines()
    at = head.index("VIOLATES")
    assert [row[at : at + 24].rstrip() for row in rows] == [
        "memory<=8 by 1.5",
        "nothing",
        "memory<=8, acc>=0.9 by 0",
        "–",
    ]


def _with(objectives: tuple[Objective, ...]) -> object:
    return type(SETTINGS)(parameters=SETTINGS.parameters, objectives=objectives, max_trials=40)


def test_a_frame_fits_its_screen_and_shows_who_trains_and_the_best() -> None:
    going = tuple(Going(trial=trial(number, state=TrialState.RUNNING, results=None), job=None) for number in range(50))
    frame = SearchFrame(view=view(), going=going, best=(trial(4), trial(2)))
    screen = Console(width=80, height=24, file=io.StringIO(), color_system=None)

    screen.print(draw_search(frame, width=80, height=24))
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]

    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("digits is running, 7/40 trials ended, 3 running")
    assert any(line.startswith("and ") and line.rstrip().endswith(" more") for line in lines)
    assert lines[-1].split() == ["2", "completed", "0.5", "2", "0.03", "relu", "job-12"]
    empty = Console(width=80, file=io.StringIO(), color_system=None)
    empty.print(draw_search(SearchFrame(view=view(), going=(), best=()), width=80, height=24))
    assert "No trial trains." in empty.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("is_terminal", "expected"), [(True, "\x1b[32mat 2\x1b[0m\ufffd[2J\n"), (False, None)])
def test_what_an_algorithm_printed_moves_no_cursor(is_terminal: bool, expected: str | None) -> None:
    printed = "\x1b[32mat 2\x1b[0m\x1b[2J\n"
    out = io.StringIO()
    out.isatty = lambda: is_terminal  # type: ignore[method-assign]

    print_log(printed, out)

    assert out.getvalue() == (expected or printed)
