"""Algorithms are loaded into this process here: what that changes in it is undone after each test."""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def unchanged_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    path, modules, python, numpy = [*sys.path], {*sys.modules}, random.getstate(), np.random.get_state()
    yield
    sys.path[:] = path
    for name in {*sys.modules} - modules:
        if name.split(".")[0] in ("optimizer", "sampler", "plugins"):
            del sys.modules[name]
    random.setstate(python)
    np.random.set_state(numpy)


@pytest.fixture
def folder_of(tmp_path: Path) -> Callable[..., Path]:
    """Return what makes a folder with code, at the top of it in `optimizer.py`."""

    def make(code: str, file: str = "optimizer.py") -> Path:
        folder = tmp_path / f"code-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / file).write_text(code)
        return folder

    return make
