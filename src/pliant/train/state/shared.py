"""The state that all tasks of a training share, and what a training can start from.

Knows nothing of generations or files of checkpoints: it captures the state as a tree and loads such a tree.
"""

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

import torch

from pliant.train.errors import TrainingError
from pliant.train.state import pytree
from pliant.train.state.claim import TrainingClaim
from pliant.train.sum.running import unsaved_buffers

OF_ANOTHER: Final = "of_another"
"""In a captured state: it is that of another training of a population, from which this one goes on."""
_CHILD: Final = (
    "a population searches only what can change in the middle of a training; leave the others out, or fix them"
)


class Stateful(Protocol):
    """Anything that can be saved and loaded: a scheduler, an average of the weights, a counter."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedState:
    """The state of which every task of the job holds a copy, the same after every committed step."""

    model: torch.nn.Module
    optimizers: Mapping[str, torch.optim.Optimizer]
    extras: Mapping[str, Stateful]
    identity: Mapping[str, int]
    """What a checkpoint must agree with: seed, num_samples, batch_size, …"""
    claim: TrainingClaim
    last: dict[str, float] = field(default_factory=dict)
    """Loss and metrics of the newest committed global batch; a task that joins at the end of an epoch needs them."""
    evaluations: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    """Results of the evaluations of this epoch, before and after its steps, for tasks that join later."""

    def capture(self, *, step: int, epoch: int) -> dict[str, Any]:
        """Return the whole state as a tree. Its tensors are the live ones, not copies."""
        return {
            "step": step,
            "epoch": epoch,
            "identity": dict(self.identity),
            "model": self.model.state_dict(),
            "buffers": unsaved_buffers(self.model),
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "last": dict(self.last),
            "evaluations": {place: list(results) for place, results in self.evaluations.items()},
            "claim": self.claim.state_dict(),
            "extras": {name: extra.state_dict() for name, extra in self.extras.items()},
        }

    def steady_memory(self) -> frozenset[int]:
        """Return where the tensors lie that only an optimizer's step changes: parameters, and what optimizers keep."""
        return frozenset(pytree.place(tensor) for tensor in self._steady())

    @property
    def num_bytes(self) -> int:
        """How much memory the model and what the optimizers keep take."""
        return sum(tensor.nbytes for tensor in (*self._steady(), *self.model.buffers()))

    def _steady(self) -> Iterator[torch.Tensor]:
        yield from self.model.parameters()
        for optimizer in self.optimizers.values():
            of_all = (of_one for of_one in optimizer.state.values() if isinstance(of_one, Mapping))
            kept = (value for of_one in of_all for value in of_one.values())
            yield from (value for value in kept if isinstance(value, torch.Tensor))

    def load(self, tree: Mapping[str, Any]) -> None:
        """Replace this state with a captured one.

        Raises:
            TrainingError: it belongs to another training (other data, batch size or seed).
        """
        differing = [
            f"{name} was {was}, is {self.identity.get(name)}"
            for name, was in tree["identity"].items()
            if self.identity.get(name) != was
        ]
        if differing:
            raise TrainingError(
                f"the saved state belongs to another training: {'; '.join(differing)}; "
                f"{_CHILD if OF_ANOTHER in tree else 'submit a new job to train with the new values'}"
            )
        tree = pytree.copy_containers(tree)
        self._check_names("optimizers", tree["optimizers"], self.optimizers)
        self._check_names("objects in state", tree["extras"], self.extras)
        try:
            self.model.load_state_dict(tree["model"])
            for name, optimizer in self.optimizers.items():
                optimizer.load_state_dict(tree["optimizers"][name])
        except (RuntimeError, ValueError) as error:
            raise TrainingError(
                f"the saved state does not fit the model and the optimizers of this script: {error}; "
                f"{_CHILD if OF_ANOTHER in tree else 'submit a new job to train another model'}"
            ) from error
        for name, buffer in unsaved_buffers(self.model).items():
            if name in tree["buffers"]:
                buffer.copy_(tree["buffers"][name])
        self.last.clear()
        self.last.update(tree["last"])
        self.claim.load_state_dict(tree["claim"])
        for name, extra in self.extras.items():
            extra.load_state_dict(tree["extras"][name])

    def keep_evaluation(self, place: str, values: dict[str, float], *, epoch: int) -> None:
        """Add the result of an evaluation at a place ("EPOCH before" or "EPOCH after" its steps); drop old ones."""
        for old in [key for key in self.evaluations if int(key.split()[0]) < epoch - 1]:
            del self.evaluations[old]
        self.evaluations.setdefault(place, []).append(values)

    def num_evaluations(self, epoch: int) -> int:
        """Return how many evaluations of an epoch the result is known of."""
        return sum(len(results) for place, results in self.evaluations.items() if int(place.split()[0]) == epoch)

    def _check_names(self, what: str, saved: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
        if set(saved) != set(mine):
            raise TrainingError(
                f"the saved state has the {what} {sorted(saved)}, and this script has {sorted(mine)}; give the same, "
                f"or submit a new job (with the weights of the old one, if it goes on from them)"
            )

    def digest(self) -> str:
        """Return the SHA-256 of parameters, buffers and optimizer state, in hex."""
        optimizers = {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()}
        return pytree.digest([self.model.state_dict(), optimizers])


def load_weights(model: torch.nn.Module, path: Path) -> None:
    """Start from a saved `state_dict`.

    Raises:
        TrainingError: it cannot be read, or belongs to another model.
    """
    try:
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, EOFError, RuntimeError, ValueError, TypeError, pickle.UnpicklingError) as error:
        raise TrainingError(f"the weights to start from could not be loaded from {path}: {error}") from error
