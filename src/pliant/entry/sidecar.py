"""The process of a sidecar: `main` is called in a child of the zygote, within the walls of a task. Not for people.

It connects with the server and makes sure that it is the server, and is then the inner end of one tunnel.
"""

import json
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from pliant.api.trust import Trust, websocket_url
from pliant.api.tunnel import inside_path
from pliant.core.link_proof import NUM_BYTES, PROOF_HEADER, LinkProof
from pliant.core.notebook import folder_of
from pliant.core.tunnel import MAX_FRAME_BYTES, SidecarSettings, WindowSize
from pliant.tunnel.notebook import serve_notebook
from pliant.tunnel.program import serve
from pliant.tunnel.stream import TunnelStream

_OPEN_S: Final = 20.0
_PROMPT: Final = r"PS1='{}:\w\$ '; unset PROMPT_COMMAND"
"""What bash runs once, after its own files: they would show a user without a name."""
_SHELLS: Final = ("/bin/bash", "/bin/sh")


def main(argv: Sequence[str]) -> int:  # noqa: ARG001 - every program has arguments
    """Serve one tunnel; return the exit code."""
    settings = SidecarSettings.from_env(os.environ)
    for name in settings.to_env():
        del os.environ[name]
    try:
        connection = _connect(settings)
    except (OSError, TimeoutError, WebSocketException):
        return 1  # the server is gone, or somebody else listens there
    if settings.notebook:
        with connection:
            serve_notebook(connection, Path(folder_of(os.environ)))
        return 0
    size = None if settings.terminal is None else WindowSize(rows=settings.rows, columns=settings.columns)
    with connection:
        serve(TunnelStream(connection), _command(settings), _environment(settings), size)
    return 0


def _connect(settings: SidecarSettings) -> ClientConnection:
    """Connect with the server.

    Raises:
        ConnectionError: somebody else listens there.
        OSError, WebSocketException: nobody does, or the tunnel is not wanted any more.
    """
    proof = LinkProof(task_id=settings.tunnel_id, challenge="", nonce=secrets.token_hex(NUM_BYTES))
    is_encrypted = urlsplit(settings.url).scheme == "https"
    trust = Trust(
        certificate=None if settings.certificate is None else Path(settings.certificate),
        server_name=settings.server_name,
    )
    connection = connect(
        websocket_url(settings.url) + inside_path(settings.tunnel_id),
        additional_headers={"Authorization": proof.authorization(settings.key)},
        max_size=MAX_FRAME_BYTES,
        open_timeout=_OPEN_S,
        close_timeout=2,
        proxy=None,
        compression=None,
        ssl=trust.context() if is_encrypted else None,
        server_hostname=trust.server_name if is_encrypted else None,
    )
    given = [] if connection.response is None else connection.response.headers.get_all(PROOF_HEADER)
    if len(given) != 1 or not proof.proves("open", settings.key, given[0]):
        with connection:
            raise ConnectionError("a stranger listens there")
    return connection


def _command(settings: SidecarSettings) -> list[str]:
    if settings.command is not None:
        return [str(word) for word in json.loads(settings.command)]
    return [_shell()]


def _shell() -> str:
    return next((shell for shell in _SHELLS if os.access(shell, os.X_OK)), _SHELLS[-1])


def _environment(settings: SidecarSettings) -> dict[str, str]:
    """Return the variables of the program: the task's, with its interpreter first among the programs."""
    python = settings.python or sys.executable
    path = os.environ.get("PATH", os.defpath)
    env = {**os.environ, "SHELL": _shell(), "PATH": os.pathsep.join((os.path.dirname(python), path))}
    if settings.terminal is not None:
        env["TERM"] = settings.terminal
        env["PROMPT_COMMAND"] = _PROMPT.format(os.environ.get("PLIANT_TASK_ID", ""))
    return env


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
