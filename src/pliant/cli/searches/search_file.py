"""Search files: what `tune` is asked for as YAML or JSON, with the keys that its options are.

`python -m pliant.cli.searches.search_file` prints the table that `docs/tuning.md` holds. A test says when it is stale.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pliant.cli.jobs.file_keys import FileKeys, JobFile, Key, keys_of, read_file, write_file
from pliant.cli.jobs.job_file import ARGS_KEY, PATH_KEY
from pliant.cli.jobs.job_schema import rows, schema_printer
from pliant.cli.searches.asked import OPTIONS


def _keys() -> Iterator[Key]:
    yield PATH_KEY
    space = OPTIONS["parameters"]
    yield Key(name="parameters", field="parameters", type="parameters", help="What may be chosen.", option=space)
    for key in keys_of({field: option for field, option in OPTIONS.items() if field != "parameters"}):
        yield replace(key, name="constraints") if key.field == "constraints" else key
    yield Key(name="direction", field="direction", type="text", help="minimize or maximize the metric.")
    yield ARGS_KEY


SEARCH_KEYS: Final = FileKeys("tune", "tuning.md", _keys())
print_schema: Final = schema_printer(SEARCH_KEYS, "Search of Pliant")


def read_search_file(path: Path) -> JobFile:
    """Return what a search file says.

    Raises:
        InvalidInput: with all keys that are none, and all values that are not what their key takes.
    """
    return read_file(path, SEARCH_KEYS)


def write_search_file(path: Path, typed: Mapping[str, Any]) -> tuple[str, ...]:
    """Write what was typed for a search into a new file, without secrets; return notes of what is not in it.

    Raises:
        InvalidInput: as for `write_file`.
    """
    return write_file(path, typed, SEARCH_KEYS)


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows(SEARCH_KEYS)) + "\n")
