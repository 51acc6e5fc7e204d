"""What is served (`DeployedModel`), and which module of this room serves it.

The modules of runners are imported by name, and only when they are used: torch, numpy and ONNX Runtime come with them.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pliant.core.serving_profile import Runner
from pliant.core.slot import WHOLE_SLOT
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.session import KernelSession

_MODULES: Final[Mapping[Runner, str]] = {
    "redhare": "redhare",
    "python": "python_class",
    "torch": "torch_program",
    "onnx": "onnx_model",
    "job": "trained_job",
}
"""Each has `serve(session, model)`, which loads the model and returns when the kernel has to go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltModel:
    """What a trained job's script has built."""

    module: Any
    """A torch module, without its trained weights."""
    sample: Any = None
    """The first sample of its data set; None: it has none, or it cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedModel:
    """A version of an endpoint, as its kernel finds it."""

    runner: Runner
    folder: Path
    """Of the model."""
    file: str
    """What is run, in that folder."""
    args: tuple[str, ...] = ()
    """Of a trained job's script."""
    weights: str | None = None
    """A `state_dict` in that folder."""
    endpoint: str = ""
    version: int = 1
    kernel: str = ""
    """The kernel's name."""
    job_id: str = ""
    num_threads: int = 1
    """Its share of the machine's threads."""
    slot_share: int = WHOLE_SLOT
    """Thousandths of its slot that the kernel holds."""
    build: Callable[[Path, tuple[str, ...]], BuiltModel] | None = None
    """Runs a script of a training until it has its model."""

    @property
    def path(self) -> Path:
        """What is run.

        Raises:
            ModelNotLoaded: it is not there.
        """
        return self.find(self.file)

    def find(self, name: str) -> Path:
        """Return the path of a file of the model.

        Raises:
            ModelNotLoaded: it is not there.
        """
        path = self.folder / name
        if path.is_file():
            return path
        there = sorted(one.name for one in self.folder.iterdir()) if self.folder.is_dir() else []
        raise ModelNotLoaded(f"{name} is not in the model's folder, which holds {', '.join(there[:20]) or 'nothing'}")


def serve_model(session: KernelSession, model: DeployedModel) -> None:
    """Load a model, and answer requests with it until the kernel has to go."""
    module = importlib.import_module(f"{__package__}.{_MODULES[model.runner]}")
    module.serve(session, model)
