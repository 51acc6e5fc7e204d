"""A tracking server, and a job to be logged."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tracking.mlflow_server import MlflowServer, mlflow_server

from pliant.tracking.tracker import TrackedJob


@pytest.fixture
def mlflow() -> Iterator[MlflowServer]:
    with mlflow_server() as server:
        yield server


@pytest.fixture
def job(tmp_path: Path) -> TrackedJob:
    return TrackedJob(job_id="job-3", name="digits", run_id="job-3-abc", result_dir=tmp_path / "result")
