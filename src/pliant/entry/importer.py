"""The process that imports one data set: takes an order, tells how far it is, and ends with its server.

`python -m pliant.entry.importer`: the order is the first line of standard input, which then stays open; standard
output gets one JSON object per line (`pliant.catalog.datasets.order`). Exit codes: 0 after an
answer, 3 if the server went away.
"""

import fcntl
import os
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

from pliant.catalog.datasets.order import ORDER, SAID, Done, ImportOrder, Refused, Said, Told
from pliant.catalog.datasets.work import work
from pliant.core.dataset import ImportProgress
from pliant.core.errors import PliantError
from pliant.files.space import disk_error

_TELL_EVERY_S = 0.2
_NICENESS = 10
"""Tasks and the server come first."""
LOCK = "lock"
"""In the work folder; held as long as this process can write there."""


def main(orders: BinaryIO, answers: BinaryIO) -> int:
    """Carry out one order."""
    os.nice(_NICENESS)
    order = ORDER.validate_json(orders.readline())
    threading.Thread(target=_end_with_server, args=(orders,), daemon=True).start()
    lock = os.open(Path(order.work) / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _say(answers, _carried_out(order, _Teller(answers)))
    return 0


def _carried_out(order: ImportOrder, teller: "_Teller") -> Done | Refused:
    try:
        return work(order, teller.tell)
    except PliantError as error:
        return Refused(reason=str(error))
    except OSError as error:
        return Refused(reason=str(disk_error(Path(order.work), error)))
    except (MemoryError, RecursionError) as error:
        return Refused(reason=f"it needs more memory than there is ({type(error).__name__}); import it in parts")


class _Teller:
    """Tells of every new phase, and of progress in it a few times a second."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._phase = ""
        self._told_at = 0.0

    def tell(self, progress: ImportProgress) -> None:
        now = time.monotonic()
        if progress.phase != self._phase or now - self._told_at > _TELL_EVERY_S:
            self._phase, self._told_at = progress.phase, now
            _say(self._answers, Told(progress=progress))


def _say(answers: BinaryIO, said: Said) -> None:
    answers.write(SAID.dump_json(said) + b"\n")
    answers.flush()


def _end_with_server(orders: BinaryIO) -> None:
    while os.read(orders.fileno(), 4096):  # not through the buffer, whose lock would be held at our own end
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
