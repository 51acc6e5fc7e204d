"""The part of a package's build that makes the console: a wheel or an archive of sources has it built inside.

An editable installation has none by itself: `make setup` and `make console` build it where it is served from.
"""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _bundle() -> ModuleType:
    """Return `bundle.py`, which lies beside this file and is in no package."""
    specification = importlib.util.spec_from_file_location("bundle", Path(__file__).with_name("bundle.py"))
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


class ConsoleBuild(BuildHookInterface[Any]):
    """Builds the console before a package is put together, unless what lies there is current."""

    def dependencies(self) -> list[str]:
        """Return what the build needs: Node, if there is anything to build."""
        bundle = _bundle()
        return [] if bundle.is_current() else [bundle.NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 (what hatch calls it with)
        """Build the console.

        Raises:
            RuntimeError: it could not be built.
        """
        bundle = _bundle()
        if version == "editable" or bundle.is_current():
            return
        try:
            bundle.build()
        except bundle.NotBuilt as problem:
            raise RuntimeError(f"the web console was not built: {problem}") from problem
