"""The process that imports one data set: takes an order, reports how far it is, and ends with its server.

`python -m pliant.entry.importer`: the order is the first line of standard input, which then stays open; standard
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
    MESSAGE,
    ORDER,
    ImporterMessage,
    ImportOrder,
    ImportRefusal,
    ImportResult,
    ProgressReport,
)
from pliant.core.dataset import ImportProgress
from pliant.core.errors import PliantError
from pliant.files.space import disk_error

_REPORT_EVERY_S = 0.2
LOCK = "lock"
"""In the work folder; held as long as this process can write there."""


def main(orders: BinaryIO, answers: BinaryIO) -> int:
    """Carry out one order."""
    order = ORDER.validate_json(orders.readline())
    threading.Thread(target=_end_with_server, args=(orders,), daemon=True).start()
    lock = os.open(Path(order.work) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _say(answers, _carry_out(order, _Reporter(answers)))
    return 0


def _carry_out(order: ImportOrder, reporter: "_Reporter") -> ImportResult | ImportRefusal:
    try:
        return run_import(order, reporter.report)
    except PliantError as error:
        return ImportRefusal(reason=str(error))
    except OSError as error:
        return ImportRefusal(reason=str(disk_error(Path(order.work), error)))
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


def _end_with_server(orders: BinaryIO) -> None:
    while os.read(orders.fileno(), 4096):  # not through the buffer, whose lock would be held at our own end
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
