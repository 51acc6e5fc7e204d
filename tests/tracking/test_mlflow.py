"""Logging to an MLflow server over HTTP."""

import math
from dataclasses import replace

import pytest
from tests.tracking.mlflow_server import MlflowServer, SeenRun, mlflow_server

from pliant.tracking.journal import TrackedPoint
from pliant.tracking.mlflow import MlflowTracker, fitting_name, settings_of
from pliant.tracking.tracker import Outcome, TrackedJob, TrackerDown, TrackerRefused


def tracker(server: MlflowServer, job: TrackedJob, **env: str) -> MlflowTracker:
    return MlflowTracker(job, settings_of({"MLFLOW_TRACKING_URI": server.url, **env}))


def points(*steps: int, name: str = "loss") -> list[TrackedPoint]:
    return [TrackedPoint(name=name, step=step, at=10.5 + step, value=step / 2) for step in steps]


def test_a_run_is_begun_logged_and_ended(mlflow: MlflowServer, job: TrackedJob) -> None:
    one = tracker(mlflow, job)
    one.open()
    one.log_params({"lr": 0.1, "amp": True, "note": "", "seed": None})
    one.log(points(1, 2))
    one.close(Outcome.FINISHED)
    assert mlflow.run.name == "digits (job-3)"
    assert mlflow.run.tags["pliant.job"] == "job-3"
    assert mlflow.run.points == [("loss", 1, 0.5, 11500), ("loss", 2, 1.0, 12500)]
    assert mlflow.run.params == {"lr": "0.1", "amp": "True", "note": '""', "seed": "None"}
    assert mlflow.run.statuses == ["RUNNING", "FINISHED"]


def test_who_comes_next_goes_on_with_the_run_and_leaves_out_what_it_has(mlflow: MlflowServer, job: TrackedJob) -> None:
    first = tracker(mlflow, job)
    first.open()
    first.log(points(1, 2, 3))
    first.close(Outcome.HANDED_OVER)
    second = tracker(mlflow, job)
    second.open()
    second.log(points(2, 3, 4) + points(1, name="accuracy"))
    assert mlflow.run.steps("loss") == [1, 2, 3, 4]
    assert mlflow.run.steps("accuracy") == [1]
    assert mlflow.run.statuses == ["RUNNING", "RUNNING"]


def test_another_job_has_another_run(mlflow: MlflowServer, job: TrackedJob) -> None:
    tracker(mlflow, job).open()
    tracker(mlflow, replace(job, run_id="job-3-xyz")).open()
    assert len(mlflow.runs) == 2


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(Outcome.FAILED, "FAILED"), (Outcome.STOPPED, "KILLED"), (Outcome.PAUSED, "SCHEDULED")],
)
def test_the_run_says_how_the_training_ended(
    mlflow: MlflowServer, job: TrackedJob, outcome: Outcome, status: str
) -> None:
    one = tracker(mlflow, job)
    one.open()
    one.close(outcome)
    assert mlflow.run.statuses[-1] == status


def test_experiment_and_run_are_those_that_the_variables_name(mlflow: MlflowServer, job: TrackedJob) -> None:
    tracker(mlflow, job, MLFLOW_EXPERIMENT_NAME="digits", MLFLOW_RUN_NAME="mine").open()
    assert (mlflow.run.name, mlflow.run.experiment_id) == ("mine", mlflow.experiments["digits"])
    tracker(mlflow, job, MLFLOW_EXPERIMENT_NAME="digits").open()
    assert len(mlflow.runs) == 1
    mlflow.runs["given"] = SeenRun("given", "theirs", "0", {})
    one = tracker(mlflow, job, MLFLOW_RUN_ID="given")
    one.open()
    one.log(points(1))
    assert mlflow.runs["given"].steps("loss") == [1]


def test_many_points_and_parameters_go_in_as_many_requests_as_mlflow_takes(
    mlflow: MlflowServer, job: TrackedJob
) -> None:
    one = tracker(mlflow, job)
    one.open()
    one.log(points(*range(1, 2502)))
    one.log_params({f"p{number}": number for number in range(150)})
    assert mlflow.run.steps("loss") == list(range(1, 2502))
    assert len(mlflow.run.params) == 150


def test_a_value_that_is_no_number_arrives_as_one(mlflow: MlflowServer, job: TrackedJob) -> None:
    one = tracker(mlflow, job)
    one.open()
    one.log([TrackedPoint(name="loss", step=step, at=1.0, value=v) for step, v in enumerate((math.nan, -math.inf))])
    first, second = (value for _, _, value, _ in mlflow.run.points)
    assert math.isnan(first)
    assert second == -math.inf


def test_a_parameter_that_changed_keeps_its_first_value_and_the_others_arrive(
    mlflow: MlflowServer, job: TrackedJob
) -> None:
    one = tracker(mlflow, job)
    one.open()
    one.log_params({"lr": 0.1})
    with pytest.raises(TrackerRefused, match="keeps the first value of lr"):
        one.log_params({"lr": 0.2, "model": "mlp"})
    assert mlflow.run.params == {"lr": "0.1", "model": "mlp"}


@pytest.mark.parametrize(
    ("name", "fitting"), [("loss", "loss"), ("top-1 / val", "top-1 / val"), ("a%b\n", "a_b_"), ("//", "_"), ("é", "é")]
)
def test_names_are_made_to_fit(name: str, fitting: str) -> None:
    assert fitting_name(name) == fitting


def test_a_server_that_is_down_may_be_there_later(mlflow: MlflowServer, job: TrackedJob) -> None:
    one = tracker(mlflow, job)
    mlflow.down = True
    with pytest.raises(TrackerDown, match=r"answers 503 \(down for a moment\)"):
        one.open()
    with mlflow_server() as gone:
        pass
    with pytest.raises(TrackerDown, match="does not answer"):
        tracker(gone, job).open()


@pytest.mark.parametrize(
    ("env", "header"),
    [
        ({"MLFLOW_TRACKING_USERNAME": "ann", "MLFLOW_TRACKING_PASSWORD": "pw"}, "Basic YW5uOnB3"),
        ({"MLFLOW_TRACKING_TOKEN": "abc"}, "Bearer abc"),
        ({}, ""),
    ],
)
def test_credentials_are_sent_as_mlflow_sends_them(
    mlflow: MlflowServer, job: TrackedJob, env: dict[str, str], header: str
) -> None:
    tracker(mlflow, job, **env).open()
    assert {sent for _, sent in mlflow.asked} == {header}


def test_a_name_and_a_password_in_the_address_are_sent_and_never_shown(mlflow: MlflowServer, job: TrackedJob) -> None:
    url = mlflow.url.replace("http://", "http://ann:p%40w@")
    one = MlflowTracker(job, settings_of({"MLFLOW_TRACKING_URI": url}))
    mlflow.down = True
    with pytest.raises(TrackerDown) as caught:
        one.open()
    assert "ann" not in str(caught.value)
    assert mlflow.asked[0][1] == "Basic YW5uOnBAdw=="


def test_credentials_follow_no_redirect(mlflow: MlflowServer, job: TrackedJob) -> None:
    with mlflow_server() as other:
        mlflow.location = other.url
        with pytest.raises(TrackerRefused, match="answers 302"):
            tracker(mlflow, job, MLFLOW_TRACKING_TOKEN="abc").open()
        assert not other.asked


@pytest.mark.parametrize("uri", ["sqlite:///x.db", "databricks", "file:///tmp", "http://", "ftp://host/"])
def test_an_address_that_is_no_servers_is_refused(uri: str) -> None:
    with pytest.raises(TrackerRefused, match="names no server"):
        settings_of({"MLFLOW_TRACKING_URI": uri})


def test_a_server_that_is_something_else_is_no_tracker(mlflow: MlflowServer, job: TrackedJob) -> None:
    one = MlflowTracker(job, settings_of({"MLFLOW_TRACKING_URI": f"{mlflow.url}/elsewhere"}))
    with pytest.raises(TrackerRefused, match="answers 404"):
        one.open()
