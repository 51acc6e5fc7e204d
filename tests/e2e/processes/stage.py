"""A real server with every kind of process alive at once: each waits for something until it was looked at."""

import errno
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import venv
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Self

import httpx
import pytest
from tests.e2e.pool import PYTHON, Pool, clean_env
from tests.e2e.processes import held
from tests.e2e.processes.look import below, children_of, command_of, open_links
from tests.e2e.serving import write_model
from tests.process_state import has_ended, state_of

from pliant.api.datasets import DatasetRequest, SourceRequest
from pliant.api.environments import EnvironmentRequest
from pliant.api.jobs import JobRequest
from pliant.api.people import UserRequest
from pliant.api.searches import SearchRequest
from pliant.api.tunnel import ShellRequest
from pliant.catalog.environments import build_program, look_program
from pliant.client import Client
from pliant.client.folders.data_source import source_of
from pliant.core.dataset import DatasetState
from pliant.core.errors import PliantError
from pliant.entry.own_environment import base_environment
from pliant.entry.server.rooms.datasets import IMPORTER
from pliant.files.folder import remove

VARIABLE: Final = "KEY_OF_THE_SERVERS"
_PATIENCE_S: Final = 60.0
_LOOKER: Final = [sys.executable, "-I", look_program.__file__]
_BUILDER: Final = [sys.executable, "-I", build_program.__file__]
_SHELL: Final = ("/bin/sh", "-c", "read -r nothing")
_SEARCH: Final = {
    "name": "waiting",
    "script": "script.py",
    "parameters": {"lr": {"kind": "float", "low": 0, "high": 1}},
    "objectives": [{"metric": "loss", "direction": "minimize"}],
    "sampler": {"name": "random"},
    "max_trials": 1000,
    "parallel": 1,
}
_NUM_TASKS: Final = 2
_NUM_TRIES: Final = 100
"""To see a process that does not wait by itself."""


class _Standby(Pool):
    """A server that waits for the lead."""

    @property
    def started(self) -> int:
        """Its number."""
        assert self.process is not None
        return self.process.pid

    def listens(self) -> bool:
        """It has written where it listens."""
        record = self.home / "standby.json"
        return self.process is not None and record.exists() and f'"pid": {self.process.pid}' in record.read_text()


class Stage:
    """The server and its processes; `close` ends all and removes its folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pliant-processes-"))
        self.folder.chmod(0o711)  # people's code may run as users of their own
        self.password = secrets.token_hex(16)
        """Of the index that packages come from."""
        self.key = secrets.token_hex(16)
        """In a variable of the server's."""
        self.pids: dict[str, list[int]] = defaultdict(list)
        """The processes by their role."""
        (self.folder / "server").mkdir(mode=0o711)
        self.pool = Pool(self.folder / "server" / "home", slots=6, options=("--policy", "fairshare"))
        self._gate = self.folder / "go"
        self._ends = ExitStack()
        self._last_look = ExitStack()

    def __enter__(self) -> Self:
        self._ends.callback(remove, self.folder)
        try:
            self._begin()
        except BaseException:
            self._ends.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    @property
    def home(self) -> Path:
        return self.pool.home

    @property
    def server(self) -> int:
        assert self.pool.process is not None
        return self.pool.process.pid

    def _begin(self) -> None:
        self.index = self._ends.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.index.settimeout(_PATIENCE_S)
        self._start_server()
        self._client = self._ends.enter_context(self._person())
        jobs = self._submit()
        self._start_standby()
        self._begin_commands(jobs["elastic"])
        self._hold_builder()
        self._hold_probe()
        self._find_tasks(jobs)
        self._hold_commands()
        self._until(self._standby.listens, "the standby listens")
        self.pids["standby"] = [self._standby.started]
        self._until(lambda: len(self._found("pliant.entry.inspector")) == 2, "both inspectors are there")
        for role, program in (("zygote", "pliant.entry.zygote"), ("inspector", "pliant.entry.inspector")):
            self.pids[role] = self._found(program)
        self._hold_shell(jobs["fixed"])
        self._hold_kernel()
        self._hold_algorithm()
        self._hold_import()
        self._ends.callback(self._last_look.close)

    def _found(self, program: str) -> list[int]:
        return [pid for pid in children_of(self.server) if program in command_of(pid)]

    def renew(self) -> None:
        """Have those anew that the server gives some seconds only."""
        if all(has_ended(pid) for pid in self.pids["plugin"]):
            self._hold_plugin()
        self._hold_look()
        self._hold_adviser()
        supervisor = "pliant.catalog.children.supervisor"
        self.pids["supervisor"] = [pid for pid in children_of(self.server) if supervisor in " ".join(command_of(pid))]

    # -- the server and its people ---------------------------------------------------------------------------------

    def _start_server(self) -> None:
        (self.home / "frameworks").mkdir(parents=True)
        self.home.chmod(0o700)
        url = f"http://reader:{self.password}@127.0.0.1:{self.index.getsockname()[1]}/simple"
        with pytest.MonkeyPatch.context() as environment:
            for name in os.environ:
                if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy"):
                    environment.delenv(name)
            environment.setenv("PIP_INDEX_URL", url)
            environment.setenv(VARIABLE, self.key)
            self._ends.callback(self._end_server)
            self.pool.up()
        self.pids["server"] = [self.server]

    def _end_server(self) -> None:
        self._gate.touch()  # those that wait for it go on and end
        self.pool.close()

    @contextmanager
    def _person(self) -> Iterator[Client]:
        password = secrets.token_hex(16)
        with self.pool.client() as admin:
            admin.people.add_user(UserRequest.model_validate({"name": "ada", "role": "user", "password": password}))
            with Client(admin.url, None) as stranger:
                self._token = stranger.people.log_on("ada", password).token
            with Client(admin.url, self._token) as client:
                yield client

    def _start_standby(self) -> None:
        self._standby = _Standby(self.home, slots=6, options=("--standby",))
        self._ends.callback(self._standby.close)
        self._begin_request(self._standby.up)

    # -- tasks -----------------------------------------------------------------------------------------------------

    def _submit(self) -> dict[str, str]:
        """Submit what waits inside of tasks; return the jobs by the role of their tasks."""
        environment = self._make_environment("environment")
        return {
            "elastic": self._job(held.ELASTIC, min_tasks=_NUM_TASKS, max_tasks=_NUM_TASKS),
            "fixed": self._job(held.FIXED, **_fixed(_NUM_TASKS)),
            "interpreter": self._job(held.ALONE, **_fixed(1), environment=str(environment)),
        }

    def _job(self, text: str, **options: object) -> str:
        code = Path(tempfile.mkdtemp(dir=self.folder))
        (code / "script.py").write_text(text)
        given = {"script": "script.py", "args": [str(self._gate)], **options}
        return self._client.submit(code, JobRequest.model_validate(given)).id

    def _make_environment(self, name: str, *more: str) -> Path:
        """Make a virtual environment with the packages of this one, as a person would."""
        place = self.folder / name
        venv.create(place, with_pip=False, symlinks=True)
        (packages,) = place.glob("lib/python*/site-packages")
        lines = [*more, *(f"import site; site.addsitedir({folder!r})" for folder in base_environment().site)]
        (packages / "packages.pth").write_text("".join(f"{line}\n" for line in lines))
        return place

    def _find_tasks(self, jobs: dict[str, str]) -> None:
        for role, job_id in jobs.items():
            wanted = 1 if role == "interpreter" else _NUM_TASKS
            self._until(partial(self._are_here, job_id, wanted), f"{role} is there")
            self.pids[role] = [task.pid for task in self._client.job(job_id).tasks if task.pid is not None]
        self.pids["started"] = [pid for task in self.pids["fixed"] for pid in children_of(task)]

    def _are_here(self, job_id: str, wanted: int) -> bool:
        logs = (self.home / "jobs" / job_id / "result" / "log").glob("*/stdout")
        if sum("here" in log.read_text() for log in logs) == wanted:
            return True
        found = self._client.job(job_id).job
        assert not found.ended, (found.reason, self.pool.log())
        return False

    def _hold_shell(self, job_id: str) -> None:
        """Open a shell beside a task; its command waits for what is never sent."""
        self._ends.callback(self._client.open_shell(job_id, ShellRequest(task=1, command=_SHELL)).close)
        self._until(lambda: self._children(_is_shell), "the shell is there")
        self.pids["shell"] = self._children(_is_shell)
        (zygote,) = self.pids["zygote"]
        self.pids["sidecar"] = [pid for pid in children_of(zygote) if {*children_of(pid)} & {*self.pids["shell"]}]

    def _hold_kernel(self) -> None:
        """Deploy a model, whose kernel waits for requests, and with it the gateway."""
        self._client.endpoints.deploy("doubled", write_model(self.folder / "model"), kernel_min=1)
        view = self._client.endpoints.wait("doubled", timeout_s=_PATIENCE_S)
        (version,) = view.versions
        assert version.job_id is not None
        self.pids["kernel"] = [task.pid for task in self._client.job(version.job_id).tasks if task.pid is not None]
        self.pids["gateway"] = [pid for pid in children_of(self.server) if "pliant.entry.gateway" in command_of(pid)]

    def _hold_adviser(self) -> None:
        """Have values chosen for one more trial, which waits for slots; then what chooses them waits for a while."""
        if "waiting" in [search.name for search in self._client.searches.list()]:
            parallel = self._client.searches.get("waiting").settings.parallel or 0
            self._client.searches.change("waiting", parallel=parallel + 1)
        else:
            code = Path(tempfile.mkdtemp(dir=self.folder))
            (code / "script.py").write_text(held.ALONE)
            self._client.searches.submit(code, SearchRequest.model_validate(_SEARCH))
        self._until(lambda: self._children(_is_adviser), "what chooses values is there")
        self.pids["adviser"] = self._children(_is_adviser)

    def _hold_algorithm(self) -> None:
        """Have values chosen by an algorithm that does not answer."""
        code, algorithm = (Path(tempfile.mkdtemp(dir=self.folder)) for _ in range(2))
        (code / "script.py").write_text(held.ALONE)
        (algorithm / "optimizer.py").write_text(held.OPTIMIZER)
        self._client.algorithms.add(algorithm, name="slow")
        asked = {**_SEARCH, "name": "slow", "sampler": {"name": "slow"}}
        self._client.searches.submit(code, SearchRequest.model_validate(asked))
        self._until(lambda: self._children(_is_algorithm), "the algorithm is asked")
        self.pids["algorithm"] = self._children(_is_algorithm)

    # -- children of the server ------------------------------------------------------------------------------------

    def _hold_builder(self) -> None:
        """Begin a build whose index takes connections and says nothing."""
        self._client.environments.add(EnvironmentRequest(name="built", requirements="tinything"))
        self._ends.enter_context(self.index.accept()[0])
        self.pids["builder"] = self._children(lambda command: command == _BUILDER)
        self.pids["uv"] = [pid for builder in self.pids["builder"] for pid in children_of(builder)]

    def _hold_probe(self) -> None:
        place = self._make_environment("slow-environment", held.INTERPRETER)
        self._client.environments.add(EnvironmentRequest(name="slow", venv=str(place)))
        python = str(place / "bin" / "python")
        self._until(lambda: self._children(lambda command: command[:1] == [python]), "the interpreter is tried")
        self.pids["probe"] = self._children(lambda command: command[:1] == [python])

    def _hold_plugin(self) -> None:
        folder = self.home / "frameworks"
        (folder / "slow.py").write_text(held.PLUGIN)
        (folder / "Slow.conf").write_text('{"appName": "slow", "frameworkCmdGenerator": "slow.py"}')
        self._begin_request(self._start_exec)
        self._ends.callback((folder / "go").touch)
        command = [sys.executable, str(folder / "slow.py")]
        self._until(lambda: self._children(lambda found: found[:2] == command), "the plug-in runs")
        self.pids["plugin"] = self._children(lambda found: found[:2] == command)

    def _start_exec(self) -> None:
        with self.pool.client() as admin:
            url = admin.url
        headers = {"Authorization": f"Bearer {self._token}"}
        where = f"{url}/platform/rest/deeplearning/v1/execs"
        asked = {"args": "--exec-start Slow --model-main go.sh", "sigName": "default"}
        httpx.post(where, params=asked, headers=headers, files={"file": b"true\n"}, timeout=_PATIENCE_S)

    def _hold_import(self) -> None:
        """Send data, and stop the process that imports it while it does."""
        for number in range(_NUM_TRIES):
            folder = self.folder / f"data-{number}"
            folder.mkdir()
            (folder / "zeros").touch()
            os.truncate(folder / "zeros", 32 << 20)
            sent = self._client.datasets.upload(source_of(folder))
            given = SourceRequest(upload_id=sent.upload_id, sha256=sent.sha256)
            self._client.datasets.add(DatasetRequest(name=folder.name, kind="any", source=given))
            if self._freeze("importer", list(IMPORTER), partial(self._is_imported, folder.name), _reads_upload):
                return
        pytest.fail("no import was seen")

    def _is_imported(self, name: str) -> bool:
        return self._client.datasets.get(name).state is not DatasetState.IMPORTING

    def _hold_look(self) -> None:
        """Name an environment, and stop the process that looks at it; the one that was stopped before goes on."""
        self._last_look.close()
        for _ in range(_NUM_TRIES):
            asking = self._begin_request(self._name_environment)
            if self._freeze("look", _LOOKER, partial(_has_ended, asking), _has_begun):
                self._last_look.callback(asking.join, _PATIENCE_S)
                self._last_look.callback(self._go_on, self.pids["look"][0])
                return
        pytest.fail("nothing was seen to look")

    def _name_environment(self) -> None:
        with suppress(PliantError), Client(self._client.url, self._token) as client:
            client.environments.add(EnvironmentRequest(name="gone", venv=str(self.folder / "environment")))
            client.environments.remove("gone")

    def _freeze(
        self, role: str, command: list[str], is_over: Callable[[], bool], is_right: Callable[[list[str]], bool]
    ) -> bool:
        """Stop a process that does not wait by itself, at a moment when it has the right files open.

        It goes on when the stage ends. Returns whether it was seen before all was over.
        """
        while True:
            is_last = is_over()
            for pid in self._children(lambda found: found == command):
                if not is_right(open_links(pid)):
                    continue
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    self._until(partial(_stands_still, pid), "it stands still")
                    if state_of(pid) == "T" and command_of(pid) == command and is_right(open_links(pid)):
                        self._ends.callback(self._go_on, pid)
                        self.pids[role] = [pid]
                        return True
                    os.kill(pid, signal.SIGCONT)
            if is_last:
                return False

    def _go_on(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def _children(self, is_wanted: Callable[[list[str]], bool]) -> list[int]:
        return [pid for pid in below(self.server) if is_wanted(command_of(pid))]

    # -- commands --------------------------------------------------------------------------------------------------

    def _begin_commands(self, job_id: str) -> None:
        """Begin a command that follows the log of a job, and one that restores a backup that is a pipe."""
        self._following = self._command(self.home, "logs", "-f", job_id)
        pipe = self.folder / "backup"
        os.mkfifo(pipe)
        self._restoring = self._command(self.folder / "restored", "restore", str(pipe))

    def _hold_commands(self) -> None:
        """Wait until the first has read something, and the second wants to read what nobody says."""
        said = self._following.stdout
        assert said is not None
        self._until(lambda: bool(select.select([said], [], [], 0)[0]), "the command that follows a log prints")
        assert b"here" in said.readline()
        self.pids["command"] = [self._following.pid]
        self._until(self._open_pipe, "the command that restores a backup reads")
        self.pids["restore"] = [self._restoring.pid]

    def _open_pipe(self) -> bool:
        try:
            writing = os.open(self.folder / "backup", os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody has opened it to read
                raise
            return False
        self._ends.callback(os.close, writing)
        return True

    def _command(self, home: Path, *words: str) -> subprocess.Popen[bytes]:
        """Begin a command, as a person types it; it is ended with the stage."""
        begun = subprocess.Popen(
            [PYTHON, "-P", "-m", "pliant.cli.app", "--home", str(home), *words],
            env=clean_env(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._ends.enter_context(begun)
        self._ends.callback(begun.kill)
        return begun

    def _begin_request(self, ask: Callable[[], None]) -> threading.Thread:
        def carry_out() -> None:
            with suppress(httpx.HTTPError):  # the server ends meanwhile
                ask()

        thread = threading.Thread(target=carry_out, name="asks", daemon=True)
        thread.start()
        self._ends.callback(thread.join, _PATIENCE_S)
        return thread

    def _until(self, condition: Callable[[], object], what: str) -> None:
        Pool.until(condition, what, _PATIENCE_S)


def _reads_upload(links: list[str]) -> bool:
    """Tell whether an import looks at what was sent, and has not begun to unpack it."""
    return any(link.endswith("/content") for link in links) and not any("/data/" in link for link in links)


def _has_begun(links: list[str]) -> bool:
    """Tell whether Python is not just reading a file of its own."""
    own = (sys.prefix, sys.base_prefix, "/usr", "/etc", *filter(None, sys.path))
    return not any(link.startswith(own) for link in links)


def _fixed(size: int) -> dict[str, object]:
    return {"fixed": True, "min_tasks": size, "max_tasks": size, "max_restarts": 0}


def _stands_still(pid: int) -> bool:
    return state_of(pid) in "TZX"


def _is_shell(command: list[str]) -> bool:
    return command == [*_SHELL]


def _has_ended(thread: threading.Thread) -> bool:
    return not thread.is_alive()


def _is_algorithm(command: list[str]) -> bool:
    return command[1:4] == ["-P", "-m", "pliant.entry.plugin"] and "--check" not in command


def _is_adviser(command: list[str]) -> bool:
    return "pliant.entry.adviser" in command
