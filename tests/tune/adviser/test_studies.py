"""Searches as studies of Optuna, which plain Optuna opens, and back; over SQLite and over journals."""

from contextlib import nullcontext
from dataclasses import replace
from math import nan
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from tests.optuna_storage import database
from tests.tune.adviser.played import CONDITIONAL, KINDS, MIXED, Played

from pliant.core.errors import InvalidInput
from pliant.core.known_trial import KnownTrial, fit_known
from pliant.core.search import SearchSettings, Trial, TrialState
from pliant.core.space import SearchParameter, Space
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.adviser.storages import shown
from pliant.tune.adviser.studies import read_study, write_study
from pliant.tune.study_messages import ReadStudy, StudyFound, WriteStudy

STATES = (TrialState.COMPLETED, TrialState.PRUNED, TrialState.FAILED, TrialState.STOPPED)


def played(space: Space, num_objectives: int = 1, num_trials: int = 12) -> tuple[SearchSettings, list[Trial]]:
    """Return a search whose trials have ended in all ways, but for the last two."""
    settings = replace(KINDS["random"], space=space, num_objectives=num_objectives).settings
    adviser = OptunaAdviser(Played(settings=settings).opening)
    stage = Played(settings=settings)
    for number in range(num_trials):
        stage.ask(adviser, [*stage.trials.values()][-1:])
        state = STATES[number % 4]
        has_results = state is TrialState.COMPLETED or (state is TrialState.PRUNED and num_objectives == 1)
        stage.trials[number] = replace(
            stage.trials[number],
            state=state,
            results=tuple(number + 0.5 for _ in settings.objectives) if has_results else None,
            reports=((1, nan), (3, 0.1 * number)),
            reason="a reason",
            ended_at=20.0 + number,
        )
    last = len(stage.trials)
    for number, state in ((last - 2, TrialState.PAUSED), (last - 1, TrialState.RUNNING)):
        stage.trials[number] = replace(stage.trials[number], state=state, results=None, ended_at=None)
    return settings, list(stage.trials.values())


def read(storage: str, study: str | None = None, max_trials: int = 100) -> StudyFound:
    return read_study(ReadStudy(storage=storage, study=study, max_trials=max_trials))


def write(storage: str, settings: SearchSettings, trials: list[Trial], study: str = "digits") -> None:
    write_study(WriteStudy(storage=storage, study=study, settings=settings, trials=tuple(trials)))


def learned(found: StudyFound, settings: SearchSettings) -> tuple[KnownTrial, ...]:
    given = [
        KnownTrial(values=one.values, state=one.state, results=one.results, reports=one.reports) for one in found.trials
    ]
    fit, reasons = fit_known(settings, given)
    assert reasons == ()
    return fit


@pytest.mark.parametrize(
    ("form", "space", "num_objectives"),
    [
        ("sqlite:///{}/x.db", MIXED, 1),
        ("{}/x.sqlite3", CONDITIONAL, 2),
        ("{}/x.journal", MIXED, 2),
        ("{}/x.log", CONDITIONAL, 1),
    ],
)
def test_what_was_written_is_read_as_it_was(tmp_path: Path, form: str, space: Space, num_objectives: int) -> None:
    settings, trials = played(space, num_objectives)
    storage = form.format(tmp_path)
    write(storage, settings, trials)

    found = read(storage)

    assert (found.study, found.num_ended, found.num_unended) == ("digits", len(trials) - 2, 2)
    assert found.directions == tuple(one.direction for one in settings.objectives)
    known = [KnownTrial(values=one.values, state=one.state, results=one.results, reports=one.reports) for one in trials]
    assert repr(_sorted(learned(found, settings))) == repr(_sorted(known[:-2]))


def _sorted(known: object) -> list[KnownTrial]:
    assert isinstance(known, list | tuple)
    return [replace(one, values=dict(sorted(one.values.items()))) for one in known]


@pytest.mark.parametrize("form", ["sqlite:///{}/x.db", "{}/x.journal"])
def test_plain_optuna_opens_it(tmp_path: Path, form: str) -> None:
    settings, trials = played({**CONDITIONAL, "lr": SearchParameter(kind="float", low=1e-5, high=0.1, log=True)})
    trials = [*trials[:-1], replace(trials[-1], parent=0, parent_epoch=6)]
    text = form.format(tmp_path)
    write(text, settings, trials)
    with database(text) if "://" in text else nullcontext(JournalStorage(JournalFileBackend(text))) as storage:
        study = optuna.load_study(study_name="digits", storage=storage)

        assert [one.params for one in study.trials] == [dict(one.values) for one in trials]
        assert study.trials[0].distributions["opt"] == optuna.distributions.CategoricalDistribution(
            ("sgd", "adam", "lion")
        )
        assert [one.state.name for one in study.trials[:4]] == ["COMPLETE", "PRUNED", "FAIL", "FAIL"]
        assert [one.state.name for one in study.trials[-2:]] == ["RUNNING", "RUNNING"]
        assert [one.user_attrs["pliant:job"] for one in study.trials] == [one.job_id for one in trials]
        assert [one.user_attrs.get("pliant:parent") for one in study.trials[-2:]] == [None, "0 at epoch 6"]
        assert study.best_trial.number == 0
        assert study.metric_names == ["m0"]
        assert set(optuna.importance.get_param_importances(study, params=["opt", "layers", "lr"])) == {
            "opt",
            "layers",
            "lr",
        }


def test_a_study_of_optuna_is_read_without_what_its_sampler_noted(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/x.db"
    sampler = optuna.samplers.CmaEsSampler(seed=1, n_startup_trials=1)
    with database(storage) as opened:
        study = optuna.create_study(storage=opened, sampler=sampler, direction="maximize")
        study.optimize(lambda trial: trial.suggest_float("a", 0, 1) + trial.suggest_float("b", 0, 1), n_trials=5)
        params = [one.params for one in study.trials]

    found = read(storage, max_trials=3)

    assert (found.directions, found.num_ended) == (("maximize",), 5)
    assert [one.values for one in found.trials] == params[2:]
    assert "cma" not in repr(found)


def test_a_study_is_never_written_over(tmp_path: Path) -> None:
    settings, trials = played(CONDITIONAL)
    storage = f"{tmp_path}/x.journal"
    write(storage, settings, trials)

    with pytest.raises(InvalidInput, match="a study 'digits' already; give another name"):
        write(storage, settings, trials[:1])

    write(storage, settings, trials[:4], "other")
    assert read(storage, "other").num_ended == 4
    with pytest.raises(InvalidInput, match="the studies digits, other; name one"):
        read(storage)
    with pytest.raises(InvalidInput, match="none is called 'x'"):
        read(storage, "x")


def test_a_trial_that_cannot_be_written_leaves_no_study(tmp_path: Path) -> None:
    settings, trials = played(CONDITIONAL)
    storage = f"{tmp_path}/x.journal"

    with pytest.raises(InvalidInput, match="cannot be used"):
        write(storage, settings, [*trials, replace(trials[0], values={"opt": "none of them"})])

    write(storage, settings, trials)


@pytest.mark.parametrize("name", ["x.db", "x.journal", "x.log"])
def test_what_is_read_is_not_made(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(InvalidInput, match="there is no file"):
        read(str(path))
    assert not path.exists()

    path.write_text("no storage\n")
    with pytest.raises(InvalidInput, match=r"cannot be used|has no study"):
        read(str(path))
    assert path.read_text() == "no storage\n"


def test_a_password_is_never_said() -> None:
    assert shown("postgresql://me:secret@host/db") == "postgresql://me:***@host/db"
    assert shown("sqlite:///x.db") == "sqlite:///x.db"
    with pytest.raises(InvalidInput) as refused:
        read("postgresql://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(refused.value)


def test_what_names_no_storage_is_refused() -> None:
    with pytest.raises(InvalidInput, match="names no storage; give a URL"):
        read("studies.txt")
