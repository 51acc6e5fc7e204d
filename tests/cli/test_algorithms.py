"""The commands `algorithms …`: what they send, and what they show."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.tiny_searches import SearchServer, search_server

from pliant.api.algorithms import AlgorithmPage, AlgorithmView

VIEW = AlgorithmView(
    name="my-search",
    owner="ada",
    kind="ibm",
    class_name="PluginOptimizer",
    has_state=False,
    checksum="ab" * 32,
    environment=None,
    log_level="info",
    deadline_s=300.0,
    description="Mine.",
    shared_with=("ben",),
    installed_at=0.0,
    changed_at=0.0,
    revision=2,
)


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as server:
        server.answer("GET /v1/algorithms", AlgorithmPage(algorithms=(VIEW,), next=None))
        server.answer("GET /v1/algorithms/my-search", VIEW)
        yield server


def test_they_are_listed_and_shown(run: Run, server: SearchServer) -> None:
    listed = run(server, "algorithms", "list").out.splitlines()
    assert listed[0].split() == ["NAME", "KIND", "OWNER", "CLASS", "INSTALLED", "DESCRIPTION"]
    assert listed[1].split()[:4] == ["my-search", "ibm", "ada", "PluginOptimizer"]
    assert json.loads(run(server, "algorithms", "list", "--json").out)["algorithms"][0]["name"] == "my-search"

    facts = dict(line.split(maxsplit=1) for line in run(server, "algorithms", "show", "my-search").out.splitlines())
    assert facts["algorithm"] == "my-search of ada (revision 2)"
    assert facts["deadline"] == "300 s for an answer"


def test_a_folder_is_packed_and_sent_under_its_own_name(run: Run, server: SearchServer, tmp_path: Path) -> None:
    folder = tmp_path / "my-search"
    folder.mkdir()
    (folder / "optimizer.py").write_text("x = 1\n")
    server.answer("POST /v1/algorithms", VIEW)

    done = run(server, "algorithms", "add", str(folder), "--deadline", "9", "--share", "ben")
    assert done.out.startswith("my-search is installed (PluginOptimizer); `pliant tune --sampler my-search`")
    assert server.sent("POST /v1/algorithms") == [{"name": "my-search", "deadline_s": 9.0, "shared_with": ["ben"]}]
    assert run(server, "algorithms", "add", str(tmp_path / "nothing")).code == 2


def test_a_new_version_sends_what_changes_alone(run: Run, server: SearchServer, tmp_path: Path) -> None:
    archive = tmp_path / "my-search.tar.gz"
    archive.write_bytes(b"packed already")
    server.answer("PUT /v1/algorithms/my-search", VIEW)

    run(server, "algorithms", "add", str(archive), "--replace")
    run(server, "algorithms", "add", str(archive), "--replace", "--log-level", "debug")
    assert server.sent("PUT /v1/algorithms/my-search") == [None, {"log_level": "debug"}]
