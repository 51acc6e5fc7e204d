"""The process that imports one data set: reads what to import, reports how far it is, and ends with its server.

`python -m pliant.entry.importer`: an `ImportSpec` is the first line of standard input, which then stays open; standard
output gets one JSON object per line (`pliant.catalog.datasets.messages`). Exit codes: 0 after an
answer, 3 if the server went away.
"""

import fcntl
import os
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

from pliant.catalog.datasets.importer import run_import
from pliant.catalog.datasets.messages import (
    IMPORT_SPEC,
    MESSAGE,
    ImporterMessage,
    ImportRefusal,
    ImportResult,
    ImportSpec,
    ProgressReport,
)
from pliant.core.dataset import ImportProgress
from pliant.core.errors import PliantError
from pliant.files.space import disk_error

_REPORT_EVERY_S = 0.2
LOCK = "lock"
"""In the work folder; held as long as this process can write there."""


def main(source: BinaryIO, answers: BinaryIO) -> int:
    """Carry out one import."""
    spec = IMPORT_SPEC.validate_json(source.readline())
    threading.Thread(target=_end_with_server, args=(source,), daemon=True).start()
    lock = os.open(Path(spec.work) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _say(answers, _carry_out(spec, _Reporter(answers)))
    return 0


def _carry_out(spec: ImportSpec, reporter: "_Reporter") -> ImportResult | ImportRefusal:
    try:
        return run_import(spec, reporter.report)
    except PliantError as error:
        return ImportRefusal(reason=str(error))
    except OSError as error:
        return ImportRefusal(reason=str(disk_error(Path(spec.work), error)))
    except (MemoryError, RecursionError) as error:
        return ImportRefusal(reason=f"it needs more memory than there is ({type(error).__name__}); import it in parts")


class _Reporter:
    """Reports every new phase, and progress in it a few times a second."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._phase = ""
        self._reported_at = 0.0

    def report(self, progress: ImportProgress) -> None:
        now = time.monotonic()
        if progress.phase != self._phase or now - self._reported_at > _REPORT_EVERY_S:
            self._phase, self._reported_at = progress.phase, now
            _say(self._answers, ProgressReport(progress=progress))


def _say(answers: BinaryIO, said: ImporterMessage) -> None:
    answers.write(MESSAGE.dump_json(said) + b"\n")
    answers.flush()


def _end_with_server(source: BinaryIO) -> None:
    while os.read(source.fileno(), 4096):  # not through the buffer, whose lock would be held at our own end
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
