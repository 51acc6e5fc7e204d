"""Builds environments from requirements, each in a child process. Knows no job, no name and no registry.

What a build needs lies in a folder of its own, which is known by the key of the build. All of that folder is the
server's but `venv`, which belongs to whoever builds: the builders, if all lines are names of an index, and then people
may share it; the person, if there are wheels of theirs among them. The builder is not the last word: what it has made
is tried as the person who asked for it, in another process, which has none of the passwords of an index.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.catalog.children.child import Child, ChildProgram
from pliant.catalog.children.reach import AsBuilder, AsPerson, ChildIsolation, ChildReach, ChildUser
from pliant.catalog.children.sinks import LogSink, TailSink
from pliant.catalog.children.work_folder import remove_strange, work_folder
from pliant.catalog.environments import build_program
from pliant.catalog.environments.build_program import BuildSpec
from pliant.catalog.environments.environment import BaseEnvironment, BuildOutcome, last_lines
from pliant.catalog.environments.package_index import PackageIndex
from pliant.catalog.environments.probe import EnvironmentProber
from pliant.catalog.environments.requirements import are_personal
from pliant.isolation.launcher import CANNOT_ENTER

LOG_FILE: Final = "build.log"
CACHE: Final = ".cache"
"""Beside the folders of builds: what was fetched for environments that people may share. Persons' builds have none."""
_TAIL_BYTES: Final = 64 << 10
_MAX_SHOWN: Final = 100
_READABLE: Final = 0o755
"""Tasks may run as another user than the one who built it; walls keep it from those who do not use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """How much is built at once, and for how long."""

    num_builders: int = 2
    num_probes: int = 2
    build_s: float = 1800.0
    probe_s: float = 120.0


class EnvironmentBuilder:
    """Builds in folders below one folder. Safe to call from any thread.

    Args:
        folder: has a folder for every key.
        index: returns where packages come from; it may raise OSError.
        base: what all environments build upon.
        uv: the program that installs.
        isolation: keeps the children within their reach.
        closed: Pliant's own folder: what lies in it is no environment that somebody made.
    """

    def __init__(
        self,
        *,
        folder: Path,
        index: Callable[[], PackageIndex],
        base: BaseEnvironment,
        limits: BuildLimits,
        uv: str,
        isolation: ChildIsolation,
        closed: Path,
    ) -> None:
        self.folder = folder
        self.base = base
        self.limits = limits
        self.prober = EnvironmentProber(folder=folder, isolation=isolation, closed=closed, limit_s=limits.probe_s)
        self._index = index
        self._uv = uv
        self._isolation = isolation

    def build(self, child: Child, key: str, person: str) -> BuildOutcome:
        """Build what lies in the folder of this key, and try it as this person.

        Raises:
            ChildStopped: before it was done.
            OSError: there is no room for it.
        """
        folder = self.folder / key
        out = TailSink()
        with closing(LogSink(folder / LOG_FILE)) as log:
            code = self._install(child, folder, person, out, log)
        output = last_lines(self.read_log(key))
        if code is None:
            limit = f"the builder was not done after {self.limits.build_s:g} s and was ended"
            return BuildOutcome(reason=f"it could not be built: {limit}; ask for fewer packages", output=output)
        if code == CANNOT_ENTER:
            return BuildOutcome(reason=f"it could not be built: {_headline(output)}; tell the server's administrator")
        found = _parse_result(out.text)
        if code != 0 or found is None:
            return BuildOutcome(
                reason=f"it could not be built: {_headline(output)}; mend the requirements", output=output
            )
        python = str(folder / "venv" / "bin" / "python")
        tried = self.prober.probe(child, python, (str(folder / "venv"), *self.base.site), person)
        if tried.reason:
            return tried
        builder, num_bytes = found
        return BuildOutcome(python=python, builder=builder, num_bytes=num_bytes)

    def _install(self, child: Child, folder: Path, person: str, out: TailSink, log: LogSink) -> int | None:
        """Make the virtual environment and install into it; return the exit code."""
        text = (folder / "requirements.txt").read_text()
        user: ChildUser = AsPerson(person) if are_personal(text) else AsBuilder()
        index = self._index()
        venv = folder / "venv"
        remove_strange(venv)
        self._isolation.make_folder(venv, user)
        venv.chmod(_READABLE)
        with work_folder(self.folder, self._isolation, user, index.files) as home:
            cache = self._cache_for(user, home)
            spec = BuildSpec(
                folder=str(folder), site=list(self.base.site), constraints=list(self.base.constraints), uv=self._uv
            )
            program = ChildProgram(
                command=[sys.executable, "-I", build_program.__file__],
                input=json.dumps(spec).encode() + b"\n",
                # each of its folders is a mount of its own, and no file has names in two mounts
                env={**index.variables, "UV_CACHE_DIR": str(cache), "UV_LINK_MODE": "copy", "PYTHONUNBUFFERED": "1"},
                limit_s=self.limits.build_s,
            )
            reach = ChildReach(
                user=user,
                home=home,
                reads=(str(folder), self._uv, *self.base.site, *index.places),
                writes=tuple(str(folder) for folder in (venv, cache) if not folder.is_relative_to(home)),
            )
            return child.run(self._isolation.confine(program, reach), out, log)

    def _cache_for(self, user: ChildUser, home: Path) -> Path:
        """Return where uv keeps what it fetches: nothing that a person's build has written is used for others."""
        if user != AsBuilder():
            return home / CACHE
        if not (cache := self.folder / CACHE).exists():
            self._isolation.make_folder(cache, user)
        return cache

    def read_log(self, key: str, num_bytes: int = _TAIL_BYTES) -> str:
        """Return the end of the log of a build; empty if there is none."""
        try:
            with (self.folder / key / LOG_FILE).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - num_bytes))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""


def _parse_result(answer: str) -> tuple[str, int] | None:
    """Return what built, and how many bytes there are; None if the build program did not say it."""
    try:
        found = json.loads(last_lines(answer, 1)[0])
        return str(found["builder"])[:_MAX_SHOWN], max(0, int(found["num_bytes"]))
    except (IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _headline(output: tuple[str, ...]) -> str:
    """Return the line that says most of what went wrong."""
    errors = [line for line in output if line.strip().lower().startswith(("error", "cause", "×"))]
    return (errors or list(output[-1:]) or ["the builder says nothing"])[-1].strip()
