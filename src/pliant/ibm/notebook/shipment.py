"""What a notebook sends: the parts of its training, by value, and the files beside it that it has imported.

train_sent.py        what the tasks run
sent/call.pt         the keywords of `FabricModel` and of `train`
sent/python.json     the version of Python that wrote it
helpers.py, lib/     modules that the kernel has imported from the notebook's folder
"""

import json
import pickle
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import cloudpickle
import torch

from pliant.core.errors import InvalidInput, Problem
from pliant.files.ignore import ALWAYS_IGNORED

SCRIPT: Final = "train_sent.py"
_SENT: Final = "sent"
_FAILURES: Final = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError, RuntimeError, OSError)
"""What the `__reduce__` of one thing or another raises if it cannot be pickled."""


def write_shipment(
    folder: Path, model: Mapping[str, Any], train: Mapping[str, Any], *, beside: Path, modules: Mapping[str, Any]
) -> None:
    """Write the code of a job that calls `FabricModel(**model).train(**train)` into an empty folder.

    Args:
        beside: the notebook's folder.
        modules: those that the kernel has imported, by name (`sys.modules`).

    Raises:
        InvalidInput: parts that cannot be sent, all of them.
    """
    sent = folder / _SENT
    sent.mkdir()
    call = {"model": dict(model), "train": dict(train)}
    try:
        torch.save(call, sent / "call.pt", pickle_module=cloudpickle)
    except _FAILURES as error:
        raise InvalidInput(*_cannot_be_sent(model)) from error
    (sent / "python.json").write_text(json.dumps(sys.version_info[:2]))
    shutil.copyfile(Path(__file__).with_name(SCRIPT), folder / SCRIPT)
    for path in local_modules(beside.resolve(), modules):
        _copy(path, folder)


def local_modules(beside: Path, modules: Mapping[str, Any]) -> tuple[Path, ...]:
    """Return the files and folders of the modules that were imported from a folder itself, in order."""
    return tuple(sorted({path for name, module in modules.items() for path in _place(beside, name, module)}))


def _place(beside: Path, name: str, module: ModuleType | None) -> Iterator[Path]:
    """Yield what a module's outermost package is in the folder, if it lies there."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return
    outermost = name.partition(".")[0]
    found = Path(file).resolve()
    for path in (beside / f"{outermost}.py", beside / outermost):
        if path.exists() and (found == path or path in found.parents):
            yield path


def _copy(path: Path, folder: Path) -> None:
    if path.is_dir():
        ignored = shutil.ignore_patterns(*(pattern.rstrip("/") for pattern in ALWAYS_IGNORED))
        shutil.copytree(path, folder / path.name, ignore=ignored)
    else:
        shutil.copyfile(path, folder / path.name)


def _cannot_be_sent(model: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield which parts are at fault; each is tried by itself."""
    num_found = 0
    for name, part in model.items():
        try:
            cloudpickle.dumps(part)
        except _FAILURES as error:
            num_found += 1
            advice = "what it refers to must be plain values: open files, locks and connections inside the function"
            yield Problem(field=name, message=f"it cannot be sent to the server ({error!s:.200}); {advice}")
    if not num_found:
        yield Problem(field="model", message="it cannot be sent to the server together with the other parts")
