"""People who use a server that is killed again and again, and who note what it has acknowledged."""

import io
import json
import random
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from tests.e2e.pool import Pool
from tests.plain_http import NO_TLS

COUNTED = Path(__file__).with_name("counted.py")
_PAUSE_S = 0.1
_MAX_JOBS = 20
_AGAIN_S = 0.1


@dataclass(slots=True)
class Acknowledged:
    """What a server has said that it did."""

    jobs: set[str] = field(default_factory=set)
    priorities: dict[str, set[int]] = field(default_factory=dict)
    """Of each job: the priority that was acknowledged last, and those that were asked for since."""
    seen: list[tuple[int, str, str]] = field(default_factory=list)
    """Number, kind and words of every event that a follower was shown."""
    num_refused: int = 0


class Load:
    """Clients in threads, until the block of `applied` ends."""

    def __init__(self, pool: Pool, starts: Path, *, num_submitters: int = 3) -> None:
        self.told = Acknowledged()
        self._pool = pool
        self._starts = starts
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._failed: list[BaseException] = []
        submitters = [(self._submit, number) for number in range(num_submitters)]
        self._threads = [
            threading.Thread(target=self._guarded, args=(what, number))
            for what, number in [*submitters, (self._follow, 0)]
        ]

    @contextmanager
    def applied(self) -> Iterator[Acknowledged]:
        """Use the server while the block runs."""
        for thread in self._threads:
            thread.start()
        try:
            yield self.told
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(30)
        assert not self._failed, self._failed
        assert not any(thread.is_alive() for thread in self._threads)

    def _guarded(self, what: Any, number: int) -> None:
        try:
            what(random.Random(number))
        except BaseException as error:
            self._failed.append(error)
            raise

    def _http(self) -> httpx.Client:
        url = json.loads((self._pool.home / "server.json").read_text())["url"]
        token = (self._pool.home / "token").read_text()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=f"{url}/v1", headers=headers, timeout=10, verify=NO_TLS)

    def _submit(self, chance: random.Random) -> None:
        mine: list[str] = []
        while not self._stop.wait(_PAUSE_S):
            try:
                with self._http() as http:
                    if len(mine) < _MAX_JOBS and (not mine or chance.random() < 0.4):
                        mine.append(self._one_job(http))
                    else:
                        self._one_change(http, chance.choice(mine[-3:]), chance.randrange(1, 10_000))
            except (httpx.HTTPError, OSError, ValueError):
                with self._lock:
                    self.told.num_refused += 1
                self._stop.wait(_AGAIN_S)

    def _one_job(self, http: httpx.Client) -> str:
        body = json.dumps({"script": COUNTED.name, "args": [str(self._starts)], "max_tasks": 1, "priority": 10_000})
        response = http.post("/jobs", files={"job": (None, body), "code": ("code.tar.gz", _packed(COUNTED))})
        response.raise_for_status()
        job_id = str(response.json()["id"])
        with self._lock:
            self.told.jobs.add(job_id)
        return job_id

    def _one_change(self, http: httpx.Client, job_id: str, priority: int) -> None:
        with self._lock:
            self.told.priorities.setdefault(job_id, {10_000}).add(priority)
        response = http.patch(f"/jobs/{job_id}", json={"priority": priority})
        if response.status_code == 409:
            return  # it has ended already
        response.raise_for_status()
        with self._lock:
            self.told.priorities[job_id] = {priority}

    def _follow(self, _: random.Random) -> None:
        """Follow the stream of events as a console does: after every cut from where it was."""
        last = 0
        while not self._stop.wait(_PAUSE_S):
            try:
                with self._http() as http, http.stream("GET", "/events/stream", params={"after": last}) as response:
                    for line in response.iter_lines():
                        if line.startswith("data: "):
                            event = json.loads(line.removeprefix("data: "))
                            self.told.seen.append((event["seq"], event["kind"], event["message"]))
                            last = event["seq"]
                        if self._stop.is_set():
                            return
            except (httpx.HTTPError, OSError, ValueError):
                self._stop.wait(_AGAIN_S)


def _packed(script: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(script, arcname=script.name)
    return out.getvalue()
