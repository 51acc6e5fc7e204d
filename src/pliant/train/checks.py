"""What must hold before a training can begin; each message says what to change."""

import torch

from pliant.train.errors import TrainingError


def check(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    num_samples: int,
    batch_size: int,
    virtual_workers: int,
) -> None:
    """Refuse what cannot be trained.

    Raises:
        TrainingError: the data set, the batch, the model or the optimizer does not fit.
    """
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
    if not trained(model):
        raise TrainingError("no parameter of the model requires a gradient; there is nothing to train")
    held = set(trained(model))
    strangers = sum(p not in held for group in optimizer.param_groups for p in group["params"] if p.requires_grad)
    if strangers:
        raise TrainingError(
            f"the optimizer trains {strangers} parameters that the model does not hold, so other tasks would not get "
            f"them; put every trained parameter into one torch.nn.Module and give that as the model"
        )


def trained(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Return the parameters that require a gradient, in the model's order."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]
