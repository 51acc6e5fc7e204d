"""Job files: a submission as YAML or JSON, with the keys that the options of `submit` are."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pliant.cli.jobs.asked import OPTIONS
from pliant.cli.jobs.file_keys import FileKeys, JobFile, Key, keys_of, read_file, write_file


def _keys() -> Iterator[Key]:
    yield PATH_KEY
    yield from keys_of(OPTIONS)
    yield ARGS_KEY
    yield Key(name="array", field="array", type="values", help="A job for every combination of these.")
    yield Key(name="array-max", field="array_max", type="integer", help="Run so many of them at once at most.")


PATH_KEY: Final = Key(
    name="path",
    field="path",
    type="text",
    help="A folder of code, or one Python file; if left out: the folder of the file.",
)
ARGS_KEY: Final = Key(name="args", field="args", type="texts", help="Passed to the script.")
JOB_KEYS: Final = FileKeys("submit", "job-files.md", _keys())
KEYS: Final[Mapping[str, Key]] = JOB_KEYS.by_name


def read_job_file(path: Path) -> JobFile:
    """Return what a job file says.

    Raises:
        InvalidInput: with all keys that are none, and all values that are not what their key takes.
    """
    return read_file(path, JOB_KEYS)


def write_job_file(path: Path, typed: Mapping[str, Any]) -> tuple[str, ...]:
    """Write what was typed for a submission into a new file, without secrets; return notes of what is not in it.

    Raises:
        InvalidInput: the file is there already, or cannot be written, or its name does not end as one's of a job file.
    """
    return write_file(path, typed, JOB_KEYS)
