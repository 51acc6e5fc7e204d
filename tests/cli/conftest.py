"""For tests of the command line: a server whose jobs are played, and commands that speak to it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.server.played import Played, set_scene

from pliant.cli.app import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a command left."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]
"""`run(pool, "ps", "--all")`"""
NOBODY = "http://127.0.0.1:9"
"""Where no server answers; what asks all the same ends with code 4."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The scene, for all tests of a file that only look at it."""
    pool = Played(tmp_path_factory.mktemp("shown"))
    yield set_scene(pool)
    pool.close()


@pytest.fixture(scope="module")
def taking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server with one job that has saved its model, for tests that look only at the job that they submit."""
    pool = Played(tmp_path_factory.mktemp("taking"))
    pool.add()
    pool.save("job-1", "model/model.pt", b"weights")
    yield pool
    pool.close()


@pytest.fixture
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """A server without jobs."""
    pool = Played(tmp_path_factory.mktemp("pool"))
    yield pool
    pool.close()


@pytest.fixture
def clean(tmp_path: Path) -> dict[str, str]:
    """The environment of a command in a process of its own, whose state folder holds no server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLIANT_", "_PLIANT_", "COMP_"))}
    return kept | {"PLIANT_HOME": str(tmp_path / "home")}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a command against a server, or against none."""

    def command(pool: Played | None, *args: str) -> Done:
        monkeypatch.setenv("PLIANT_URL", NOBODY if pool is None else pool.url)
        monkeypatch.setenv("PLIANT_TOKEN", "t" if pool is None else pool.token)
        with pytest.raises(SystemExit) as ended:
            main(args)
        captured = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Done(code=code or 0, out=captured.out, err=captured.err)

    return command
