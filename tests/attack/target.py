"""A real server in a folder of its own, with somebody who works on it and somebody who means it ill.

Ada trains with two tasks. Bob may submit jobs, as every user may; what he submits are the scripts of
`tests/attack/inside`, which say what they could do in lines of JSON on their standard output.
"""

import json
import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

from tests.attack.belongings import Belongings
from tests.e2e.pool import Pool

from pliant.api.jobs import JobPatch, JobRequest
from pliant.api.people import UserRequest
from pliant.client import Client
from pliant.core.job import Job, Task

INSIDE: Final = Path(__file__).with_name("inside")
PATIENCE_S: Final = 90.0
MAX_DISK: Final = "200MiB"


class Target:
    """The server and its people; `close` ends it and removes its folder."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pliant-attack-"))
        self.folder.chmod(0o711)  # people's code may run as users of their own
        self.secret = secrets.token_hex(16)
        """What only Ada may know."""
        self.belongings = Belongings()
        self.pool = Pool(self.folder / "home", slots=6, options=("--max-disk", MAX_DISK))
        self.tokens: dict[str, str] = {}
        self._clients: dict[str, Client] = {}
        self._seen: dict[str, dict[str, str]] = {}

    def __enter__(self) -> Self:
        self.pool.up()
        for name in ("ada", "bob"):
            self._clients[name] = self._client_of(name)
        self.victim = self.submit("ada", "victim.py", {"secret": self.secret}, max_tasks=2, min_tasks=2)
        self.until(lambda: len(self.victims()) == 2, "Ada's two tasks train")
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()
        self.pool.close()
        self.belongings.close()
        for shared in ("/tmp/adas-secret", "/dev/shm/adas-secret"):  # a job without walls writes to everybody's
            Path(shared).unlink(missing_ok=True)
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)  # shutil.rmtree gives deep folders up

    def _client_of(self, name: str) -> Client:
        password = secrets.token_hex(16)
        with self.pool.client() as admin:
            admin.people.add_user(UserRequest.model_validate({"name": name, "role": "user", "password": password}))
            url = admin.url
        with Client(url, None) as stranger:
            token = stranger.people.log_on(name, password).token
        assert token is not None
        self.tokens[name] = token
        return Client(url, self.tokens[name])

    # -- who and where -------------------------------------------------------------------------------------------------

    @property
    def is_root(self) -> bool:
        return os.geteuid() == 0

    @property
    def home(self) -> Path:
        return self.pool.home

    @property
    def ada(self) -> Client:
        return self._clients["ada"]

    @property
    def bob(self) -> Client:
        return self._clients["bob"]

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens."""
        return "127.0.0.1", self.pool.port

    @property
    def server_pid(self) -> int:
        assert self.pool.process is not None
        return self.pool.process.pid

    def victims(self) -> list[Task]:
        """Return the tasks of Ada's job that train."""
        return self.pool.training(self.ada, self.victim)

    def facts(self) -> dict[str, Any]:
        """Return what a stranger can find out, and what only a lucky one could: paths, processes, ports."""
        pids = [task.pid for task in self.victims() if task.pid is not None]
        return {
            "home": str(self.home),
            "server": self.server_pid,
            "zygote": [pid for pid in children_of(self.server_pid) if pid not in pids],
            "victims": pids,
            "victim": self.victim,
            "victim_folder": str(self.home / "jobs" / self.victim),
            "ports": sorted(port for pid in pids for port in ports_of(pid)),
            "server_port": self.pool.port,
        }

    # -- jobs ----------------------------------------------------------------------------------------------------------

    def submit(self, who: str, script: str, facts: dict[str, Any], code: Path = INSIDE, **options: Any) -> str:
        """Submit a script, of `inside` if no other folder is named, with facts as its argument; return the job's id."""
        given = {"script": script, "args": [json.dumps(facts)], **options}
        return self._clients[who].submit(code, JobRequest.model_validate(given)).id

    def run(self, script: str, facts: dict[str, Any], **options: Any) -> Job:
        """Let Bob run a script to its end."""
        job_id = self.submit("bob", script, facts, **({"fixed": True, "max_restarts": 0} | options))
        try:
            return self.bob.wait(job_id, timeout_s=PATIENCE_S, poll_s=0.1)
        except TimeoutError:
            self.bob.stop(job_id)
            raise

    def lines_of(self, job_id: str, stream: str = "stdout") -> list[str]:
        """Return what a job of Bob's printed."""
        logs = [log for log in self.bob.logs(job_id) if log.stream == stream]
        return [line for log in logs for line in self.bob.read_log(job_id, log.task_id, stream)]

    def seen_inside(self, script: str, name: str, facts: dict[str, Any] | None = None) -> str:
        """Return what one probe of a script saw; the script is run once.

        Args:
            facts: what the script is told besides `facts()`.
        """
        if script not in self._seen:
            self._seen[script] = self._play_inside(script, facts or {})
        return self._seen[script].get(name, f"not tried: {self._seen[script]['']}")

    def _play_inside(self, script: str, facts: dict[str, Any]) -> dict[str, str]:
        try:
            job = self.run(script, self.facts() | facts)
        except TimeoutError as error:
            return {"": str(error)}
        return {"": f"{job.state.value}, {job.reason or ''}"[:200], **said_in(self.lines_of(job.id))}

    def grow_victim(self, num_tasks: int) -> None:
        """Let Ada's job have more tasks."""
        self.ada.change(self.victim, JobPatch(max_tasks=num_tasks))

    def until(self, condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
        """Wait for something; an attack that waits in vain has not been played."""
        return Pool.until(condition, what, timeout_s)

    def becomes(self, condition: Callable[[], Any], timeout_s: float = 20.0) -> bool:
        """Tell whether something comes true in time."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)  # between two looks
        return True

    def is_at_work(self) -> bool:
        """Tell whether the server decides: whether a small job of Ada's is started and ends."""
        job_id = self.submit("ada", "nothing.py", {}, fixed=True, max_restarts=0)
        return self.becomes(lambda: self.ada.job(job_id).job.ended, timeout_s=30.0)


def said_in(lines: list[str]) -> dict[str, str]:
    """Return what a script of `inside` printed that each of its probes has seen."""
    seen = {}
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(line)
            seen[str(said["probe"])] = str(said["seen"])
    return seen


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started and that live."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def ports_of(pid: int) -> list[int]:
    """Return the ports that a process listens at; none if this user may not look."""
    inodes = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(row[1].partition(":")[2], 16) for row in rows if row[3] == "0A" and row[9] in inodes]
