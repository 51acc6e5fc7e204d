"""Fetches a backup of a server into a file that nobody else can read."""

import os
import tempfile
from pathlib import Path
from typing import Final

from pliant.client.http.connection import Connection
from pliant.core.errors import Conflict, Unavailable

_TIMEOUT_S: Final = 600.0


def fetch_backup(connection: Connection, to: Path, *, results: bool, data: bool) -> Path:
    """Write a backup to the new file `to` and return it.

    Raises:
        Conflict: the file exists; nothing was changed.
        Unavailable: the server did not finish it, or the disk is full; nothing is left.
    """
    _check_free(to)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{to.name}.", dir=to.parent)
    except OSError as error:
        raise Unavailable(f"no file can be made in {to.parent}: {error.strerror}; give another place") from error
    draft = Path(name)
    try:
        params = {"results": results, "data": data}
        with (
            os.fdopen(descriptor, "wb") as out,
            connection.stream("/backup", params, timeout_s=_TIMEOUT_S) as chunks,
        ):
            out.writelines(chunks)
            out.flush()
            os.fsync(out.fileno())
        _check_free(to)
        draft.replace(to)
    except OSError as error:
        raise Unavailable(f"the backup cannot be written to {to}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
    return to


def _check_free(to: Path) -> None:
    if to.exists():
        raise Conflict(f"{to} exists; give the name of a new file")
