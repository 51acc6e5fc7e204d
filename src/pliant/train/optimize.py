"""What is done with the gradients of a whole global batch: unscale, clip, step, schedule; the same in every task.

Knows nothing of tasks or of how the gradients were summed.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pliant.train.errors import TrainingError

Optimizers = torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | Mapping[str, torch.optim.Optimizer]


@dataclass(slots=True, kw_only=True)
class Stepper:
    """Makes one optimizer step of one or several optimizers.

    With a scaler, an optimizer whose gradient overflowed is not stepped, and neither are its schedulers.
    """

    parameters: Sequence[torch.nn.Parameter]
    optimizers: Mapping[str, torch.optim.Optimizer]
    schedulers: Sequence[Any] = ()
    """Stepped after every optimizer step."""
    scaler: torch.amp.GradScaler | None = None
    clip_norm: float | None = None
    clip_value: float | None = None
    before_step: Callable[[], object] | None = None
    after_step: Callable[[], object] | None = None
    note_gradients: Callable[[], None] = lambda: None
    """Called with the gradients that the optimizers are about to step with; changes nothing."""
    _counts: tuple[int, ...] = field(init=False)
    _strangers: list[torch.Tensor] = field(init=False)
    """Parameters of an optimizer whose gradients are not summed, because they were frozen at the start."""

    def __post_init__(self) -> None:
        for scheduler in self.schedulers:
            if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
                raise TrainingError(
                    "ReduceLROnPlateau steps on a value, not by itself: give it in state={'scheduler': scheduler}, and "
                    "call scheduler.step(run.last['loss']), or with what run.evaluate returns, at the end of an epoch"
                )
        self._counts = self._count()
        known = set(self.parameters)
        held = (p for o in self.optimizers.values() for group in o.param_groups for p in group["params"])
        self._strangers = [parameter for parameter in held if parameter not in known]

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss that backward is called on."""
        return loss if self.scaler is None else self.scaler.scale(loss)

    def init_scaler(self) -> None:
        """Give a new scaler its first scale, as a loss would: a task without a part of the step has no loss."""
        if self.scaler is not None:
            self.scaler.scale(torch.zeros((), device=self.parameters[0].device))

    def step(self) -> None:
        """Step with the gradients that are in the parameters.

        Raises:
            TrainingError: a parameter was added to an optimizer after the start.
        """
        self._check()
        self._prepare()
        if self.before_step is not None:
            self.before_step()
        self.note_gradients()
        skipped: list[torch.optim.Optimizer] = []
        if self.scaler is not None:
            skipped = self._step_scaled(self.scaler)
        else:
            for optimizer in self.optimizers.values():
                optimizer.step()
        for scheduler in self.schedulers:
            if getattr(scheduler, "optimizer", None) not in skipped:
                scheduler.step()
        if self.after_step is not None:
            self.after_step()

    def _prepare(self) -> None:
        if self.scaler is not None:
            for optimizer in self._with_gradient():
                self.scaler.unscale_(optimizer)
        if self.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.clip_norm)
        if self.clip_value is not None:
            torch.nn.utils.clip_grad_value_(self.parameters, self.clip_value)

    def _step_scaled(self, scaler: torch.amp.GradScaler) -> list[torch.optim.Optimizer]:
        """Return the optimizers that were skipped, because their gradient overflowed."""
        skipped, with_gradient = [], self._with_gradient()
        for optimizer in self.optimizers.values():
            if optimizer not in with_gradient:
                optimizer.step()  # for its hooks and schedulers; a scaler refuses it
                continue
            stepped: list[bool] = []
            hook = optimizer.register_step_post_hook(lambda *_, note=stepped: note.append(True))
            scaler.step(optimizer)
            hook.remove()
            if not stepped:
                skipped.append(optimizer)
        if with_gradient:
            scaler.update()
        return skipped

    def _with_gradient(self) -> list[torch.optim.Optimizer]:
        """Return the optimizers that have something to do: a scaler refuses the others."""
        return [
            optimizer
            for optimizer in self.optimizers.values()
            if any(p.grad is not None for group in optimizer.param_groups for p in group["params"])
        ]

    def extras(self) -> dict[str, Any]:
        """Return the schedulers and the scaler, which belong to the shared state."""
        found: dict[str, Any] = {f"scheduler {i}": scheduler for i, scheduler in enumerate(self.schedulers)}
        return found if self.scaler is None else {**found, "scaler": self.scaler}

    def _check(self) -> None:
        if self._count() != self._counts:
            raise TrainingError(
                f"the optimizers hold {sum(self._count())} parameters, and {sum(self._counts)} when the Run was made; "
                f"give all parameters to the optimizer before, and make the Run while they require a gradient "
                f"(requires_grad_(False) keeps them frozen afterwards)"
            )
        if any(parameter.grad is not None for parameter in self._strangers):
            raise TrainingError(
                "a parameter that was frozen when the Run was made got a gradient, which other tasks do not see; make "
                "the Run while all that will ever be trained requires a gradient, and freeze the others afterwards"
            )

    def _count(self) -> tuple[int, ...]:
        return tuple(len(group["params"]) for o in self.optimizers.values() for group in o.param_groups)


def name_optimizers(optimizers: Optimizers) -> dict[str, torch.optim.Optimizer]:
    """Return optimizers by name: their own, or their number.

    Raises:
        TrainingError: there is none, or one cannot step on gradients alone.
    """
    if isinstance(optimizers, Mapping):
        found = dict(optimizers)
    elif isinstance(optimizers, Sequence):
        found = {str(number): optimizer for number, optimizer in enumerate(optimizers)}
    else:
        found = {"0": optimizers}
    if not found:
        raise TrainingError("no optimizer was given; give at least one")
    for name, optimizer in found.items():
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TrainingError(f"optimizer {name} is a {type(optimizer).__name__}, not a torch.optim.Optimizer")
        if _needs_closure(optimizer):
            raise TrainingError(
                f"{type(optimizer).__name__} computes the loss again inside its step (a closure), which Pliant does "
                f"not do; use an optimizer that steps on one gradient, such as AdamW or SGD"
            )
        if isinstance(optimizer, torch.optim.SparseAdam):
            raise TrainingError(
                "SparseAdam needs sparse gradients, and gradients are summed dense; use AdamW with sparse=False"
            )
    return found


def _needs_closure(optimizer: torch.optim.Optimizer) -> bool:
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    return isinstance(optimizer, torch.optim.LBFGS) or (closure is not None and closure.default is closure.empty)
