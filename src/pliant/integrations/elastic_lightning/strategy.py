"""The strategy that makes a Trainer elastic; it looks like one device, and hands the training over to a `Run`.

Lightning connects a strategy with the module before it trains. Then this one refuses what cannot be elastic and puts
its own fit loop into the Trainer. The task that leads is Lightning's rank 0: loggers, checkpoints and messages are its.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from pliant.core.job import Mode
from pliant.integrations.elastic_lightning.fit_loop import make_fit_loop
from pliant.integrations.elastic_lightning.package import Package
from pliant.integrations.elastic_lightning.refusals import refuse_what_cannot_be
from pliant.train import TrainingError
from pliant.train.context import find_context
from pliant.train.data.order import OrderFunction


class StrategyFactory(Protocol):
    """What `ElasticStrategy` is called with."""

    def __call__(
        self,
        *,
        virtual_workers: int | None = None,
        mode: Mode | None = None,
        seed: int | None = None,
        order: OrderFunction | None = None,
    ) -> Any: ...


class _Nothing(dict[str, Any]):
    """A checkpoint of which Lightning restores nothing."""

    def __bool__(self) -> bool:
        return False


class OneOfMany:
    """What an elastic strategy does otherwise than Lightning's `SingleDeviceStrategy`, which it is mixed into.

    Args:
        virtual_workers: parts that a global batch is cut into. Default: the job's.
        mode: "exact" or "fast". Default: the job's.
        seed: of the order of samples, and of random numbers in a step. Default: `seed_everything`'s, or 0.
        order: called with an epoch, returns the indices of its samples, in the place of a sampler.
    """

    package: Package
    accelerator: Any
    lightning_module: Any
    global_rank: int

    def __init__(
        self,
        *,
        virtual_workers: int | None = None,
        mode: Mode | None = None,
        seed: int | None = None,
        order: OrderFunction | None = None,
    ) -> None:
        super().__init__()
        self.virtual_workers = virtual_workers
        self.mode = mode
        self.seed = int(os.environ.get("PL_GLOBAL_SEED", "0")) if seed is None else seed
        self.order = order

    @property
    def root_device(self) -> torch.device:
        if self.accelerator is None:
            return torch.device("cpu")
        [device] = self.accelerator.get_parallel_devices(self.accelerator.parse_devices(1))
        return torch.device(device)

    @property
    def is_global_zero(self) -> bool:
        return self.global_rank == 0

    def connect(self, model: Any) -> None:
        """Take a module, and for `fit` the Trainer's loop.

        Raises:
            TrainingError: something does not fit an elastic training; all that does not is named.
        """
        super().connect(model)  # type: ignore[misc]
        trainer = model.trainer
        if trainer.state.fn != self.package.module("trainer.states").TrainerFn.FITTING:
            return
        refuse_what_cannot_be(self.package, trainer, model)
        context = find_context()
        if not hasattr(trainer.fit_loop, "steps"):
            if not context.standalone:
                self.lead(1)  # nobody knows yet who leads
            trainer.fit_loop = make_fit_loop(self.package, trainer)
        if context.result_dir is not None:
            _save_below(context.result_dir, trainer, owned=not context.standalone)

    def lead(self, rank: int) -> None:
        """Take note of this task's rank: Lightning logs, saves and prints in rank 0 alone."""
        if rank == self.global_rank:
            return
        self.global_rank = self.package.module("utilities.rank_zero").rank_zero_only.rank = rank
        if rank == 0:
            trainer = self.lightning_module.trainer
            self.package.module("loggers.utilities")._log_hyperparams(trainer)

    def validation_step(self, *args: Any, **named: Any) -> Any:
        """Tell that the training goes on, and validate a batch."""
        trainer = self.lightning_module.trainer
        if trainer.state.fn == self.package.module("trainer.states").TrainerFn.FITTING and not trainer.sanity_checking:
            trainer.fit_loop.steps.run.note_work()
        return super().validation_step(*args, **named)  # type: ignore[misc]

    def load_checkpoint(self, checkpoint_path: Any, weights_only: bool | None = None) -> Any:
        """Load a checkpoint of Lightning's for `validate`, `test` and `predict`; `fit` goes on by Pliant's own.

        Raises:
            TrainingError: it is to go on from a checkpoint that is not this job's.
        """
        trainer = self.lightning_module.trainer
        if trainer.state.fn != self.package.module("trainer.states").TrainerFn.FITTING:
            return super().load_checkpoint(checkpoint_path, weights_only)  # type: ignore[misc]
        result_dir = find_context().result_dir
        if result_dir is not None and Path(checkpoint_path).resolve().is_relative_to(result_dir.resolve()):
            return _Nothing({"pytorch-lightning_version": self.package.version})
        raise TrainingError(
            f"fit(ckpt_path={str(checkpoint_path)!r}): an elastic training goes on from Pliant's own checkpoint, by "
            f"itself; leave ckpt_path out. `pliant submit --resume-from JOB` goes on from another job; for the weights "
            f"alone, call {type(self.lightning_module).__name__}.load_from_checkpoint(path) first"
        )


def _save_below(result_dir: Path, trainer: Any, *, owned: bool) -> None:
    """Let ModelCheckpoints that were given no folder save among the job's results, under the same names in all tasks.

    Args:
        owned: nobody else writes to the results; a file that is there is one of this training.
    """
    for callback in trainer.checkpoint_callbacks:
        if getattr(callback, "dirpath", "") is None:
            callback.dirpath = str(result_dir / "lightning")
        folder = getattr(callback, "dirpath", None)
        if owned and folder and hasattr(callback, "file_exists") and Path(folder).is_relative_to(result_dir):
            callback.file_exists = _is_never_there


def _is_never_there(*_args: Any) -> bool:
    return False


def make_strategy(name: str, *, extra: str) -> StrategyFactory:
    """Return the class of strategies for the Trainer of a package.

    Raises:
        ModuleNotFoundError: the package is not installed; the message says what installs it.
    """
    package = Package(name)
    try:
        single = package.module("strategies").SingleDeviceStrategy
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{name} cannot be imported ({error}); install it with `pip install 'pliant[{extra}]'` or by itself",
            name=error.name,
        ) from error
    bases: Sequence[type] = (OneOfMany, single)
    kind: Any = type("ElasticStrategy", tuple(bases), {"package": package, "__doc__": OneOfMany.__doc__})
    found: StrategyFactory = kind
    return found
