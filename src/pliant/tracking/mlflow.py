"""Logs to an MLflow tracking server over its REST API 2.0, as MLFLOW_TRACKING_URI and its kin say.

Knows nothing of the package `mlflow`. A run is found again by a tag that only this job has. MLflow keeps every point
that it is sent, so what it has already is asked for once and left out: the newest step of every metric.

Source: https://mlflow.org/docs/latest/rest-api.html
"""

import math
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pliant.core.job_params import ParamValue
from pliant.tracking.http import HttpRefusal, JsonClient, TrackerAddress, basic_authorization
from pliant.tracking.journal import TrackedPoint
from pliant.tracking.tracker import Outcome, TrackedJob, TrackerDown, TrackerRefused

URI: Final = "MLFLOW_TRACKING_URI"
TAG: Final = "pliant.run"
_API: Final = "/api/2.0/mlflow"
_MAX_METRICS: Final = 1000
_MAX_PARAMS: Final = 100
_UPDATE_EVERY_S: Final = 15.0
_UNFIT: Final = re.compile(r"[^\w\-. /]")
_STATUS: Final = {
    Outcome.FINISHED: "FINISHED",
    Outcome.FAILED: "FAILED",
    Outcome.STOPPED: "KILLED",
    Outcome.PAUSED: "SCHEDULED",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MlflowSettings:
    """What the variables say."""

    address: TrackerAddress
    experiment_id: str = ""
    experiment_name: str = ""
    run_id: str = ""
    run_name: str = ""


def settings_of(env: Mapping[str, str]) -> MlflowSettings:
    """Return what MLflow's own variables say.

    Raises:
        TrackerRefused: it is no address of a server.
    """
    uri = urlsplit(env[URI])
    if uri.scheme not in ("http", "https") or not uri.hostname:
        raise TrackerRefused(f"{URI} names no server; give http://… or https://… (`mlflow server` makes one)")
    port = f":{uri.port}" if uri.port else ""
    host = f"[{uri.hostname}]" if ":" in uri.hostname else uri.hostname
    return MlflowSettings(
        address=TrackerAddress(
            url=f"{uri.scheme}://{host}{port}{uri.path.rstrip('/')}",
            authorization=_authorization(env, uri.username, uri.password),
            tls=_tls(env) if uri.scheme == "https" else None,
        ),
        experiment_id=env.get("MLFLOW_EXPERIMENT_ID", ""),
        experiment_name=env.get("MLFLOW_EXPERIMENT_NAME", ""),
        run_id=env.get("MLFLOW_RUN_ID", ""),
        run_name=env.get("MLFLOW_RUN_NAME", ""),
    )


def _authorization(env: Mapping[str, str], user: str | None, password: str | None) -> str:
    if token := env.get("MLFLOW_TRACKING_TOKEN"):
        return f"Bearer {token}"
    user = env.get("MLFLOW_TRACKING_USERNAME") or unquote(user or "")
    password = env.get("MLFLOW_TRACKING_PASSWORD") or unquote(password or "")
    return basic_authorization(user, password) if user or password else ""


def _tls(env: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=env.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or None)
    except OSError as error:
        raise TrackerRefused(f"MLFLOW_TRACKING_SERVER_CERT_PATH cannot be read ({error})") from error
    if env.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() == "true":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class MlflowTracker:
    """The job's run on an MLflow server."""

    name = "MLflow"
    replays = False

    def __init__(self, job: TrackedJob, settings: MlflowSettings) -> None:
        self._job = job
        self._settings = settings
        self._client = JsonClient(settings.address)
        self._run_id = ""
        self._last_steps: dict[str, int] = {}
        self._updated_at = 0.0

    def open(self) -> None:
        """Begin or resume the run, and ask for the newest step of every metric."""
        try:
            run = self._find()
            self._run_id = str(run["info"]["run_id"])
            latest = run.get("data", {}).get("metrics", ())
            self._last_steps = {str(metric["key"]): int(metric.get("step", 0)) for metric in latest}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TrackerDown(f"{self._settings.address.url} does not answer as MLflow does") from error
        self._update("RUNNING")
        self._tag()

    def _tag(self) -> None:
        """Give the run the job's tags. Those that were added to it elsewhere stay."""
        tags = [{"key": fitting_name(name), "value": value} for name, value in self._job.tags.items()]
        if tags:
            self._client.post(f"{_API}/runs/log-batch", {"run_id": self._run_id, "tags": tags})

    def log(self, points: Sequence[TrackedPoint]) -> None:
        """Log points, in as many requests as MLflow wants; and say now and then that the run goes on.

        A task whose script raised calls the run failed, not knowing whether the others train on.
        """
        if time.monotonic() - self._updated_at > _UPDATE_EVERY_S:
            self._update("RUNNING")
        new = [point for point in points if point.step > self._last_steps.get(fitting_name(point.name), -1)]
        for start in range(0, len(new), _MAX_METRICS):
            batch = new[start : start + _MAX_METRICS]
            self._client.post(
                f"{_API}/runs/log-batch", {"run_id": self._run_id, "metrics": [_metric(p) for p in batch]}
            )
            self._last_steps.update({fitting_name(point.name): point.step for point in batch})

    def log_params(self, params: Mapping[str, ParamValue]) -> None:
        """Log hyperparameters. MLflow changes none that it has: of one that is refused its first value stays."""
        pairs = [{"key": fitting_name(name), "value": _text(value)} for name, value in params.items()]
        for start in range(0, len(pairs), _MAX_PARAMS):
            batch = pairs[start : start + _MAX_PARAMS]
            try:
                self._client.post(f"{_API}/runs/log-batch", {"run_id": self._run_id, "params": batch})
            except HttpRefusal:
                self._log_each(batch)

    def _log_each(self, pairs: Sequence[Mapping[str, str]]) -> None:
        refused: list[str] = []
        for pair in pairs:
            try:
                self._client.post(f"{_API}/runs/log-batch", {"run_id": self._run_id, "params": [pair]})
            except HttpRefusal:
                refused.append(pair["key"])
        if refused:
            raise TrackerRefused(f"it keeps the first value of {', '.join(refused)}: no parameter of a run can change")

    def close(self, outcome: Outcome) -> None:
        """Say how the run ended."""
        if (status := _STATUS.get(outcome)) is not None:
            self._update(status)

    def _find(self) -> Any:
        if self._settings.run_id:
            return self._client.get(f"{_API}/runs/get", {"run_id": self._settings.run_id})["run"]
        experiment_id = self._experiment()
        wanted = {"experiment_ids": [experiment_id], "filter": f"tags.`{TAG}` = '{self._job.run_id}'", "max_results": 1}
        if runs := self._client.post(f"{_API}/runs/search", wanted).get("runs"):
            return self._client.get(f"{_API}/runs/get", {"run_id": runs[0]["info"]["run_id"]})["run"]
        tags = {TAG: self._job.run_id, "pliant.job": self._job.job_id, "mlflow.source.name": self._job.name}
        new = {
            "experiment_id": experiment_id,
            "run_name": self._settings.run_name or f"{self._job.name} ({self._job.job_id})",
            "start_time": _milliseconds(time.time()),
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        return self._client.post(f"{_API}/runs/create", new)["run"]

    def _experiment(self) -> str:
        settings = self._settings
        if settings.experiment_id or not settings.experiment_name:
            return settings.experiment_id or "0"
        name = settings.experiment_name
        try:
            found = self._client.get(f"{_API}/experiments/get-by-name", {"experiment_name": name})
            return str(found["experiment"]["experiment_id"])
        except HttpRefusal as error:
            if error.code != "RESOURCE_DOES_NOT_EXIST":
                raise
        try:
            return str(self._client.post(f"{_API}/experiments/create", {"name": name})["experiment_id"])
        except HttpRefusal as error:
            if error.code != "RESOURCE_ALREADY_EXISTS":
                raise
        found = self._client.get(
            f"{_API}/experiments/get-by-name", {"experiment_name": name}
        )  # another job was quicker
        return str(found["experiment"]["experiment_id"])

    def _update(self, status: str) -> None:
        body: dict[str, object] = {"run_id": self._run_id, "status": status}
        if status in ("FINISHED", "FAILED", "KILLED"):
            body["end_time"] = _milliseconds(time.time())
        self._client.post(f"{_API}/runs/update", body)
        self._updated_at = time.monotonic()


def fitting_name(name: str) -> str:
    """Return a name as MLflow takes it."""
    return _UNFIT.sub("_", name)[:250].strip("/. ") or "_"


def _metric(point: TrackedPoint) -> dict[str, object]:
    return {
        "key": fitting_name(point.name),
        "value": point.value if math.isfinite(point.value) else _NOT_FINITE[str(point.value)],
        "timestamp": _milliseconds(point.at),
        "step": point.step,
    }


_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _text(value: ParamValue) -> str:
    return "None" if value is None else str(value) or '""'


def _milliseconds(at: float) -> int:
    return round(at * 1000)
