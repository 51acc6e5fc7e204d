"""The notebook of the examples runs from its first cell to its last on a live server, for somebody without rights."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.e2e.pool import HERE, Pool

from pliant.api.people import UserRequest
from pliant.client import Client
from pliant.core.access import Role

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOTEBOOK = HERE.parents[1] / "examples" / "notebooks" / "elastic_training.ipynb"
PASSWORD = "correct horse battery"


def kill_and_start_again(pool: Pool, client: Client, killed: list[float]) -> None:
    """Kill the server, without a word, when the second training is over, and start the next one."""

    def second_is_over() -> bool:
        jobs = {job.spec.name: job for job in client.jobs().jobs}
        return "second" in jobs and jobs["second"].ended

    pool.until(second_is_over, "the second training is over", 300.0)
    pool.signal(signal.SIGKILL)
    killed.append(time.monotonic())
    pool.up()


def test_every_cell_does_what_it_says_though_the_server_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat  # takes seconds, and only here
    from nbclient import NotebookClient

    pool = Pool(tmp_path / "home", slots=4, options=("--tls",))
    pool.up()
    killed: list[float] = []
    try:
        with pool.client() as client:
            client.people.add_user(UserRequest(name="ada", role=Role.USER, password=PASSWORD))
            record = json.loads((pool.home / "server.json").read_text())
            told = {"URL": record["url"], "USER": "ada", "PASSWORD": PASSWORD, "CA": record["certificate"]}
            for name, value in told.items():
                monkeypatch.setenv(f"PLIANT_{name}", value)
            monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
            monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
            killing = threading.Thread(target=kill_and_start_again, args=(pool, client, killed), daemon=True)
            killing.start()
            notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
            resources = {"metadata": {"path": str(NOTEBOOK.parent)}}
            played = NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources)
            (tmp_path / "made").mkdir()
            done = played.execute(env=os.environ | {"TMPDIR": str(tmp_path / "made")})  # it leaves what it makes
            killing.join(60)
    finally:
        pool.close()
    assert killed
    assert list((tmp_path / "made").iterdir())
    outputs = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.get("text", "") for output in outputs)
    assert "ada is a user" in printed
    assert "['completed', 'completed']" in printed
    assert any("image/png" in output.get("data", {}) for output in outputs)
