"""The code of an algorithm: a file at the top of a folder, loaded once, in a process of its own."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from pliant.tune.advice import AdviserFailure
from pliant.tune.plugins.failures import failures_of


def on_path(folder: Path) -> None:
    """Let modules of a folder be imported, before all others."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def load(who: str, folder: Path, name: str) -> ModuleType:
    """Return a module at the top of a folder; run anew, whether or not it was before.

    Raises:
        AdviserFailure: it is not there, or raises.
    """
    path = folder / f"{name}.py"
    if not path.is_file():
        raise AdviserFailure(f"{who} has no {name}.py at the top of its folder; put it there")
    on_path(folder)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None, "a file that ends with .py is a module"
    assert spec.loader is not None, "a file that ends with .py has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with failures_of(who, f"{name}.py", folder):
        spec.loader.exec_module(module)
    return module


def class_of(module: ModuleType, name: str, base: type) -> Any:
    """Return the class of this name in a module, which is one of a base; None if there is none."""
    found = vars(module).get(name)
    return found if isinstance(found, type) and issubclass(found, base) else None


def keeps_state(kind: type, base: type) -> bool:
    """Tell whether a class has `get_state` and `set_state` of its own.

    Raises:
        AdviserFailure: it has only one of them.
    """
    has = {name: getattr(kind, name, None) is not getattr(base, name, None) for name in ("get_state", "set_state")}
    if len(set(has.values())) > 1:
        there, missing = sorted(has, key=lambda name: not has[name])
        raise AdviserFailure(f"{kind.__name__} has {there} and no {missing}; write both, or none")
    return has["get_state"]
