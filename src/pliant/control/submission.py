"""Whether a submission can be run at all: everything that is wrong with it, found before anything is kept.

It reads the unpacked code and the file system; it runs nothing of what was submitted.
"""

import ast
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pliant.core.errors import Problem
from pliant.core.job import JobSpec


def problems_of_spec(spec: JobSpec) -> tuple[Problem, ...]:
    """Return what is wrong with what was asked for, whatever the code is."""
    return (*problems_of_bounds(spec.min_tasks, spec.max_tasks, spec.virtual_workers), *_other_problems(spec))


def problems_of_code(spec: JobSpec, code: Path) -> tuple[Problem, ...]:
    """Return what keeps the script from being run out of this folder."""
    message = _script_problem(spec.script, code)
    return (Problem(field="script", message=message),) if message else ()


def problems_of_bounds(min_tasks: int, max_tasks: int, virtual_workers: int) -> tuple[Problem, ...]:
    """Return what is wrong with these limits of a job's size."""
    problems = []
    if min_tasks > max_tasks:
        problems.append(
            Problem(
                field="min_tasks",
                message=f"{min_tasks} is above max_tasks {max_tasks}; lower the one or raise the other",
            )
        )
    if max_tasks > virtual_workers:
        problems.append(
            Problem(
                field="max_tasks",
                message=f"{max_tasks} is above virtual_workers {virtual_workers}: the global batch cannot be cut finer "
                f"than that; lower max_tasks",
            )
        )
    return tuple(problems)


def _other_problems(spec: JobSpec) -> Iterator[Problem]:
    if spec.data_dir is not None and not (os.path.isabs(spec.data_dir) and Path(spec.data_dir).is_dir()):
        yield Problem(
            field="data_dir", message=f"{spec.data_dir!r} is not a folder here; give the whole path of one that is"
        )
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
