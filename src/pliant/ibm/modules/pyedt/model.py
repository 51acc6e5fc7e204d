"""`FabricModel`: IBM's way to say what to train, on Pliant's engine.

The guarantee: the global batch is `batch_size * engines_number`, or `effective_batch_size`, whatever is granted, so
the course of a training does not depend on how many tasks it has at any moment.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import torch
from torch import nn

from pliant.ibm.modules.pyedt.progress_log import job_id
from pliant.ibm.modules.pyedt.saving import pack_model
from pliant.ibm.modules.pyedt.script import LEAST_ENGINES, Script, parse_schedule, parse_script, refuse_unknown
from pliant.ibm.modules.pyedt.training import train
from pliant.train.context import find_context
from pliant.train.optimize import Optimizers

MODEL_KEYWORDS: Final = (
    "model",
    "datasets_function",
    "loss_function",
    "optimizer",
    "metrics",
    "driver_logger",
    "worker_logger",
    "user_callback",
    "fn_step_train",
    "fn_test",
    "enable_onnx",
    "scale_up_function",
    "collate_fn",
    "schedulers",
    "epoch_schedulers",
    "scaler",
    "autocast",
    "clip_norm",
    "clip_value",
)
TRAIN_KEYWORDS: Final = (
    "epoch_number",
    "batch_size",
    "engines_number",
    "num_dataloader_threads",
    "validation_freq",
    "checkpoint_freq",
    "effective_batch_size",
    "worker_memory",
    "driver_memory",
    "accumulate",
)
NO_MEANING: Final = {
    "scale_up_function": "the server decides how fast a job grows",
    "worker_memory": "tasks are processes, not containers of a fixed size",
    "driver_memory": "there is no driver process",
}


class FabricModel:
    """A training that grows and shrinks; `FabricModel(model, datasets_function, loss_function, optimizer).train(…)`."""

    def __init__(  # noqa: PLR0913 (IBM's signature)
        self,
        model: nn.Module,
        datasets_function: Callable[[], Any],
        loss_function: Any,
        optimizer: Optimizers | Any,
        metrics: Iterable[Any] | None = None,
        driver_logger: Any = None,
        worker_logger: Any = None,
        user_callback: Any = None,
        fn_step_train: Callable[..., Any] | None = None,
        fn_test: Callable[..., Any] | None = None,
        enable_onnx: bool = False,
        scale_up_function: Callable[[int, int], int] | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        *,
        schedulers: Any = None,
        epoch_schedulers: Any = None,
        scaler: torch.amp.GradScaler | None = None,
        autocast: torch.dtype | None = None,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        **unknown: Any,
    ) -> None:
        """Take the parts of a training; nothing is loaded and nothing trained yet.

        Those after `collate_fn` are Pliant's own: learning-rate schedulers that step after every optimizer step or
        after every epoch, a GradScaler and the dtype of autocast, and how the gradient of the global batch is clipped.
        With a `scaler`, `fn_step_train` calls `scaler.scale(loss).backward()`, and neither `scaler.step` nor
        `scaler.update`. A Keras model takes losses, optimizers and metrics of Keras, or their names.

        Raises:
            TypeError: a keyword is unknown.
            InvalidInput: a part is not what it has to be.
        """
        given = dict(locals())
        refuse_unknown("FabricModel", unknown, MODEL_KEYWORDS)
        parts = {name: given[name] for name in MODEL_KEYWORDS}
        self._script = _parse(parts)
        self._unused = {"scale_up_function": scale_up_function}
        self.model = model

    def train(  # noqa: PLR0913 (IBM's signature)
        self,
        epoch_number: int,
        batch_size: int,
        engines_number: int | None = None,
        num_dataloader_threads: int = 0,
        validation_freq: int = 1,
        checkpoint_freq: int = 1,
        effective_batch_size: int | None = None,
        worker_memory: str | None = None,
        driver_memory: str | None = None,
        *,
        accumulate: int = 1,
        **unknown: Any,
    ) -> None:
        """Train; return when all epochs are done and the model is saved.

        `num_dataloader_threads` is the number of processes that load data for every task. `accumulate` is Pliant's own:
        a local batch is computed in so many pieces, one after the other, to save memory.

        Raises:
            TypeError: a keyword is unknown.
            InvalidInput: a number is out of its bounds, or both ways to say the global batch are used.
        """
        given = dict(locals())
        refuse_unknown("FabricModel.train", unknown, TRAIN_KEYWORDS)
        context = find_context()
        engines = context.virtual_workers or max(LEAST_ENGINES, context.max_tasks)
        schedule = parse_schedule({name: given[name] for name in TRAIN_KEYWORDS}, engines)
        unused = {**self._unused, "worker_memory": worker_memory, "driver_memory": driver_memory}
        notes = [
            f"{name} is accepted and has no effect: {why}"
            for name, why in NO_MEANING.items()
            if unused.get(name) is not None
        ]
        train(self._script, schedule, notes)

    def download(self, out_dir: str = "/tmp") -> str:
        """Write the trained model into `out_dir` as JOB_ID.zip and return its path."""
        return str(pack_model(self.model, job_id(), out_dir))


def _parse(parts: Mapping[str, Any]) -> Script:
    """Return the script; Keras is imported only where the model is one of it."""
    packages = {kind.__module__.partition(".")[0] for kind in type(parts["model"]).__mro__}
    if not packages & {"keras", "tf_keras"}:
        return parse_script(parts)
    parsed: Script = importlib.import_module("pliant.ibm.modules.pyedt.keras_script").parse_keras(parts)
    return parsed
