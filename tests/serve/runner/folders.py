"""Folders of models, and what is served from them."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pliant.serve.runner.deployed import DeployedModel


def deployed(folder: Path, file: str, text: str | None = None, **more: Any) -> DeployedModel:
    """Return what is served from a folder, into which the file is written if there is a text."""
    if text is not None:
        (folder / file).write_text(text)
    named = {"endpoint": "digits", "version": 3, "kernel": "job-1.1", "job_id": "job-1", "runner": "python"}
    return DeployedModel(folder=folder, file=file, **{**named, **more})


@contextmanager
def own_process_state() -> Iterator[None]:
    """Undo what loading a model does to this process: its path, modules, arguments and variables."""
    path, modules, argv, env = list(sys.path), dict(sys.modules), list(sys.argv), dict(os.environ)
    try:
        yield
    finally:
        sys.path[:], sys.argv[:] = path, argv
        for name in ("serve", "model", "redhareapi", "redhareapiversion"):
            sys.modules.pop(name, None)
            if name in modules:
                sys.modules[name] = modules[name]
        for name in set(os.environ) - set(env):
            del os.environ[name]
        os.environ.update(env)
