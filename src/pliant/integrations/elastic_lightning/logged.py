"""What `self.log` is told in `training_step`: kept for each part, and told to Lightning as a value of the global batch.

A part's values are means over its samples. They travel with the gradients, become means over the global batch, and
only those reach Lightning's results, in every task, after the step. So callbacks see the same everywhere.
"""

from collections.abc import Mapping
from typing import Any, Final

import torch

from pliant.train import TrainingError

_TAKEN: Final = ("loss", "reduction", "self")
"""Names that `Run.step` has a meaning of its own for."""
_KEPT: Final = ("prog_bar", "logger", "on_step", "on_epoch", "enable_graph", "add_dataloader_idx", "metric_attribute")


class PartResults:
    """Stands where Lightning keeps logged values, while a part's training_step runs."""

    def __init__(self) -> None:
        self.known: dict[str, dict[str, Any]] = {}
        """How the values were logged, by the name that they travel under; the same in every task."""
        self.values: dict[str, Any] = {}
        self.dataloader_idx = None

    def __len__(self) -> int:
        return 0  # Lightning then does not ask for metrics here

    def reset(self, *_args: Any, **_named: Any) -> None:
        """Do nothing: a part's values are taken by its step."""

    def log(self, fx: str, name: str, value: Any, **options: Any) -> None:
        """Keep what `self.log` got.

        Raises:
            TrainingError: it is no number, or not to be averaged.
        """
        if not isinstance(value, torch.Tensor):
            raise TrainingError(
                f"self.log({name!r}, …) in {fx} got a {type(value).__name__}, whose state is that of one task's parts; "
                f"log its value on the batch: self.log({name!r}, metric(predictions, targets)) (in validation_step "
                f"metrics are logged as usual)"
            )
        reduce = options.get("reduce_fx", torch.mean)
        if reduce not in (torch.mean, "mean", "avg"):
            way = getattr(reduce, "__name__", reduce)
            raise TrainingError(
                f"self.log({name!r}, reduce_fx={way!r}) in {fx}: values of the parts of "
                f"a global batch become their mean; log a mean over the samples, without reduce_fx"
            )
        key = f"{name} (logged)" if name in _TAKEN else name
        self.values[key] = value.detach()
        self.known[key] = {"fx": fx, "name": name} | {option: options[option] for option in _KEPT if option in options}

    def take(self) -> dict[str, Any]:
        """Return the values of a part, and forget them."""
        values, self.values = self.values, {}
        return values

    def tell(self, results: Any, last: Mapping[str, float], *, batch_size: int, like: torch.Tensor) -> None:
        """Log the values of a global batch, on the device and in the dtype of `like`."""
        for key, options in self.known.items():
            if key in last:
                value = torch.full_like(like, last[key])
                results.log(**options, value=value, batch_size=batch_size)
