"""The class of a plug-in, `PluginOptimizer` of `optimizer.py`, and what it is made from."""

import importlib
import sys
from pathlib import Path
from typing import Any, Final

from pliant.tune.advice import AdviserFailure
from pliant.tune.plugins.code import class_of, keeps_state, load, on_path
from pliant.tune.plugins.found_code import FoundCode

_MODULES: Final = Path(__file__).parents[1] / "ibm_modules"
_CLASS: Final = "PluginOptimizer"


def load_optimizer(who: str, folder: Path) -> tuple[Any, type]:
    """Return a plug-in's class, and the one that it is made from.

    Raises:
        AdviserFailure: there is no such class, or its file raises.
    """
    on_path(folder)
    _have_modules()
    base = importlib.import_module("plugins.core.base_plugin_opt").BasePluginOptimizer
    module = load(who, folder, "optimizer")
    found = class_of(module, _CLASS, base)
    if found is None:
        what = f"class {_CLASS}(BasePluginOptimizer)"
        raise AdviserFailure(f"optimizer.py of {who} has no {what}, from plugins.core.base_plugin_opt; write it")
    if found.search is base.search:
        raise AdviserFailure(f"{_CLASS} of {who} has no search; write search(self, number_samples, last_exp_results)")
    return found, base


def _have_modules() -> None:
    """Let `plugins` be ours, whatever is called so in an algorithm's folder."""
    sys.path[:] = [str(_MODULES), *(one for one in sys.path if one != str(_MODULES))]


def look_at_optimizer(who: str, folder: Path) -> FoundCode:
    """Return what is in a folder, without a search.

    Raises:
        AdviserFailure: no plug-in.
    """
    kind, base = load_optimizer(who, folder)
    return FoundCode(name=_CLASS, has_state=keeps_state(kind, base))
