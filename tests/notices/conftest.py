"""For tests of messages: jobs that are over, a store, and certificates."""

import ssl
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pliant.core.job import Job, JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.notice import Notice
from pliant.entry.server.tls import TlsSettings, prepare

JOB = Job(
    id=JobId("job-3"),
    spec=JobSpec(name="digits", script="train.py", virtual_workers=8),
    owner="ada",
    state=JobState.FAILED,
    priority=5000,
    min_tasks=1,
    max_tasks=1,
    submitted_at=1000.0,
    started_at=1010.0,
    ended_at=1200.0,
    reason="ValueError: <lr> & co\nTraceback …",
)


def notice(**changes: Any) -> Notice:
    """Return a notice of the job."""
    usual = Notice(
        name="job-3.webhook",
        owner="ada",
        id="5eed",
        job_id=JobId("job-3"),
        channel="webhook",
        to="https://hooks.test/x",
        on="end",
    )
    return replace(usual, **changes)


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Return what the condition returns as soon as it is true; fail after the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.005)
    return found


@pytest.fixture(scope="session")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS of a server that is called hooks.test and localhost, and of a client that trusts it."""
    made = prepare(TlsSettings(names=("hooks.test", "localhost")), tmp_path_factory.mktemp("tls"), now=time.time())
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(made.certificate, made.key)
    return server, ssl.create_default_context(cafile=made.trusted)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path
