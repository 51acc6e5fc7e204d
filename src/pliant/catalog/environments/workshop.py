"""The workshop: builds environments and tries interpreters, so many at a time, in processes that end with the server.

Every builder leads a process group of its own, has a time limit and a log file. Knows no job, no name and no registry:
orders are known by their key, and what came of one is told to a listener, from a thread of the workshop's.
"""

import json
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from pliant import __version__
from pliant.catalog.environments import builder
from pliant.catalog.environments.builder import Log, Order
from pliant.catalog.environments.environment import Shared, last_lines
from pliant.core.errors import PliantError

log = logging.getLogger(__name__)

LOG_FILE: Final = "build.log"
_TAIL_BYTES: Final = 64 << 10
_NUM_PROBES: Final = 2
_PROBE: Final = """
import json
import torch
import pliant.entry.task
print()
print(json.dumps([pliant.__version__, torch.__version__]))
"""
_NOT_PASSED: Final = (
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "CONDA_PREFIX", "UV_SYSTEM_PYTHON", "UV_PYTHON",
    *(f"PIP_{name}" for name in ("TARGET", "USER", "PREFIX", "ROOT", "PYTHON", "REQUIREMENT", "EDITABLE", "REPORT")),
)  # fmt: skip
"""Would make the builder install somewhere else, or something else."""
_FOR_UV: Final = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
}
"""Where packages come from, in pip's words and in uv's; pip's hold for both. PIP_NO_INDEX is the builder's to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is built at once, and for how long."""

    num_builders: int = 2
    build_s: float = 1800.0
    probe_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of an order; `reason` is empty if it is good."""

    python: str = ""
    builder: str = ""
    num_bytes: int = 0
    reason: str = ""
    output: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class _Ordered:
    """An order that is not done."""

    is_worked_on: bool = False


class Workshop:
    """Takes orders from any thread."""

    def __init__(
        self,
        *,
        folder: Path,
        env: Mapping[str, str],
        shared: Shared,
        limits: Limits,
        done: Callable[[str, Outcome], None],
    ) -> None:
        """Open the workshop.

        Args:
            folder: has a folder for every key.
            env: the server's own environment: it says where packages come from.
            shared: what all environments have in common.
            limits: see there.
            done: told once of every order, unless the workshop is closed before; whatever it does that may lead to
                the same order again it does after it has called `over`.
        """
        self._folder = folder
        self._env = builder_env(env)
        self._shared = shared
        self._limits = limits
        self._done = done
        self._uv = shutil.which("uv", path=env.get("PATH", os.defpath))
        self._lock = threading.Lock()
        self._closed = False
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._working: dict[str, _Ordered] = {}
        """Orders that are not done, in the order they came."""
        self._builders = ThreadPoolExecutor(limits.num_builders, thread_name_prefix="pliant-build")
        self._probers = ThreadPoolExecutor(_NUM_PROBES, thread_name_prefix="pliant-probe")

    @property
    def builder(self) -> str:
        """What installs: `uv` if there is one, else `pip`."""
        return "pip" if self._uv is None else "uv"

    def build(self, key: str) -> None:
        """Build what lies in the folder of this key, unless that is being done."""
        self._order(self._builders, key, lambda: self._build(key))

    def probe(self, key: str, python: str) -> None:
        """Try an interpreter, unless that is being done under this key."""
        self._order(self._probers, key, lambda: self._probe(python))

    def works_on(self, key: str) -> bool:
        """Tell whether an order is not done."""
        with self._lock:
            return key in self._working

    def num_ahead(self, key: str) -> int:
        """Return how many others are worked on while this one waits; 0 if it does not wait."""
        with self._lock:
            ordered = self._working.get(key)
            if ordered is None or ordered.is_worked_on:
                return 0
            return sum(each.is_worked_on for each in self._working.values())

    def log_of(self, key: str, num_bytes: int = _TAIL_BYTES) -> str:
        """Return the end of the log of a build; empty if there is none."""
        try:
            with (self._folder / key / LOG_FILE).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - num_bytes))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def close(self) -> None:
        """End all builders and tries, and wait for their threads; who ordered is told nothing."""
        with self._lock:
            self._closed = True
            for process in self._processes:
                _kill(process)
        for pool in (self._builders, self._probers):
            pool.shutdown(wait=True, cancel_futures=True)

    def _order(self, pool: ThreadPoolExecutor, key: str, work: Callable[[], Outcome]) -> None:
        with self._lock:
            if self._closed or key in self._working:
                return
            ordered = self._working[key] = _Ordered()
            pool.submit(self._work, key, ordered, work)

    def over(self, key: str) -> None:
        """Let an order be given again, from the moment in which all see what came of it."""
        with self._lock:
            self._working.pop(key, None)

    def _work(self, key: str, ordered: _Ordered, work: Callable[[], Outcome]) -> None:
        with self._lock:
            ordered.is_worked_on = True
        try:
            outcome = work()
            if not self._closed:
                self._done(key, outcome)
        except InterruptedError:
            log.info("the environment %s is not made: the server ends", key)
        except (OSError, PliantError, ValueError) as error:
            log.exception("the environment %s could not be made", key)
            if not self._closed:
                self._done(key, Outcome(reason=f"it could not be made ({error}); see the log of the server"))
        finally:
            with self._lock:
                if self._working.get(key) is ordered:
                    del self._working[key]

    def _build(self, key: str) -> Outcome:
        folder = self._folder / key
        (folder / builder.RESULT).unlink(missing_ok=True)
        order = Order(
            folder=str(folder), site=list(self._shared.site), constraints=list(self._shared.constraints), uv=self._uv
        )
        with (folder / LOG_FILE).open("wb") as out:
            command = [sys.executable, "-I", builder.__file__]
            code = self._run(command, (out, out), self._limits.build_s, json.dumps(order).encode() + b"\n")
        said = last_lines(self.log_of(key))
        if code is None:
            limit = f"the builder was not done after {self._limits.build_s:g} s and was ended"
            return Outcome(reason=f"it could not be built: {limit}; ask for fewer packages", output=said)
        if code != 0:
            return Outcome(reason=f"it could not be built: {_gist(said)}; mend the requirements", output=said)
        found = json.loads((folder / builder.RESULT).read_text())
        tried = self._probe(found["python"])
        if tried.reason:
            return tried
        return Outcome(python=found["python"], builder=found["builder"], num_bytes=found["num_bytes"])

    def _probe(self, python: str) -> Outcome:
        """Try whether an interpreter can run tasks of this server."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                code = self._run([python, "-c", _PROBE], (out, err), self._limits.probe_s)
            except InterruptedError:
                raise
            except OSError as error:
                return Outcome(reason=f"{python} cannot be run ({error.strerror}); name another interpreter")
            out.seek(0)
            err.seek(0)
            said = last_lines(Log(self._env).masked(err.read().decode(errors="replace")))
            answer = last_lines(out.read().decode(errors="replace"), 1)
        install = f"{python} -m pip install pliant=={__version__}"
        if code is None:
            limit = f"{self._limits.probe_s:g} s"
            return Outcome(reason=f"{python} did not import Pliant and torch in {limit}; try it there", output=said)
        if code != 0:
            why = said[-1] if said else f"exit code {code}"
            reason = f"{python} cannot import Pliant and torch: {why}; install both there: {install}"
            return Outcome(reason=reason, output=said)
        version = _version_in(answer)
        if version is None:
            return Outcome(reason=f"{python} is no Python interpreter; name one", output=said)
        if version != __version__:
            reason = f"{python} has Pliant {version}, but this server is {__version__}; install that there: {install}"
            return Outcome(reason=reason)
        return Outcome(python=python)

    def _run(
        self, command: list[str], streams: tuple[IO[bytes], IO[bytes]], limit_s: float, said: bytes = b""
    ) -> int | None:
        """Run a program that leads a group of its own; return its exit code, or None if it took too long.

        Args:
            command: the program and its arguments.
            streams: get what it prints.
            limit_s: after this time it is ended, with all that it has started.
            said: written to its standard input, which is then kept open for as long as this server lives.
        """
        with self._lock:
            if self._closed:
                raise InterruptedError
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=streams[0],
                stderr=streams[1],
                cwd="/",
                env=self._env,
                start_new_session=True,
            )
            self._processes.add(process)
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(said)
                process.stdin.flush()
            ended = _ended(process, limit_s)
        finally:
            with self._lock:
                _kill(process)  # its number is still its own: nobody has waited for it
                self._processes.discard(process)
            code = process.wait()
            with suppress(BrokenPipeError):
                process.stdin.close()
        return code if ended else None


def builder_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return what of the server's environment builders get: all, but for what would lead them astray."""
    passed = {k: v for k, v in env.items() if k not in _NOT_PASSED and not k.startswith("PLIANT_")}
    theirs = {uv: passed[pip] for pip, uv in _FOR_UV.items() if pip in passed}
    if "UV_FIND_LINKS" in theirs:
        theirs["UV_FIND_LINKS"] = ",".join(theirs["UV_FIND_LINKS"].split())
    return {**passed, **theirs, "PYTHONUNBUFFERED": "1"}


def _ended(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Wait until a process has ended, and leave it to be waited for; tell whether it has."""
    pidfd = os.pidfd_open(process.pid)
    try:
        waiting = select.poll()
        waiting.register(pidfd, select.POLLIN)
        return bool(waiting.poll(limit_s * 1000))
    finally:
        os.close(pidfd)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the group that a process leads; what is left of it after the leader's end too."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _version_in(answer: tuple[str, ...]) -> str | None:
    """Return the version of Pliant that an interpreter found; None if it did not run the program."""
    try:
        return str(json.loads(answer[-1])[0])
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _gist(said: tuple[str, ...]) -> str:
    """Return the line that says most of what went wrong."""
    words = ("error", "cause", "×")
    errors = [line for line in said if line.strip().lower().startswith(words) and "ResolutionImpossible" not in line]
    return (errors or list(said[-1:]) or ["the builder says nothing"])[-1].strip()
