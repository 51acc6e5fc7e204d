"""Optuna's storages, as commands name them, through the process that opens them (`pliant.entry.study`)."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from pliant.core.errors import InvalidInput, Unavailable
from pliant.core.search import SearchSettings, Trial
from pliant.tune.study_messages import (
    ReadStudy,
    StudyAnswer,
    StudyFound,
    StudyRefusal,
    StudyRequest,
    WriteStudy,
    decode_answer,
    encode_request,
)

COMMAND: Final = (sys.executable, "-P", "-m", "pliant.entry.study")
_VARIABLE: Final = "env:"
_PASSWORD: Final = re.compile(r"(://[^:/@\s]*:).*@", re.DOTALL)


def write_study(to: str, study: str, settings: SearchSettings, trials: Sequence[Trial]) -> None:
    """Write the trials of a search as a new study.

    Raises:
        InvalidInput: there is a study of this name, or the storage cannot be written.
    """
    storage = _storage(to, "STORAGE")
    _ask(WriteStudy(storage=storage, study=study, settings=settings, trials=tuple(trials)), "STORAGE")


def read_study(source: str, study: str | None, option: str, *, max_trials: int) -> StudyFound:
    """Return the trials of a study that have ended, of too many the newest.

    Args:
        source: the storage.
        study: None: the only one there is.
        option: where the storage was named.
        max_trials: so many at most.

    Raises:
        InvalidInput: there is no such study, or several and none is named, or the storage cannot be read.
    """
    found = _ask(ReadStudy(storage=_storage(source, option), study=study, max_trials=max_trials), option)
    assert isinstance(found, StudyFound), "who reads is answered with a study"
    return found


def hide_password(text: str) -> str:
    """Return the name of a storage without its password."""
    return _PASSWORD.sub(r"\1***@", text)


def refuse_password(text: str, option: str) -> None:
    """Refuse a password where the name of a storage is written down.

    Raises:
        InvalidInput: it holds one.
    """
    if hide_password(text) != text:
        message = (
            f"{hide_password(text)!r} holds a password, and the file is to hold none; name a variable: env:STUDIES"
        )
        raise InvalidInput.at(option, message)


def _storage(text: str, field: str) -> str:
    name = text.removeprefix(_VARIABLE)
    if name == text:
        return text
    if not os.environ.get(name):
        raise InvalidInput.at(field, f"the variable {name!r:.80} is not set; set it to the URL of a storage")
    return os.environ[name]


def _ask(request: StudyRequest, option: str) -> StudyAnswer:
    done = subprocess.run(COMMAND, input=encode_request(request), capture_output=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        said = f": {hide_password(lines[-1])[:300]}" if lines else ""
        raise Unavailable(f"what opens Optuna's storages ended with the exit code {done.returncode}{said}")
    answer = decode_answer(done.stdout)
    if isinstance(answer, StudyRefusal):
        raise InvalidInput.at("--study" if answer.field == "study" else option, answer.message)
    return answer
