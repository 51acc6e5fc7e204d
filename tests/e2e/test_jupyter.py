"""`pliant notebook`, as people use it: a real JupyterLab within walls, reached from here, on a real server."""

import json
import os
import signal
import subprocess
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from tests.e2e.pool import PYTHON, Pool, clean_env
from tests.process_state import interrupt
from websockets.sync.client import connect

from pliant.client import Client
from pliant.core.lifecycle import JobState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


@dataclass
class Jupyter:
    """A notebook server at an address that `pliant notebook` has printed."""

    address: str
    token: str

    def ask(self, method: str, path: str, body: object = None, *, token: str | None = None, **headers: str) -> Any:
        headers["Authorization"] = f"token {self.token if token is None else token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", method=method, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else text

    def run(self, kernel_id: str, code: str) -> str:
        """Run a cell; return what it prints, or its error."""
        said: list[str] = []
        url = f"{self.address.replace('http', 'ws')}/api/kernels/{kernel_id}/channels?token={self.token}"
        asked = uuid.uuid4().hex
        header = {"msg_id": asked, "msg_type": "execute_request", "username": "", "session": "s", "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True}
        message = {"channel": "shell", "parent_header": {}, "metadata": {}, "buffers": []}
        with connect(url, max_size=None) as channels:
            channels.send(json.dumps({**message, "header": {**header, "date": ""}, "content": content}))
            while True:
                got = json.loads(channels.recv(timeout=60))
                if got["parent_header"].get("msg_id") != asked:
                    continue
                said += [got["content"].get("text", ""), *got["content"].get("traceback", ())]
                if got["content"].get("execution_state") == "idle":
                    return "".join(said)


@dataclass
class Command:
    """A `pliant notebook` that runs."""

    process: "subprocess.Popen[str]"
    told: Path

    @property
    def stderr(self) -> str:
        return self.told.read_text()

    def jupyter(self) -> Jupyter:
        """Return the notebook server, when it answers."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.stderr
        address, _, token = line.strip().partition("/?token=")
        return Jupyter(address, token)


@contextmanager
def notebook(pool: Pool, told: Path, *options: str) -> Iterator[Command]:
    args = [PYTHON, "-P", "-m", "pliant.cli.app", "--home", str(pool.home), "notebook", *options]
    with told.open("w") as stderr:
        process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=stderr, env=clean_env(), text=True)
    with process:
        try:
            yield Command(process, told)
        finally:
            process.kill()


def command_lines() -> str:
    """Return the command lines of all processes of this machine."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                found.append((folder / "cmdline").read_text(errors="replace"))
            except OSError:
                continue
    return "\n".join(found)


def refused(ask: Callable[[], object]) -> int:
    with pytest.raises(HTTPError) as error:
        ask()
    error.value.close()
    return error.value.code


def test_a_notebook_runs_within_walls_outlives_its_command_and_a_killed_server_and_its_files_are_results(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    code = tmp_path / "project"
    code.mkdir()
    (code / "helper.py").write_text("ANSWER = 42\n")
    with notebook(pool, tmp_path / "said", "--code", str(code), "--slots", "2", "--idle", "off") as first:
        jupyter = first.jupyter()
        (job,) = client.jobs(states=["running"], tags=["notebook"]).jobs
        assert (job.num_slots, job.spec.name, job.spec.fixed) == (2, "notebook", True)
        assert b"JupyterLab" in jupyter.ask("GET", "/lab")
        assert refused(lambda: jupyter.ask("GET", "/api/kernels", token="")) == 403
        assert refused(lambda: jupyter.ask("GET", "/api/kernels", token="a" * 43)) == 403
        assert refused(lambda: jupyter.ask("GET", "/api/kernels", Host="rebound.example.org")) == 403

        kernel = jupyter.ask("POST", "/api/kernels", {"name": "python3"})["id"]
        seen = "import os, helper; print(os.getuid(), helper.ANSWER, *(os.environ.get(name) for name in NAMES))"
        seen = seen.replace("NAMES", "('RANK', 'JUPYTER_TOKEN_FILE')")
        user = pool_user(pool, job.id)
        assert jupyter.run(kernel, seen).split() == [str(user), "42", "None", "None"]
        assert "Error" in jupyter.run(kernel, f"open({str(pool.home / 'pliant.db')!r})")
        assert jupyter.run(kernel, "kept = 7; print('x' * 200_000)").count("x") == 200_000
        assert jupyter.run(kernel, "open('made.txt', 'w').write('by a cell')") == ""
        notes = {"type": "notebook", "content": {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}}
        for _ in range(2):
            jupyter.ask("PUT", "/api/contents/notes.ipynb", notes)
        jupyter.ask("POST", "/api/contents/notes.ipynb/checkpoints")

        logged = "".join("\n".join(client.read_log(job.id, f"{job.id}.1", name)) for name in ("stdout", "stderr"))
        told = (client.job(job.id), client.events(job_id=job.id), pool.log(), logged, command_lines())
        assert "Jupyter Server" in logged
        assert not any(jupyter.token in str(one) for one in told)

        pool.signal(signal.SIGKILL)
        pool.up()
        pool.until(lambda: "connected again" in first.stderr, "it is connected again")
        assert jupyter.run(kernel, "print(kept)").strip() == "7"

        interrupt(first.process)
        assert first.process.wait(30) == -signal.SIGINT
        assert (
            f"{job.id} goes on: `pliant notebook {job.id}` comes back to it, `pliant stop {job.id}` ends it"
            in first.stderr
        )

    with notebook(pool, tmp_path / "again", job.id) as second:
        again = second.jupyter()
        assert again.token == jupyter.token
        assert again.run(kernel, "print(kept + 1)").strip() == "8"
        with suppress(RemoteDisconnected):  # it may end before its answer is on its way
            again.ask("POST", "/api/shutdown")
        assert second.process.wait(60) == 0, second.stderr
        assert f"`pliant files {job.id}` lists what was saved in it" in second.stderr
    assert client.job(job.id).job.state is JobState.COMPLETED
    files = {file.path for file in client.files(job.id).files if file.path.startswith("work/")}
    assert files == {"work/made.txt", "work/notes.ipynb"}


def pool_user(pool: Pool, job_id: str) -> int:
    """Return as whom a job runs: what it saves belongs to that user."""
    return (pool.home / "jobs" / job_id / "code").stat().st_uid if os.getuid() == 0 else os.getuid()


def test_a_notebook_that_only_an_open_page_looks_at_ends_and_one_that_runs_a_cell_does_not(
    pool: Pool, client: Client, tmp_path: Path
) -> None:
    idle_s = 2.0
    with notebook(pool, tmp_path / "said", "--idle", f"{idle_s:g}s", "--no-browser") as running:
        jupyter = running.jupyter()
        (job,) = client.jobs(states=["running"], tags=["notebook"]).jobs
        kernel = jupyter.ask("POST", "/api/kernels", {"name": "python3"})["id"]
        waits = f"import os, time\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.1)\nprint('done')"
        begun_at = time.monotonic()
        said: list[str] = []

        def is_running() -> bool:
            return client.job(job.id).job.state is JobState.RUNNING

        cell = threading.Thread(target=lambda: said.append(jupyter.run(kernel, waits)))
        cell.start()
        while time.monotonic() < begun_at + 2 * idle_s:
            assert is_running(), "it was ended while a cell ran"
            time.sleep(0.2)
        (tmp_path / "go").touch()
        cell.join(60)
        assert said == ["done\n"]
        computes = f"import os\nwhile not os.path.exists({str(tmp_path / 'enough')!r}): pass"
        assert (
            jupyter.run(kernel, f"import subprocess, sys; _ = subprocess.Popen([sys.executable, '-c', {computes!r}])")
            == ""
        )
        left_at = time.monotonic()
        while time.monotonic() < left_at + 2 * idle_s:
            assert is_running(), "it was ended while what a cell has started computed"
            time.sleep(0.2)
        (tmp_path / "enough").touch()

        def look_on() -> bool:
            with_page = is_running()
            if with_page:
                try:
                    jupyter.ask("GET", "/api/kernels")
                except OSError:
                    return True  # it has just ended
            return not with_page

        pool.until(look_on, "it ends, whatever page is open", 60.0)
        assert running.process.wait(60) == 0, running.stderr
    logged = "\n".join(client.read_log(job.id, f"{job.id}.1", "stderr"))
    assert "nothing was run, saved or opened in it for 2 s; the notebook ends" in logged


def test_what_is_not_a_notebook_and_what_cannot_be_meant_is_said(pool: Pool, client: Client, tmp_path: Path) -> None:
    job_id = pool.submit(Path(__file__).parent / "waits.py", "--fixed", "1")
    pool.until(lambda: client.job(job_id).job.state is JobState.RUNNING, "it runs")
    said = pool.cli("notebook", "--slots", "2", job_id, code=2)
    assert f"--slots: is for a new notebook, and {job_id} is there already; leave it out" in said
    assert "'soon' is no length of time" in pool.cli("notebook", "--idle", "soon", code=2)
    assert f"{job_id} runs waits.py and no notebook" in pool.cli("notebook", job_id, code=2)
