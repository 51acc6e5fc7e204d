"""Sends code, and what is to be done with it."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx

from pliant.api.jobs import JobRequest
from pliant.client.folders.pack import Limits, pack
from pliant.client.folders.requirements import beside
from pliant.client.http.connection import Connection
from pliant.core.errors import InvalidInput, Problem

DELETE_TIMEOUT_S: Final = 600.0
"""The server removes all files of a job before it answers."""
UPLOAD_TIMEOUT_S: Final = 300.0
"""The server unpacks and checks the code before it answers."""


def send_code(
    connection: Connection,
    route: str,
    code: Path,
    request: JobRequest,
    limits: Limits | None = None,
    *,
    also: Sequence[Path] = (),
) -> httpx.Response:
    """Pack a folder or a single file, send it with a request, and return the answer.

    Args:
        limits: of what is sent; 64 MiB packed if left out.
        also: files that are packed beside the code.

    Raises:
        InvalidInput: the script is not in it; or whatever the server finds wrong.
    """
    with tempfile.TemporaryFile() as archive:
        names = pack(code, archive, limits, also=(*beside(code, request.environment), *also))
        if request.script not in names:
            raise InvalidInput(_no_script(request.script, code, names))
        archive.seek(0)
        return connection.call(
            "POST",
            route,
            data={"job": request.model_dump_json(exclude_defaults=True)},
            files={"code": ("code.tar.gz", archive, "application/gzip")},
            timeout_s=max(UPLOAD_TIMEOUT_S, connection.timeout_s),
        )


def _no_script(script: str, code: Path, names: Sequence[str]) -> Problem:
    there = [name for name in names if name.endswith(".py")][:8]
    hint = f"there are {', '.join(there)}" if there else "there is no Python file in it"
    return Problem(field="script", message=f"{script!r} is not among the files of {str(code)!r}; {hint}")
