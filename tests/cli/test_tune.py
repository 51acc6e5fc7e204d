"""`tune`: what it sends for what is typed or stands in a file, and what it says of what is wrong."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.cli.conftest import Run
from tests.tiny_searches import SearchServer, page, search_server, trial, view

from pliant.api.searches import SearchPage
from pliant.cli.commands import COMMANDS, Listed
from pliant.cli.jobs.job_schema import rows, schema
from pliant.cli.searches.search_file import SEARCH_KEYS
from pliant.core.search import SearchState, TrialState

PAGE = Path(__file__).parents[2] / "docs" / "tuning.md"
NOT_OF_SEARCHES = {"save", "_schema", "follow", "wait", "as_json"}
"""Parameters of `tune` that say what the command does, not what the search is."""
ROUTE = "POST /v1/searches"


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as server:
        server.answer(ROUTE, view())
        server.answer("GET /v1/searches", SearchPage(searches=(view(name="train"),), next=None))
        yield server


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script."""
    (tmp_path / "train.py").write_text("import pliant.train\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sent(server: SearchServer) -> dict[str, Any]:
    (body,) = server.sent(ROUTE)
    assert isinstance(body, dict)
    return body


def test_what_is_typed_is_sent(run: Run, server: SearchServer) -> None:
    done = run(
        server,
        *("tune", "train.py", "--param", "lr=log:1e-5..1e-1", "--param", "act=choice:relu,gelu"),
        *("--metric", "acc:max", "--maximize", "--max-trials", "81", "--max-time", "2h", "--max", "8"),
        *("--halving", "step:100..2700:3", "--brackets", "2", "--rung-size", "9", "--halving-order", "arrival"),
        *("--sampler", "random", "--seed", "7", "--sampler-option", "multivariate=true", "--pass-as", "config"),
        *("--share", "ada", "--target", "0.99", "--", "--epochs", "27"),
    )

    assert done.out == "search digits has begun; `pliant searches show digits` shows how it is\n"
    assert sent(server) == {
        "name": "train-2",
        "script": "train.py",
        "args": ["--epochs", "27"],
        "max_tasks": 8,
        "parameters": {
            "lr": {"kind": "float", "low": 1e-5, "high": 0.1, "log": True},
            "act": {"kind": "choice", "choices": ["relu", "gelu"]},
        },
        "objectives": [{"metric": "acc", "direction": "maximize", "reading": "max"}],
        "sampler": {"name": "random", "seed": 7, "options": {"multivariate": True}},
        "halving": {"resource": "step", "min": 100, "max": 2700, "size": 9, "brackets": 2, "order": "arrival"},
        "pass_as": ["config"],
        "max_trials": 81,
        "max_time_s": 7200.0,
        "target": 0.99,
        "shared_with": ["ada"],
    }


TYPED = ("tune", "train.py", "--param", "lr=log:1e-5..1e-1", "--metric", "loss")


def test_a_population_is_typed_as_a_text_with_options(run: Run, server: SearchServer) -> None:
    done = run(server, *TYPED, "--population", "8:3..27", "--population-option", "factor=1.5", "--sampler", "random")

    assert done.code == 0, done.err
    assert sent(server)["population"] == {"size": 8, "every": 3, "max": 27, "factor": 1.5}
    assert "max_trials" not in sent(server)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--population", "8:3"), "--population: '8:3' says no population; give its members"),
        (
            ("--population-option", "factor=2"),
            "--population-option: it says how a population changes; give --population",
        ),
        (
            ("--population", "8:3..27", "--population-option", "by=2"),
            "--population-option: there is no 'by'; there are: fraction, factor, resample",
        ),
        (("--population", "8:3..27", "--population-option", "factor=1"), "--population-option: "),
        (("--population", "8:27..27"), "--population every: the first decision would be at the end"),
        (("--population", "8:3..27", "--fixed", "2"), "population: a fixed job cannot pause"),
    ],
)
def test_what_is_wrong_with_a_population_is_said(
    run: Run, server: SearchServer, typed: tuple[str, ...], said: str
) -> None:
    done = run(server, *TYPED, *typed)

    assert said in " ".join(done.err.split())
    assert server.asked == []


def test_several_objectives_and_a_pruner_are_sent(run: Run, server: SearchServer) -> None:
    ways = ("--objective", "loss:minimize:min", "--objective", "size:minimize")
    run(server, "tune", "train.py", "--param", "n=int:1..8", *ways, "--max-trials", "4", "--name", "own")
    body = sent(server)
    assert body["name"] == "own"
    assert [one["metric"] for one in body["objectives"]] == ["loss", "size"]
    assert [one.path for one in server.asked] == ["/v1/searches"]

    server.asked.clear()
    pruned = ("--pruner", "percentile", "--pruner-option", "percentile=25.0")
    run(server, "tune", "train.py", "--param", "n=int:1..8", "--metric", "loss", *pruned, "--max-slot-hours", "2")
    assert sent(server)["pruner"] == {"name": "percentile", "options": {"percentile": 25.0}}


def test_bounds_are_typed_or_in_a_file(run: Run, server: SearchServer, folder: Path) -> None:
    bounds = ("--constraint", "memory_gb<=8", "--constraint", "acc:max>=0.9")
    (folder / "s.yaml").write_text(
        "path: train.py\nparameters: {n: 'int:1..8'}\nmetric: a\nmax-trials: 9\n"
        "constraints: [memory_gb<=8, acc:max>=0.9]\n"
    )
    wanted = [{"metric": "memory_gb", "upper": 8.0}, {"metric": "acc", "lower": 0.9, "reading": "max"}]

    run(server, "tune", "train.py", "--param", "n=int:1..8", "--metric", "a", "--max-trials", "9", *bounds)
    assert sent(server)["constraints"] == wanted
    server.asked.clear()
    assert run(server, "tune", "s.yaml").code == 0
    assert sent(server)["constraints"] == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--param: nothing may be chosen; give lr=log"),
        (("--param", "lr=1..2"), "--param: 'lr=1..2': '1..2' is no kind of parameter"),
        (("--param", "n=int:1..8", "--param", "n=int:1..9"), "--param: 'n' is given twice; give it once"),
        (("--param", "lr=log:1..0.1"), "--param lr low: 1 is above high, 0.1; exchange them"),
        (("--param", 'lr={"kind": "log", "high": 1}'), "--param lr low: it is missing"),
        (("--param", "lr={"), "--param: 'lr={' is no JSON"),
        (("--param", "n=int:1..8", "--objective", "loss"), "--objective: 'loss' says no direction"),
        (("--param", "n=int:1..8", "--objective", "a:minimize"), "--metric: objectives are given as well"),
        (("--param", "n=int:1..8", "--constraint", "m"), "--constraint: 'm' says no bound; give it as 'memory_gb<=8'"),
        (
            ("--param", "n=int:1..8", "--constraint", "m<=8", "--constraint", "m<=9"),
            "--constraint: 'm' has such a bound already, upper; give one",
        ),
        (("--param", "n=int:1..8", "--brackets", "2"), "--brackets: it says how halving goes; give --halving as well"),
        (("--param", "n=int:1..8", "--halving", "27"), "--halving: '27' says no rungs"),
        (("--param", "n=int:1..8", "--halving", "1..9", "--rung-size", "2"), "--rung-size: one in 3 goes on"),
        (("--param", "n=int:1..8", "--halving", "1..9", "--fixed", "2"), "--halving: a fixed job cannot pause"),
        (("--param", "n=int:1..8", "--sampler-option", "a"), "--sampler-option: 'a' has no name or no value"),
        (("--param", "n=int:1..8", "--pruner-option", "a=1"), "--pruner-option: it is an argument of a pruner"),
        (("--param", "n=int:1..8", "--max-time", "soon"), "--max-time: 'soon' is no length of time"),
        (("--param", "n=int:1..8", "--name", "a b"), "--name: 'a b' cannot be taken"),
        (("--param", "n=int:1..8", "--save", "a.yaml", "--wait"), "--save: nothing is begun with it"),
    ],
)
def test_what_is_wrong_is_said_by_its_option_before_anything_is_sent(
    run: Run, options: tuple[str, ...], said: str
) -> None:
    done = run(None, "tune", "train.py", "--metric", "loss", "--max-trials", "9", *options)

    assert done.code == 2
    assert said in done.err


def test_nothing_said_of_limits_or_of_what_is_better_is_refused(run: Run) -> None:
    assert "--metric: nothing says what is better" in run(None, "tune", "train.py", "--param", "n=int:1..8").err
    unlimited = run(None, "tune", "train.py", "--param", "n=int:1..8", "--metric", "loss")
    assert "nothing ends the search; give --max-trials, --max-time, --max-slot-hours or target" in unlimited.err


def test_a_search_file_says_all_that_options_say(run: Run, server: SearchServer, folder: Path) -> None:
    (folder / "search.yaml").write_text(
        """
path: train.py
name: digits
parameters:
  opt: choice:sgd,adam
  lr: {kind: log, low: 1e-5, high: "1e-1", when: {opt: sgd}}
  layers: {kind: choice, choices: [[64], [64, "64"], on, 1.5, null]}
metric: acc
direction: maximize
halving: 1..27:3
max-trials: 40
max: 8
"""
    )
    assert run(server, "tune", "search.yaml", "--max-trials", "100", "--minimize").code == 0

    body = sent(server)
    assert body["parameters"] == {
        "opt": {"kind": "choice", "choices": ["sgd", "adam"]},
        "lr": {"kind": "float", "low": 1e-5, "high": 0.1, "log": True, "when": {"opt": ["sgd"]}},
        "layers": {"kind": "choice", "choices": [[64], [64, "64"], "on", 1.5, None]},
    }
    assert (body["name"], body["max_trials"], body["max_tasks"], body["halving"]) == ("digits", 100, 8, {"max": 27})
    assert body["objectives"] == [{"metric": "acc", "direction": "minimize"}]


def test_what_is_typed_beside_a_file_takes_the_place_of_what_says_the_same_otherwise(
    run: Run, server: SearchServer, folder: Path
) -> None:
    (folder / "s.yaml").write_text(
        "path: train.py\nparameters: {n: 'int:1..8'}\nmetric: a\ndirection: maximize\nhalving: 1..9\nmax-trials: 9\n"
    )
    run(server, "tune", "s.yaml", "--pruner", "median", "--objective", "loss:minimize")

    body = sent(server)
    assert ("halving" in body, body["pruner"]) == (False, {"name": "median"})
    assert body["objectives"] == [{"metric": "loss", "direction": "minimize"}]


def test_what_is_wrong_with_a_file_is_said_with_its_line(run: Run, folder: Path) -> None:
    (folder / "s.yaml").write_text(
        "path: train.py\nparameters:\n  lr: {kind: log, low: 0, high: 1}\nmetric: a\ndirection: up\nmax-trials: 1\n"
    )
    assert "s.yaml, line 5: direction: 'up' is not possible" in run(None, "tune", "s.yaml").err
    (folder / "s.yaml").write_text("path: train.py\nparameters:\n  lr: log:0..1\nmetric: a\nmax-trials: 1\n")
    assert "s.yaml, line 2: parameters.lr.low: 0 has no order" in run(None, "tune", "s.yaml").err
    (folder / "s.yaml").write_text("path: train.py\nparameters: [a]\nmetrics: a\n")
    said = run(None, "tune", "s.yaml").err
    assert "s.yaml, line 2: parameters: it is a list; give what may be chosen by name" in said
    assert "s.yaml, line 3: there is no key 'metrics'; is 'metric' meant?" in said


def test_what_is_saved_is_what_was_typed(run: Run, server: SearchServer, folder: Path) -> None:
    typed = (
        *("--param", "lr=log:1e-5..1e-1", "--param", 'n={"kind": "int", "low": 1, "high": 8}', "--metric", "acc"),
        *("--maximize", "--max-time", "1h", "--halving", "1..9", "--seed", "3", "--sampler-option", "a=1"),
    )
    run(server, "tune", "train.py", *typed)
    saved = run(None, "tune", "train.py", *typed, "--save", "s.yaml")
    assert saved.out == "s.yaml is written; `pliant tune s.yaml` begins it\n"
    jsonschema.validate(yaml.safe_load((folder / "s.yaml").read_text()), schema(SEARCH_KEYS, "Search of Pliant"))
    run(server, "tune", "s.yaml")

    first, again = server.sent(ROUTE)
    assert again == first


def test_keys_are_the_options_of_tune_and_the_page_has_them() -> None:
    parameters = {one.name: one for one in Listed("tune", COMMANDS["tune"]).load().params}
    assert {key.field for key in SEARCH_KEYS.by_name.values()} == parameters.keys() - NOT_OF_SEARCHES

    (table,) = re.findall(r"<!-- .*search_file -->\n\n(.*?)\n\n<!-- -->", PAGE.read_text(), re.DOTALL)
    assert table.splitlines() == [*rows(SEARCH_KEYS)], "run: python -m pliant.cli.searches.search_file"


def test_the_schema_is_printed(run: Run) -> None:
    printed = json.loads(run(None, "tune", "--print-schema").out)

    jsonschema.Draft202012Validator.check_schema(printed)
    jsonschema.validate({"parameters": {"lr": "log:1..2", "n": {"kind": "int"}}, "max-trials": 3}, printed)


def test_who_follows_through_a_pipe_reads_a_line_for_every_change(run: Run, server: SearchServer) -> None:
    ended = view(state=SearchState.COMPLETED, reason="40 trials have ended", trials={TrialState.COMPLETED: 40})
    server.answer("GET /v1/searches/digits", view(), ended)

    done = run(
        server, "tune", "train.py", "--param", "lr=log:1e-5..1", "--metric", "a", "--max-trials", "40", "--follow"
    )

    assert done.err.splitlines() == [
        "search digits has begun",
        "digits is running, 7/40 trials ended, 3 running, 2 paused, "
        "about 5 min left, best 0.5 (trial 4: lr=0.05 act=relu)",
        "digits completed: 40 trials have ended",
        "best: trial 4, 0.5 with lr=0.05 act=relu",
        "`pliant best digits` fetches it, `pliant deploy digits` serves it",
    ]
    assert (done.code, done.out) == (0, "")
    server.answer("GET /v1/searches/digits", view(state=SearchState.FAILED, reason="3 trials failed", best=None))
    failed = run(
        server, *("tune", "train.py", "--param", "lr=log:1e-5..1", "--metric", "a", "--max-trials", "4", "--wait")
    )
    assert (failed.code, failed.err.splitlines()[-1]) == (1, "digits failed: 3 trials failed")


def test_who_waits_may_have_json(run: Run, server: SearchServer) -> None:
    server.answer("GET /v1/searches/digits", view(state=SearchState.COMPLETED))
    asked = ("tune", "train.py", "--param", "lr=log:1e-5..1", "--metric", "a", "--max-trials", "4", "--json")

    assert json.loads(run(server, *asked, "--wait").out)["state"] == "completed"
    assert json.loads(run(server, *asked).out)["state"] == "running"


def test_the_best_trial_of_a_search_is_deployed(run: Run, server: SearchServer) -> None:
    server.answer("GET /v1/searches/digits", view(), view(best=None), view())
    server.answer("GET /v1/searches/digits/best", page(trial(4)))
    run(server, "deploy", "digits", "--no-wait")
    assert server.sent("POST /v1/endpoints/digits/versions") == [{"job": "job-14"}]

    none = run(server, "deploy", "digits", "--no-wait")
    assert (none.code, "no trial of digits has completed yet" in none.err) == (5, True)
