"""Object stores: a folder, and a real S3 server that all tests of a run share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.objects.s3 import BUCKET, S3, s3_server

from pliant.objects.store import ObjectStore


@pytest.fixture(scope="session")
def _s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as s3:
        yield s3


@pytest.fixture
def s3(_s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """A server, as this process would find it."""
    for name, value in _s3.environment.items():
        monkeypatch.setenv(name, value)
    return _s3


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """Below which the objects of one test are."""
    return f"{tmp_path.parent.name}-{tmp_path.name}"


@pytest.fixture
def folder_store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"file://{tmp_path}/objects")


@pytest.fixture
def s3_store(s3: S3, prefix: str) -> ObjectStore:
    return ObjectStore(f"s3://{BUCKET}/{prefix}")


@pytest.fixture(params=["folder_store", "s3_store"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """Each kind of store that can be had here."""
    found: ObjectStore = request.getfixturevalue(request.param)
    return found
