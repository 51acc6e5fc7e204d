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
from pliant.control.settings import ControlSettings
from pliant.core.errors import Problem
from pliant.core.job import JobId, JobSpec

_JOB = re.compile(r"job-[0-9]+")


def resolve_jobs(spec: JobSpec, settings: ControlSettings, sees: Callable[[str], bool]) -> JobSpec:
    """Return what was asked for with the jobs that it starts from turned into the paths of their files.

    The name of a job that does not exist, or that the person does not see, stays a name: no file here is called so, and
    the submission is refused. A path into the folder of such a job is made relative, and refused for the same reason.
    """
    weights, resume_from = spec.weights, spec.resume_from
    if weights is not None and _JOB.fullmatch(weights) and sees(weights):
        weights = str(settings.folders(JobId(weights)).weights)
    if resume_from is not None and _JOB.fullmatch(resume_from) and sees(resume_from):
        resume_from = str(settings.folders(JobId(resume_from)).checkpoints)
    jobs = settings.folders(JobId("")).root
    return replace(
        spec,
        weights=_visible(weights, jobs, sees),
        resume_from=_visible(resume_from, jobs, sees),
        data_dir=_visible(spec.data_dir, jobs, sees),
    )


def _visible(path: str | None, jobs: Path, sees: Callable[[str], bool]) -> str | None:
    """Return a path, relative if it leads into the folder of a job that the person does not see."""
    if path is None or "\0" in path or not os.path.isabs(path):
        return path
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(jobs)):
        return path
    inside = real.relative_to(os.path.realpath(jobs))
    return path if inside.parts and sees(inside.parts[0]) else os.path.join(*inside.parts, "")


def problems_of_spec(spec: JobSpec, kinds: Kinds) -> tuple[Problem, ...]:
    """Return what is wrong with what was asked for, whatever the code is."""
    return (*kinds.of_spec(spec).problems(spec), *_other_problems(spec))


def problems_of_code(spec: JobSpec, code: Path) -> tuple[Problem, ...]:
    """Return what keeps the script from being run out of this folder."""
    message = _script_problem(spec.script, code)
    return (Problem(field="script", message=message),) if message else ()


def _other_problems(spec: JobSpec) -> Iterator[Problem]:
    if spec.data_dir is not None and not (os.path.isabs(spec.data_dir) and Path(spec.data_dir).is_dir()):
        yield Problem(
            field="data_dir", message=f"{spec.data_dir!r} is not a folder here; give the whole path of one that is"
        )
    yield from _origin_problems(spec)
    if spec.python is not None and not _is_program(spec.python):
        yield Problem(
            field="python",
            message=f"{spec.python!r} is not a program here; give the whole path of a Python interpreter",
        )
    for name in sorted(spec.env):
        if name.startswith("PLIANT_"):
            yield Problem(field=f"env.{name}", message="names that begin with PLIANT_ are Pliant's own; use another")
    texts = {"script": spec.script, **{f"env.{k}": v for k, v in spec.env.items()}}
    texts.update({f"args.{i}": arg for i, arg in enumerate(spec.args)})
    for field, text in texts.items():
        if "\0" in text:
            yield Problem(field=field, message="it holds a NUL character, which no process can be given; remove it")


def _origin_problems(spec: JobSpec) -> Iterator[Problem]:
    """Yield what keeps the training from starting where it was asked to."""
    if spec.weights is not None and not (os.path.isabs(spec.weights) and Path(spec.weights).is_file()):
        yield Problem(
            field="weights",
            message=f"there is no file {spec.weights!r} here; give the whole path of a state_dict, or a job that has "
            f"saved its model",
        )
    if spec.resume_from is not None and not _has_checkpoint(spec.resume_from):
        yield Problem(
            field="resume_from",
            message=f"there is no checkpoint in {spec.resume_from!r}; give a job that has saved one",
        )


def _has_checkpoint(folder: str) -> bool:
    return os.path.isabs(folder) and any(Path(folder).glob("step-*.ckpt"))


def _is_program(path: str) -> bool:
    return os.path.isabs(path) and Path(path).is_file() and os.access(path, os.X_OK)


def _script_problem(script: str, code: Path) -> str:
    path = PurePosixPath(script)
    if path.is_absolute() or ".." in path.parts:
        return f"{script!r} points outside the code folder; give a path relative to it"
    if "\0" in script:
        return ""
    file = code / path
    if not file.is_file():
        kind = "is a folder" if file.is_dir() else "is not in the code folder"
        return f"{script!r} {kind}; {_scripts_there(code)}"
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
