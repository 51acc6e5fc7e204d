"""Runs Jupyter in a task: the script that `pliant notebook` submits calls `main`.

It listens at a UNIX socket in a folder of the job's own and at no port, and so do its kernels where the paths are short
enough. Who opens it with the token that lies beside the socket is whoever the server let through the tunnel
(`pliant.tunnel.notebook`).
"""

import argparse
import os
import secrets
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pliant.core.duration import seconds_of
from pliant.core.errors import PliantError
from pliant.core.notebook import DEFAULT_IDLE, SOCKET, TOKEN_FILE, folder_of
from pliant.core.task_environment import FixedTask
from pliant.integrations.jupyter.idle import watch

MISSING: Final = (
    "no Jupyter is installed where this job runs. Add jupyterlab to its requirements, install it in its environment, "
    "or have whoever runs the server install it there: pip install 'pliant[notebook]'"
)
_TOKEN_BYTES: Final = 32
_LONGEST_SOCKET: Final = 107
_LONGEST_KERNEL: Final = len("/kernel-00000000-0000-0000-0000-000000000000-ipc-5")
_NO_NEWS: Final = (
    "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
    "--LabApp.news_url=None",
)
"""A job is no place to ask a stranger for news, or for a newer version."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run Jupyter until it is shut down, or nobody has used it for a while; return the exit code."""
    parser = argparse.ArgumentParser(description="Runs Jupyter in a job of Pliant.")
    parser.add_argument("--idle", default=DEFAULT_IDLE, help="end after so long without use; 0: never")
    given = parser.parse_args(argv)
    try:
        idle_s = seconds_of(given.idle, field="--idle")
    except PliantError as error:
        parser.error(str(error))
    folder = Path(folder_of(os.environ))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _be_alone()
    os.environ["JUPYTER_TOKEN_FILE"] = str(_write_token(folder))
    app = _make(_options(folder))
    del os.environ["JUPYTER_TOKEN_FILE"]  # kernels have no use for it
    if idle_s:
        watch(app, idle_s)
    app.start()
    return 0


def _be_alone() -> None:
    """Take away what says that this is a process of a training: libraries in a kernel would look for the others."""
    for name in FixedTask.variables():
        os.environ.pop(name, None)


def _write_token(folder: Path) -> Path:
    path = folder / TOKEN_FILE
    path.unlink(missing_ok=True)
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(file, "w") as token:
        token.write(secrets.token_urlsafe(_TOKEN_BYTES))
    return path


def _options(folder: Path) -> list[str]:
    """Return how Jupyter is to run, as it takes it on its command line; there is nothing secret in it."""
    here = os.open(folder, os.O_PATH | os.O_DIRECTORY)  # a socket's address is short, and a folder's path may not be
    runtime = os.environ["JUPYTER_RUNTIME_DIR"] = tempfile.mkdtemp(prefix="jupyter-")  # so short that kernels fit
    options = {
        "ServerApp.sock": f"/proc/self/fd/{here}/{SOCKET}",
        "ServerApp.sock_mode": "0600",
        "ServerApp.root_dir": os.getcwd(),
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.allow_remote_access": False,
        "ServerApp.terminado_settings": "{'shell_command': ['/bin/bash']}",
    }
    if len(runtime) + _LONGEST_KERNEL <= _LONGEST_SOCKET:
        options["KernelManager.transport"] = "ipc"
    return [f"--{name}={value}" for name, value in options.items()]


def _make(options: list[str]) -> Any:
    """Return the server, which listens already: JupyterLab, else what is there of Jupyter.

    Raises:
        SystemExit: nothing is.
    """
    if find_spec("jupyter_server") is None:
        raise SystemExit(f"pliant: {MISSING}")
    if find_spec("jupyterlab") is not None:
        from jupyterlab.labapp import LabApp

        return LabApp.initialize_server(argv=[*options, *_NO_NEWS])
    if find_spec("notebook") is not None:
        from notebook.app import JupyterNotebookApp

        return JupyterNotebookApp.initialize_server(argv=options)
    from jupyter_server.serverapp import ServerApp

    app = ServerApp.instance()
    app.initialize(argv=options)
    return app
