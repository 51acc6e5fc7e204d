"""What a plug-in's class is made from (`BasePluginOptimizer`), under the name that IBM gave it."""

from collections.abc import Mapping, Sequence
from typing import Any


class BasePluginOptimizer:
    """Chooses values of hyperparameters. `search` has to be written; `get_state` and `set_state` come in pairs."""

    def __init__(self, name: str, hyper_parameters: Sequence[Mapping[str, Any]], **kwargs: str) -> None:
        """Note what there is to choose.

        Args:
            name: the algorithm's.
            hyper_parameters: with IBM's fields, such as name, type, dataType, minDbVal and maxDbVal.
            **kwargs: options of the algorithm; all are texts.
        """
        self.name = name
        self.hyper_parameters = hyper_parameters
        self.kwargs = kwargs

    def search(
        self, number_samples: int, last_exp_results: Sequence[Mapping[str, Any]] | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Return values for the next experiments, each as a dict by name; an empty list if there are no more.

        Args:
            number_samples: so many are wanted.
            last_exp_results: experiments that have ended since the last call; None at the first.
        """
        raise NotImplementedError("write search(self, number_samples, last_exp_results)")

    def get_state(self) -> Any:
        """Return what another process continues from: numbers, texts, lists, tuples, dicts, arrays, bytes."""
        raise NotImplementedError("write get_state(self), and set_state(self, state) as well")

    def set_state(self, state: Any) -> None:
        """Continue from what `get_state` returned."""
        raise NotImplementedError("write set_state(self, state), and get_state(self) as well")
