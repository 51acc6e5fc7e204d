"""What a Trainer cannot do while its number of workers changes; every message names the argument."""

import os
from collections.abc import Iterator
from typing import Any, Final

from transformers.training_args import ParallelMode

from pliant.train import TrainingError
from transformers import Trainer

_STEPS_IN_BACKWARD: Final = ("lomo", "adalomo")
_HAS_MODES: Final = "schedule_free"
_LOOPS: Final = ("_inner_training_loop", "_run_epoch")


def check_elastic(trainer: Any) -> None:
    """Refuse what cannot be trained elastically, all of it at once.

    Raises:
        TrainingError: some of it is asked for; the message names every argument and what to do.
    """
    if problems := [*_of_launch(trainer), *_of_arguments(trainer.args), *_of_trainer(trainer)]:
        raise TrainingError("this Trainer cannot be elastic: " + "; ".join(problems))


def _of_launch(trainer: Any) -> Iterator[str]:
    args, world_size = trainer.args, os.environ.get("WORLD_SIZE", "1")
    if args.parallel_mode == ParallelMode.DISTRIBUTED or args.world_size > 1 or world_size not in ("", "1"):
        yield (
            f"it was started by torchrun or accelerate launch (WORLD_SIZE is {world_size}), and Pliant starts the "
            f"workers itself: run it with python, or submit it with `pliant submit`"
        )
    if getattr(trainer, "is_model_parallel", False) or getattr(
        trainer, "is_distributed_loading_by_transformers", False
    ):
        yield "the model lies on several devices (device_map), and every task holds a whole one: leave device_map out"


def _of_arguments(args: Any) -> Iterator[str]:
    if args.deepspeed:
        yield f"deepspeed={args.deepspeed!r} cuts the model over a fixed number of workers: leave it out"
    if args.fsdp:
        yield f"fsdp={args.fsdp!r} cuts the model over a fixed number of workers: leave it out"
    if getattr(args, "parallelism_config", None) is not None:
        yield "parallelism_config cuts the model over a fixed number of workers: leave it out"
    if args.auto_find_batch_size:
        yield "auto_find_batch_size=True changes the batch, which is the same for any number of workers: leave it out"
    if args.train_sampling_strategy == "batch_rebalance":
        yield "train_sampling_strategy='batch_rebalance' deals batches out to fixed workers: use 'group_by_length'"
    if args.enable_jit_checkpoint:
        yield "enable_jit_checkpoint=True saves when the process is ended, which Pliant does by itself: leave it out"
    optim = str(getattr(args.optim, "value", args.optim))
    if optim in _STEPS_IN_BACKWARD or optim.endswith("layerwise"):
        yield f"optim={optim!r} steps inside the backward pass, before gradients are summed: use 'adamw_torch'"
    if optim.startswith(_HAS_MODES):
        yield f"optim={optim!r} has other weights while it evaluates, which no other task knows of: use 'adamw_torch'"


def _of_trainer(trainer: Any) -> Iterator[str]:
    for name in _LOOPS:
        if getattr(type(trainer), name) is not getattr(Trainer, name):
            yield (
                f"{type(trainer).__name__} has a {name} of its own, and the loop is Pliant's: override compute_loss or "
                f"training_step instead"
            )
