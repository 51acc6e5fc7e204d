"""A sampler for Optuna that somebody has written advises a search as Optuna's own do, and goes on exactly."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tune.adviser.played import CONDITIONAL, KINDS, MIXED, Kind, Played, play

from pliant.core.search import Pruner, TrialState
from pliant.tune.advice import Adviser, AdviserFailure, AdviserInput, Asked, Exhausted
from pliant.tune.adviser.folder_sampler import folder_adviser
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.plugins.found_code import FoundCode, decode_found


@pytest.fixture(autouse=True)
def unchanged_process() -> Iterator[None]:
    path, python, numpy = [*sys.path], random.getstate(), np.random.get_state()
    yield
    sys.path[:] = path
    sys.modules.pop("sampler", None)
    random.setstate(python)
    np.random.set_state(numpy)


@pytest.fixture
def folder_of(tmp_path: Path) -> Callable[[str], Path]:
    def make(code: str) -> Path:
        folder = tmp_path / f"code-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "sampler.py").write_text(code)
        return folder

    return make


FolderOf = Callable[[str], Path]

OWN = """
import random
import numpy as np
from optuna.samplers import BaseSampler, RandomSampler


class Box:
    def __init__(self, seed):
        self.rngs = {"a": [np.random.default_rng(seed)], "b": random.Random(seed)}
        self.old = np.random.RandomState(seed)


class PluginSampler(BaseSampler):
    def __init__(self, seed, width=3):
        self.box, self.inner, self.num = Box(seed), RandomSampler(seed=seed), 0
        self.kept = np.zeros(width)

    def infer_relative_search_space(self, study, trial):
        return {}

    def sample_relative(self, study, trial, search_space):
        return {}

    def sample_independent(self, study, trial, name, distribution):
        self.num += 1
        self.kept[self.num % 3] += 1
        rngs = self.box.rngs
        draws = [rngs["a"][0].random, rngs["b"].random, self.box.old.rand, random.random, np.random.rand]
        draw = draws[self.num % 5]()
        if draw < 0.4:
            return self.inner.sample_independent(study, trial, name, distribution)
        if hasattr(distribution, "choices"):
            return distribution.choices[int(draw * len(distribution.choices))]
        step = distribution.step or 1e-9
        value = distribution.low + int(draw * (distribution.high - distribution.low) / step) * step
        return int(value) if isinstance(distribution.low, int) else value

    def get_state(self):
        return {"num": self.num, "kept": self.kept}

    def set_state(self, state):
        self.num, self.kept = state["num"], state["kept"]
"""
BY_FUNCTION = """
from optuna.samplers import TPESampler


def make_sampler(seed, n_startup_trials=4):
    return TPESampler(seed=seed, n_startup_trials=n_startup_trials)
"""


def opener(folder: Path) -> Callable[[AdviserInput], Adviser]:
    return lambda opening: folder_adviser(opening, folder)


@pytest.mark.parametrize(("code", "space"), [(OWN, CONDITIONAL), (BY_FUNCTION, MIXED)], ids=["class", "function"])
def test_one_that_is_made_anew_before_every_call_answers_the_same(
    folder_of: FolderOf, code: str, space: dict[str, object]
) -> None:
    kind = replace(KINDS["random"], space=space, num_trials=20)  # type: ignore[arg-type]
    folder = folder_of(code)

    values = play(kind, opener(folder))

    assert len({json.dumps(one) for one in values}) > 15
    assert play(kind, opener(folder), renewed=lambda number: number > 0) == values


def test_one_of_optunas_own_answers_as_a_built_in_one_does(folder_of: FolderOf) -> None:
    kind = Kind(name="tpe", space=MIXED, num_trials=20, options={"multivariate": True, "group": False})
    code = """
from optuna.samplers import TPESampler


def make_sampler(seed, **options):
    return TPESampler(seed=seed, **options)
"""
    assert play(kind, opener(folder_of(code))) == play(kind, OptunaAdviser)


def played(**options: str | int) -> Played:
    return Played(settings=Kind(name="random", space=MIXED, options=options).settings)


STOPS = """
from optuna.samplers import RandomSampler


class PluginSampler(RandomSampler):
    def __init__(self, seed):
        super().__init__(seed)

    def before_trial(self, study, trial):
        if trial.number >= 3:
            study.stop()
"""


def test_one_that_stops_its_study_has_no_more_and_nothing_has_changed(folder_of: FolderOf) -> None:
    search, folder = played(), folder_of(STOPS)
    adviser = folder_adviser(search.opening, folder)
    for _ in range(3):
        assert isinstance(search.ask(adviser, []), Asked)

    for one in (adviser, adviser, folder_adviser(search.opening, folder)):
        found = search.ask(one, [])
        assert found == Exhausted(reason="the sampler has no more to try: it stopped its study")


def test_pruners_judge_beside_it(folder_of: FolderOf) -> None:
    search = Played(settings=replace(played().settings, pruner=Pruner(name="threshold", options={"upper": 1.0})))
    adviser = folder_adviser(search.opening, folder_of(BY_FUNCTION))
    search.ask(adviser, [])
    trial = replace(search.trials[0], state=TrialState.RUNNING, reports=((1, 2.0),))

    assert adviser.judge(0, [trial]).prune


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "x = 1",
            "sampler.py of the algorithm random has no def make_sampler(seed, **options), or class PluginSampler",
        ),
        ("def make_sampler(seed): return 7", "make_sampler of the algorithm random returns no BaseSampler"),
        ("def make_sampler(): pass", "raised TypeError: make_sampler() got an unexpected keyword argument 'seed'"),
        ("def make_sampler(seed): raise SystemExit(4)", "raised SystemExit: 4 in make_sampler (sampler.py:1)"),
        (f"{OWN}\ndef make_sampler(seed): pass", "has make_sampler and PluginSampler; write one of them"),
        (OWN.replace("self.num += 1", "1 / 0"), "raised ZeroDivisionError: division by zero in sampler.py when it had"),
        (OWN.replace("self.num += 1", "return 1e9"), "the algorithm random raised"),
        (OWN.replace("    def set_state", "    def other"), "PluginSampler has get_state and no set_state"),
        (OWN.replace('"kept": self.kept}', '"box": self.box}'), "cannot be kept: box is a Box, which cannot be kept"),
    ],
)
def test_what_is_wrong_with_it_is_said_in_one_sentence(folder_of: FolderOf, code: str, message: str) -> None:
    search = played()
    with pytest.raises(AdviserFailure) as raised:
        search.ask(folder_adviser(search.opening, folder_of(code)), [])

    assert message in str(raised.value)


def test_a_state_of_other_code_is_refused(folder_of: FolderOf) -> None:
    search = played()
    search.ask(folder_adviser(search.opening, folder_of(OWN)), [])
    for code in (BY_FUNCTION, OWN.replace('"b": random.Random(seed)', '"c": random.Random(seed)')):
        with pytest.raises(AdviserFailure, match="begin a new search"):
            folder_adviser(search.opening, folder_of(code))
    search.state = "{"
    with pytest.raises(AdviserFailure, match="the state of the algorithm random cannot be read"):
        folder_adviser(search.opening, folder_of(OWN))


def test_it_is_looked_at_without_a_search(folder_of: FolderOf) -> None:
    command = [sys.executable, "-P", "-m", "pliant.entry.plugin", "optuna", str(folder_of(OWN)), "--check"]
    env = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert decode_found(process.stdout.read()) == FoundCode(name="PluginSampler", has_state=True)
