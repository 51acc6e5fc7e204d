"""Whether a submission can be run at all: everything that is wrong with it, found before anything is kept.

It reads the unpacked code and the file system; it runs nothing of what was submitted.
"""

import ast
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from pliant.control.jobs.kind import Kinds
from pliant.control.requests.reach import Reach
from pliant.control.settings import ControlSettings
from pliant.core.errors import Problem
from pliant.core.job import JobId, JobSpec
from pliant.core.space import PARAM_PREFIX

_JOB = re.compile(r"job-[0-9]+")
_OPEN = "that everybody on this machine can read"


def resolve_jobs(spec: JobSpec, settings: ControlSettings, sees: Callable[[str], bool]) -> JobSpec:
    """Return what was asked for with the jobs that it starts from turned into the paths of their files.

    A trial that begins from the state of another one starts from what that one's job kept at the end of an epoch.

    The name of a job that does not exist, or that the person does not see, stays a name: no file here is called so, and
    the submission is refused.
    """
    weights, resume_from = spec.weights, spec.resume_from
    if weights is not None and _JOB.fullmatch(weights) and sees(weights):
        weights = str(settings.folders(JobId(weights)).weights)
    if resume_from is not None and _JOB.fullmatch(resume_from) and sees(resume_from):
        resume_from = str(settings.folders(JobId(resume_from)).checkpoints)
    if spec.trial is not None and spec.trial.parent_job:
        state = settings.folders(JobId(spec.trial.parent_job)).checkpoints / f"epoch-{spec.trial.parent_epoch}"
        spec, weights, resume_from = replace(spec, own_numbers=True), None, str(state)
    jobs = settings.home / "jobs"
    data = spec.data_dir if spec.dataset is not None else _resolved(spec.data_dir, jobs)
    return replace(spec, weights=_resolved(weights, jobs), resume_from=_resolved(resume_from, jobs), data_dir=data)


def _resolved(path: str | None, jobs: Path) -> str | None:
    """Return a path with its links followed now, once and for all; in the folder of a job none is followed at all."""
    if path is None or "\0" in path or not os.path.isabs(path) or Path(os.path.normpath(path)).is_relative_to(jobs):
        return path
    return os.path.realpath(path)


def problems_of_spec(spec: JobSpec, kinds: Kinds, reach: Reach) -> tuple[Problem, ...]:
    """Return what is wrong with what was asked for, whatever the code is; `reach` is what its owner may name."""
    return (*kinds.of_spec(spec).problems(spec), *_other_problems(spec, reach))


def problems_of_code(spec: JobSpec, code: Path) -> tuple[Problem, ...]:
    """Return what keeps the script from being run out of this folder."""
    message = _script_problem(spec.script, code, is_python=spec.endpoint is None or spec.script.endswith(".py"))
    return (Problem(field="script", message=message),) if message else ()


def _other_problems(spec: JobSpec, reach: Reach) -> Iterator[Problem]:
    if spec.data_dir is not None and spec.dataset is None and not reach.has_folder(spec.data_dir):
        yield Problem(
            field="data_dir",
            message=f"{spec.data_dir!r} is not a folder here that you may name; give the whole path of one {_OPEN}",
        )
    yield from _origin_problems(spec, reach)
    if spec.python is not None and not reach.has_program(spec.python):
        yield Problem(
            field="python",
            message=f"{spec.python!r} is not a program here that you may name; give the whole path of a Python "
            f"interpreter {_OPEN}",
        )
    for name in sorted(spec.env):
        if name.startswith("PLIANT_") and not name.startswith(PARAM_PREFIX):
            yield Problem(field=f"env.{name}", message="names that begin with PLIANT_ are Pliant's own; use another")
    texts = {"script": spec.script, **{f"env.{k}": v for k, v in spec.env.items()}}
    texts.update({f"args.{i}": arg for i, arg in enumerate(spec.args)})
    for field, text in texts.items():
        if "\0" in text:
            yield Problem(field=field, message="it holds a NUL character, which no process can be given; remove it")


def _origin_problems(spec: JobSpec, reach: Reach) -> Iterator[Problem]:
    """Yield what keeps the training from starting where it was asked to."""
    if spec.weights is not None and not (reach.has_file(spec.weights) or reach.is_to_come(spec.weights)):
        yield Problem(
            field="weights",
            message=f"there is no file {spec.weights!r} here that you may name; give the whole path of a state_dict "
            f"{_OPEN}, or a job that has saved its model",
        )
    if spec.resume_from is not None and not (
        reach.has_checkpoint(spec.resume_from) or reach.is_to_come(spec.resume_from)
    ):
        message = f"there is no checkpoint in {spec.resume_from!r}; give a job that has saved one"
        if spec.trial is not None and spec.trial.parent_job:
            message = (
                f"the state that {spec.trial.parent_job} had at the end of epoch {spec.trial.parent_epoch}, from which "
                f"it was to begin, is not there: the job was deleted, or could not write it (its events say so)"
            )
        yield Problem(field="resume_from", message=message)


def _script_problem(script: str, code: Path, *, is_python: bool = True) -> str:
    path = PurePosixPath(script)
    if path.is_absolute() or ".." in path.parts:
        return f"{script!r} points outside the code folder; give a path relative to it"
    if "\0" in script:
        return ""
    file = code / path
    if not file.is_file():
        kind = "is a folder" if file.is_dir() else "is not in the code folder"
        return f"{script!r} {kind}; {_scripts_there(code)}"
    if not is_python:
        return ""
    try:
        ast.parse(file.read_bytes(), filename=script)
    except SyntaxError as error:
        text = f": {error.text.strip()[:200]!r}" if error.text else ""
        line = f", line {error.lineno}" if error.lineno else ""
        return f"{script!r} does not parse{line}{text} ({error.msg}); mend it and submit again"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"{script!r} does not parse ({type(error).__name__}: {error}); mend it and submit again"
    return ""


def _scripts_there(code: Path) -> str:
    there = sorted(p.name for p in code.glob("*.py"))[:8]
    return f"there are {', '.join(there)}" if there else "there is no Python file at its top"
