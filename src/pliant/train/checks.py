"""What must hold before a training can begin; each message says what to change."""

from collections.abc import Mapping

import torch

from pliant.train.data.sharding import ShardingPlan
from pliant.train.errors import TrainingError


def check_trainable(
    model: torch.nn.Module,
    optimizers: Mapping[str, torch.optim.Optimizer],
    plan: ShardingPlan,
) -> None:
    """Refuse what cannot be trained.

    Raises:
        TrainingError: the data set, the batch, the model or an optimizer does not fit.
    """
    num_samples, batch_size, virtual_workers = plan.num_samples, plan.batch_size, plan.virtual_workers
    if batch_size < 1:
        raise TrainingError(f"batch_size is {batch_size}; it is the number of samples per step, at least 1")
    if num_samples < batch_size:
        raise TrainingError(
            f"the data set has {num_samples} samples, fewer than one global batch of {batch_size}; "
            f"lower batch_size to at most {num_samples} or bring more samples"
        )
    if batch_size < virtual_workers:
        raise TrainingError(
            f"a global batch of {batch_size} samples cannot be cut into {virtual_workers} virtual workers; "
            f"raise batch_size to at least {virtual_workers} or lower virtual_workers"
        )
    _check_whole(model)
    if not trained_parameters(model):
        raise TrainingError("no parameter of the model requires a gradient; there is nothing to train")
    held = set(trained_parameters(model))
    optimized = [p for o in optimizers.values() for group in o.param_groups for p in group["params"]]
    strangers = sum(p not in held for p in optimized if p.requires_grad)
    if strangers:
        raise TrainingError(
            f"the optimizers train {strangers} parameters that the model does not hold, so other tasks would not get "
            f"them; put every trained parameter into one torch.nn.Module and give that as the model"
        )
    synced = [name for name, module in model.named_modules() if isinstance(module, torch.nn.SyncBatchNorm)]
    if synced and plan.max_workers > 1:
        raise TrainingError(
            f"{synced[0]} is a SyncBatchNorm, which needs the batch of all {plan.max_workers} virtual workers at the "
            f"same moment, and a task computes its own one after the other; use BatchNorm (its statistics are those of "
            f"virtual worker 0), GroupNorm or LayerNorm, or virtual_workers=1"
        )


def unwrap(model: torch.nn.Module) -> torch.nn.Module:
    """Return the module itself where it was compiled as a whole: its state is saved under its own names."""
    inner = getattr(model, "_orig_mod", model)
    assert isinstance(inner, torch.nn.Module)
    return inner


def _check_whole(model: torch.nn.Module) -> None:
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        raise TrainingError("the model is wrapped in DistributedDataParallel, whose work Run does; give model.module")
    lazy = [name for name, p in model.named_parameters() if isinstance(p, torch.nn.parameter.UninitializedParameter)]
    if lazy:
        raise TrainingError(
            f"the parameter {lazy[0]} has no shape yet (a lazy module): call the model once on an example before the "
            f"optimizer and the Run are made"
        )


class InitialParameters:
    """The parameters that a training begins with, as they were then."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._kinds = {parameter: _kind(parameter) for parameter in trained_parameters(model)}

    def check(self) -> None:
        """Refuse parameters that began to be trained, or became something else, since then.

        Raises:
            TrainingError: the model has such a parameter.
        """
        now = {name: parameter for name, parameter in self._model.named_parameters() if parameter.requires_grad}
        added = [name for name, parameter in now.items() if parameter not in self._kinds]
        if added:
            raise TrainingError(
                f"{len(added)} parameters began to require a gradient after the Run was made, the first is {added[0]}; "
                f"make the Run while all that will ever be trained requires one, and freeze the others afterwards"
            )
        for name, parameter in now.items():
            if _kind(parameter) != self._kinds[parameter]:
                raise TrainingError(
                    f"the parameter {name} was {self._kinds[parameter]} when the Run was made, and is "
                    f"{_kind(parameter)} now; move and convert the model before"
                )


def _kind(parameter: torch.nn.Parameter) -> str:
    return f"{str(parameter.dtype).removeprefix('torch.')} of shape {tuple(parameter.shape)} on {parameter.device}"


def trained_parameters(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Return the parameters that require a gradient, in the model's order."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
