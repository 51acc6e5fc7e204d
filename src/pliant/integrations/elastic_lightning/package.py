"""The package that a Trainer comes from: `lightning.pytorch` or `pytorch_lightning`, alike but with other classes."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class Package:
    """Finds modules of one of the two packages."""

    name: str

    def module(self, path: str) -> Any:
        """Return a module by its path within the package."""
        return import_module(f"{self.name}.{path}")

    @property
    def version(self) -> str:
        """What a checkpoint of Lightning's says that it was written by."""
        return str(import_module(self.name).__version__)

    def overrides(self, method: str, owner: Any) -> bool:
        """Tell whether somebody's LightningModule, data module or callback defines this method itself."""
        return bool(self.module("utilities.model_helpers").is_overridden(method, owner))

    def call_hooks(self, trainer: Any, name: str, *args: Any) -> list[Any]:
        """Call a hook of all callbacks, then of the module; return what they return."""
        call = self.module("trainer.call")
        call._call_callback_hooks(trainer, name, *args)
        return [call._call_lightning_module_hook(trainer, name, *args)]
