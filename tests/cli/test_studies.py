"""`searches export` and `tune --warm-start`: a search as a study of Optuna, and a study that a search begins with."""

import json
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import optuna
import pytest
from tests.cli.conftest import Run
from tests.optuna_storage import database
from tests.tiny_searches import SETTINGS, SearchServer, page, search_server, trial, view

from pliant.api.searches import SearchPage
from pliant.core.search import Constraint, TrialState

SPACE = ("--param", "lr=log:1e-5..0.1", "--param", "act=choice:relu,gelu")
WAY = ("--metric", "val_loss", "--max-trials", "4")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SearchServer]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print()\n")
    with search_server() as server:
        server.answer("GET /v1/searches/digits", view())
        server.answer("GET /v1/searches", SearchPage(searches=(), next=None))
        server.answer("POST /v1/searches", view())
        ended = (trial(0), trial(1, state=TrialState.PRUNED), trial(2, state=TrialState.FAILED, results=None))
        running = trial(3, state=TrialState.RUNNING, results=None, ended_at=None)
        server.answer("GET /v1/searches/digits/trials", page(*ended, running))
        yield server


def test_a_search_is_exported_and_another_one_begins_with_it(
    run: Run, server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds = (Constraint(metric="memory", upper=8.0), Constraint(metric="acc", lower=0.5))
    server.answer("GET /v1/searches/digits", view(settings=replace(SETTINGS, constraints=bounds)))
    (tried,) = server.answers["GET /v1/searches/digits/trials"]
    first, second, *others = tried.trials
    violate = (replace(first, violations=(-1.5, 0.25)), replace(second, violations=(inf, 0.0)))
    server.answer("GET /v1/searches/digits/trials", page(*violate, *others))
    exported = run(server, "searches", "export", "digits", "sqlite:///studies.db")

    assert exported.out == "sqlite:///studies.db holds the study digits: 4 trials\n"
    with database("sqlite:///studies.db") as storage:
        study = optuna.load_study(study_name="digits", storage=storage)
        assert [one.user_attrs["pliant:job"] for one in study.trials] == ["job-10", "job-11", "job-12", "job-13"]

        assert study.trials[0].constraints == {"memory<=8": -1.5, "acc>=0.5": 0.25}
        assert study.trials[1].constraints == {"memory<=8": inf, "acc>=0.5": 0.0}

    monkeypatch.setenv("STUDIES", "sqlite:///studies.db")
    start = (*SPACE, *WAY, "--warm-start", "env:STUDIES", "--study", "digits")
    begun = run(server, "tune", "train.py", *start, "--constraint", "acc>=0.75", "--constraint", "memory<=8")

    assert begun.code == 0, begun.err
    assert "note: it begins with 3 trials of the study digits" in begun.err
    assert "note: 1 trial of it had not ended" in begun.err
    known = server.sent("POST /v1/searches")[0]["known"]
    assert [one.get("state", "completed") for one in known] == ["completed", "pruned", "failed"]
    assert known[0] == {
        "values": {"lr": 0.01, "act": "relu"},
        "results": [0.5],
        "reports": [[1, 0.9], [2, 0.5]],
        "violations": [0.5, -1.5],
    }
    assert [one.get("violations") for one in known[1:]] == [[0.25, None], None]


def test_what_does_not_fit_is_left_out_and_said(run: Run, server: SearchServer) -> None:
    run(server, "searches", "export", "digits", "studies.journal", "--study", "own", "--json")
    narrow = ("--param", "lr=log:0.015..0.1", *SPACE[2:])

    begun = run(server, "tune", "train.py", *narrow, *WAY, "--warm-start", "studies.journal")

    assert "note: it begins with 2 trials of the study own" in begun.err
    assert "1 trial of it cannot be taken; the first: lr: 0.01 is not from 0.015 to 0.1" in begun.err


def test_what_is_wrong_is_said_where_it_was_typed(run: Run, server: SearchServer) -> None:
    run(server, "searches", "export", "digits", "studies.journal")
    start = ("--warm-start", "studies.journal")

    again = run(server, "searches", "export", "digits", "studies.journal")
    assert (again.code, "--study: studies.journal has a study 'digits' already" in again.err) == (2, True)
    assert "STORAGE: 'x.txt' names no storage" in run(server, "searches", "export", "digits", "x.txt").err
    assert "STORAGE: the variable 'NONE' is not set" in run(server, "searches", "export", "digits", "env:NONE").err
    other = run(server, "tune", "train.py", *SPACE, *WAY, "--maximize", *start)
    assert "--warm-start: the study 'digits' minimizes, and this search maximizes" in other.err
    none = run(server, "tune", "train.py", "--param", "n=int:1..3", *WAY, *start)
    assert "has 3 trials that have ended, and none fits; the first: n: it has no value" in none.err
    assert "--study: it names a study" in run(server, "tune", "train.py", *SPACE, *WAY, "--study", "digits").err
    assert server.sent("POST /v1/searches") == []


def test_no_password_gets_into_a_file(run: Run, server: SearchServer) -> None:
    url = "postgresql://me:secret@127.0.0.1:1/db"
    saved = run(server, "tune", "train.py", *SPACE, *WAY, "--warm-start", url, "--save", "a.yaml")
    assert (saved.code, "holds a password" in saved.err, "secret" in saved.err) == (2, True, False)
    assert not Path("a.yaml").exists()

    run(server, "tune", "train.py", *SPACE, *WAY, "--warm-start", "env:STUDIES", "--save", "a.yaml")
    assert "warm-start: env:STUDIES" in Path("a.yaml").read_text()

    exported = run(server, "searches", "export", "digits", url)
    assert exported.code == 2
    assert "secret" not in exported.err


def test_what_was_exported_is_said_as_json(run: Run, server: SearchServer) -> None:
    said = run(server, "searches", "export", "digits", "x.journal", "--json").out
    assert json.loads(said) == {"storage": "x.journal", "study": "digits", "num_trials": 4}
