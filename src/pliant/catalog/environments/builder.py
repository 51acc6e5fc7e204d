"""Builds environments and tries interpreters, each in a child process. Knows no job, no name and no registry.

What a build needs lies in a folder of its own, which is known by the key of the build.
"""

import json
import os
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant import __version__
from pliant.catalog.children.child import Child, ChildProgram
from pliant.catalog.children.sinks import LogSink, TailSink
from pliant.catalog.environments import build_program
from pliant.catalog.environments.build_program import BuildSpec, MaskedLog
from pliant.catalog.environments.environment import BaseEnvironment, last_lines

LOG_FILE: Final = "build.log"
_TAIL_BYTES: Final = 64 << 10
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
    "PIP_TRUSTED_HOST": "UV_INSECURE_HOST",
    "PIP_CERT": "SSL_CERT_FILE",
}
"""Where packages come from, in pip's words and in uv's. PIP_NO_INDEX is the build program's to pass on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLimits:
    """How much is built at once, and for how long."""

    num_builders: int = 2
    num_probes: int = 2
    build_s: float = 1800.0
    probe_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOutcome:
    """What came of a build or a try; `reason` is empty if it is good."""

    python: str = ""
    builder: str = ""
    num_bytes: int = 0
    reason: str = ""
    output: tuple[str, ...] = ()


class EnvironmentBuilder:
    """Builds in folders below one folder. Safe to call from any thread.

    Args:
        folder: has a folder for every key.
        env: the server's own environment: it says where packages come from.
        base: what all environments build upon.
        uv: the program that installs.
    """

    def __init__(
        self, *, folder: Path, env: Mapping[str, str], base: BaseEnvironment, limits: BuildLimits, uv: str
    ) -> None:
        self.folder = folder
        self.base = base
        self.limits = limits
        self._env = builder_env(env)
        self._uv = uv

    def build(self, child: Child, key: str) -> BuildOutcome:
        """Build what lies in the folder of this key.

        Raises:
            ChildStopped: before it was done.
            OSError: there is no room for it.
        """
        folder = self.folder / key
        (folder / build_program.RESULT).unlink(missing_ok=True)
        spec = BuildSpec(
            folder=str(folder), site=list(self.base.site), constraints=list(self.base.constraints), uv=self._uv
        )
        program = ChildProgram(
            command=[sys.executable, "-I", build_program.__file__],
            input=json.dumps(spec).encode() + b"\n",
            env=self._env,
            limit_s=self.limits.build_s,
        )
        with closing(LogSink(folder / LOG_FILE)) as log:
            code = child.run(program, log)
        output = last_lines(self.read_log(key))
        if code is None:
            limit = f"the builder was not done after {self.limits.build_s:g} s and was ended"
            return BuildOutcome(reason=f"it could not be built: {limit}; ask for fewer packages", output=output)
        if code != 0:
            return BuildOutcome(
                reason=f"it could not be built: {_headline(output)}; mend the requirements", output=output
            )
        found = json.loads((folder / build_program.RESULT).read_text())
        tried = self.probe(child, found["python"])
        if tried.reason:
            return tried
        return BuildOutcome(python=found["python"], builder=found["builder"], num_bytes=found["num_bytes"])

    def probe(self, child: Child, python: str) -> BuildOutcome:
        """Try whether an interpreter can run tasks of this server.

        Raises:
            ChildStopped: before it was known.
        """
        out, err = TailSink(), TailSink()
        # not niced: a pool whose tasks keep all cores busy would let every try run into its limit
        program = ChildProgram(command=[python, "-c", _PROBE], env=self._env, limit_s=self.limits.probe_s, niceness=0)
        try:
            code = child.run(program, out, err)
        except OSError as error:
            return BuildOutcome(reason=f"{python} cannot be run ({error.strerror}); name another interpreter")
        output = last_lines(MaskedLog(self._env).mask(err.text))
        reason = self._probe_problem(python, code, output, last_lines(out.text, 1))
        return BuildOutcome(reason=reason, output=output) if reason else BuildOutcome(python=python)

    def _probe_problem(self, python: str, code: int | None, output: tuple[str, ...], answer: tuple[str, ...]) -> str:
        """Return why an interpreter cannot run tasks; empty if it can."""
        install = f"{python} -m pip install pliant=={__version__}"
        if code is None:
            return f"{python} did not import Pliant and torch in {self.limits.probe_s:g} s; try it there"
        if code != 0:
            why = output[-1] if output else f"exit code {code}"
            return f"{python} cannot import Pliant and torch: {why}; install both there: {install}"
        version = _version_in(answer)
        if version is None:
            return f"{python} is no Python interpreter; name one"
        if version != __version__:
            return f"{python} has Pliant {version}, but this server is {__version__}; install that there: {install}"
        return ""

    def read_log(self, key: str, num_bytes: int = _TAIL_BYTES) -> str:
        """Return the end of the log of a build; empty if there is none."""
        try:
            with (self.folder / key / LOG_FILE).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - num_bytes))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""


def builder_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return what of the server's environment builders get: all, but for what would lead them astray."""
    passed = {k: v for k, v in env.items() if k not in _NOT_PASSED and not k.startswith("PLIANT_")}
    theirs = {uv: passed[pip] for pip, uv in _FOR_UV.items() if pip in passed}
    if "UV_FIND_LINKS" in theirs:
        theirs["UV_FIND_LINKS"] = ",".join(theirs["UV_FIND_LINKS"].split())
    return {**passed, **theirs, "PYTHONUNBUFFERED": "1"}


def _version_in(answer: tuple[str, ...]) -> str | None:
    """Return the version of Pliant that an interpreter found; None if it did not run the program."""
    try:
        return str(json.loads(answer[-1])[0])
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def _headline(output: tuple[str, ...]) -> str:
    """Return the line that says most of what went wrong."""
    errors = [line for line in output if line.strip().lower().startswith(("error", "cause", "×"))]
    return (errors or list(output[-1:]) or ["the builder says nothing"])[-1].strip()
