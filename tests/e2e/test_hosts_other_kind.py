"""Machines of another kind than the server's: what is built for it does not work there.

On two hosts Python lies elsewhere, and the server's cannot be run. One of them, d, sees the state folder.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.catalog.environments.wheels import offline, tiny_wheel
from tests.e2e.conftest import running
from tests.e2e.hosts_pool import AGENTS, SERVER, HostsPool
from tests.hosts import Network, require_hosts

from pliant.client import Client
from pliant.entry.own_environment import base_environment, own_platform

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

STRANGE: Final = ("b", "d")
BASE: Final = Path(own_platform().real_python)
"""What environments of the server's lead to."""


class StrangePool(HostsPool):
    """A pool in which Python lies elsewhere on some machines."""

    def own_folders(self, name: str) -> Mapping[str, str]:
        self.home.mkdir(mode=0o700, exist_ok=True)
        return {str(self.home): "512m"} if name in ("b", "c") else {}

    @property
    def strange(self) -> Path:
        """Where Python lies on those machines; nothing is there on others."""
        return self.home.parent / "elsewhere" / "python"

    def python(self, name: str) -> str | Path:
        return self.strange.parent / "venv" / "bin" / "python" if name in STRANGE else super().python(name)

    def make_python(self) -> None:
        """Lay Python out elsewhere, with what is installed with Pliant."""
        stdlib = Path(sysconfig.get_path("stdlib"))
        unused = shutil.ignore_patterns("*-packages", "test", "__pycache__", "config-*", "idlelib", "tkinter")
        shutil.copytree(stdlib, self.strange / "lib" / stdlib.name, ignore=unused)
        program = self.strange / "bin" / stdlib.name
        program.parent.mkdir()
        shutil.copy(BASE, program)
        venv = self.strange.parent / "venv"
        self.hosts[STRANGE[0]].run([program, "-I", "-m", "venv", "--without-pip", venv], timeout_s=60.0)
        (packages,) = venv.glob("lib/python*/site-packages")
        lines = [f"import site; site.addsitedir({folder!r})" for folder in base_environment().site]
        (packages / "pliant.pth").write_text("\n".join(lines))
        for name in STRANGE:
            self.hosts[name].run(["mount", "--bind", os.devnull, BASE])

    def run_on(self, client: Client, name: str, code: Path) -> str:
        """Run a job of one task on a machine; return its id."""
        with self.without(*({SERVER, *AGENTS} - {name})):
            job = client.wait(self.submit(code, *OPTIONS), timeout_s=120)
        assert job.state == "completed", job.reason
        return str(job.id)


OPTIONS: Final = ("--fixed", "1", "--requirements", "requirements.txt", "--script", "reads.py")
READS: Final = """
import importlib, sys, torch
from pathlib import Path
(name,) = [line.split()[0] for line in Path("requirements.txt").read_text().splitlines()]
print(name, importlib.import_module(name).ANSWER, sys.prefix, sys.base_prefix)
"""


def code_for(folder: Path, requirement: str) -> Path:
    folder.mkdir()
    (folder / "reads.py").write_text(READS)
    (folder / "requirements.txt").write_text(f"{requirement}\n")
    return folder


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StrangePool]:
    require_hosts()
    folder = tmp_path_factory.mktemp("strange")
    folder.chmod(0o777)
    with Network() as network:
        tiny_wheel(folder / "wheels")
        library = f"{sys.base_prefix}/lib"  # the same program may need it wherever it lies
        pool = StrangePool(folder / "home", network, options=("--allow", library))
        pool.env |= offline(folder / "wheels")
        pool.make_python()
        with pool.hosts[SERVER].inside():
            running(pool)
            pool.join_all()
            yield pool
            pool.close()


@pytest.fixture
def client(pool: StrangePool) -> Iterator[Client]:
    with pool.client() as client:
        yield client


def test_an_environment_is_built_once_on_a_machine_of_another_kind_with_the_versions_of_the_server(
    pool: StrangePool, client: Client, tmp_path: Path
) -> None:
    code = code_for(tmp_path / "code", "tinything >= 1.0")
    first = pool.run_on(client, "c", code)
    tiny_wheel(pool.home.parent / "wheels", version="1.1")
    (environment,) = client.environments.list()
    venv = pool.home / "environments" / environment.key / "venv"
    assert f"tinything 1.0 {venv} {sys.base_prefix}" in pool.cli("logs", first)
    for _ in range(2):
        job_id = pool.run_on(client, "b", code)
        assert f"tinything 1.0 {venv} {pool.strange}" in pool.cli("logs", job_id)
    assert pool.agent_log("b").count("was built on this machine") == 1
    assert "was built" not in pool.agent_log("c"), "there the server's works"


def test_people_see_which_machines_have_copies(pool: StrangePool, client: Client) -> None:
    found = {"a": "shared", "b": "copied", "c": "copied", "d": "shared"}
    assert {one.name: one.files for one in client.machines.list()} == found
    assert "files are copied there and back" in pool.cli("machines", "show", "b")
    assert "files are copied" not in pool.cli("machines", "show", "d")


def test_a_job_whose_environment_cannot_be_built_on_a_machine_runs_on_another_and_people_are_told(
    pool: StrangePool, client: Client, tmp_path: Path
) -> None:
    wheels = pool.home.parent / "wheels"
    tiny_wheel(wheels, name="otherthing")
    code = code_for(tmp_path / "code", "otherthing")
    pool.hosts["b"].run(["mount", "-t", "tmpfs", "none", wheels])
    try:
        job = run_elsewhere(pool, client, "b", code)
    finally:
        pool.hosts["b"].run(["umount", wheels])
    (said,) = refusals(client, job)
    assert "b is avoided from now on, for this job only" in said
    assert f"has to be built on this machine (it was built for {BASE}" in said
    assert "otherthing was not found in the provided package locations" in " ".join(said.split())
    assert "set PIP_INDEX_URL for its agent" in said
    with pool.without(SERVER, "c", "d"):
        alone = client.wait(pool.submit(code, *OPTIONS), timeout_s=120)
    assert alone.state == "completed", "what has failed is tried again for the next job"


def test_a_machine_that_sees_an_environment_of_another_kind_refuses_its_tasks(
    pool: StrangePool, client: Client, tmp_path: Path
) -> None:
    code = code_for(tmp_path / "code", "tinything == 1.0")
    job = run_elsewhere(pool, client, "d", code)
    (said,) = refusals(client, job)
    assert f"does not work on this machine: it was built for {BASE}, and Pliant runs here with " in said
    assert "d is avoided from now on" in said
    with pool.without(SERVER, "b", "c"):
        plain = client.wait(pool.submit(plain_code(tmp_path), "--fixed", "1"), timeout_s=60)
    assert plain.state == "completed", "without an environment it runs there"


def run_elsewhere(pool: StrangePool, client: Client, name: str, code: Path) -> str:
    """Have a job begin on a machine that cannot run it, and see it run where it can; return its id.

    It begins there since one slot of two is held: what fits into the rest leaves others whole.
    """
    beside, gate = code.parent / "beside.py", code.parent / "gate"
    beside.write_text(f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.05)\n")
    with pool.without(*({SERVER, *AGENTS} - {name})):
        held = pool.submit(beside, "--fixed", "1")
        pool.until(lambda: pool.node_of(list(client.job(held).tasks)) == {name}, f"a slot of {name} is held")
    job = client.wait(pool.submit(code, *OPTIONS), timeout_s=120)
    gate.touch()
    assert client.wait(held, timeout_s=60).state == "completed"
    assert job.state == "completed", job.reason
    assert job.num_restarts == 0
    (first, last) = client.job(job.id).tasks
    assert (first.node_id, last.node_id == name) == (name, False)
    return str(job.id)


def refusals(client: Client, job_id: str) -> list[str]:
    return [event.message for event in client.events(job_id=job_id).events if " is avoided " in event.message]


def plain_code(folder: Path) -> Path:
    script = folder / "plain.py"
    script.write_text("import torch\nprint(torch.__version__)\n")
    return script
