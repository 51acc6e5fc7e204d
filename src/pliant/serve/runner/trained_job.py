"""The runner of a trained job: its own script says what the model is, and the weights are those that it came to.

The script is run until it builds its training; what would train is not begun. `train` does that, and is handed in.
"""

import inspect
import pickle
from collections.abc import Mapping
from typing import Any

import torch

from pliant.core.errors import InvalidInput
from pliant.serve.runner.deployed import BuiltModel, DeployedModel
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.metadata import DeclaredTensor, ModelMetadata
from pliant.serve.runner.session import KernelSession
from pliant.serve.runner.tensor_model import TensorModel
from pliant.serve.runner.torch_compute import blames_caller, choose_device, compute_with, declare


def serve(session: KernelSession, model: DeployedModel) -> None:
    """Build the model, load its weights, and answer requests with it.

    Raises:
        ModelNotLoaded: the script builds no model, or another one than the weights are of.
    """
    session.serve(load(model))


def load(model: DeployedModel) -> TensorModel:
    """Return the model of a job with its weights.

    Raises:
        ModelNotLoaded: the script builds no model, or another one than the weights are of.
    """
    assert model.build is not None, "entry hands it in"
    built, device = model.build(model.path, model.args), choose_device()
    module = built.module
    if model.weights is not None:
        _load_weights(module, model)
    module.to(device).eval()
    names = _argument_names(module)

    def call(tensors: dict[str, torch.Tensor]) -> Any:
        if len(tensors) == 1:
            return module(*tensors.values())
        if not set(tensors) <= set(names):
            raise InvalidInput.at("inputs", f"{', '.join(tensors):.200} were sent; the model takes {', '.join(names)}")
        return module(**tensors)

    metadata = ModelMetadata(platform="pytorch", inputs=describe_sample(built, names))
    return TensorModel(model, metadata, compute_with(call, device), is_strict=False, blames_caller=blames_caller)


def _load_weights(module: torch.nn.Module, model: DeployedModel) -> None:
    path = model.find(model.weights or "")
    try:
        module.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, EOFError, RuntimeError, ValueError, TypeError, AttributeError, pickle.UnpicklingError) as error:
        why = " ".join(str(error).split())
        raise ModelNotLoaded(f"{path.name} does not fit the model that {model.file} builds: {why:.1000}") from error


def _argument_names(module: torch.nn.Module) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in inspect.signature(module.forward).parameters.values() if one.kind in kinds]


def describe_sample(built: BuiltModel, names: list[str]) -> tuple[DeclaredTensor, ...]:
    """Return the inputs that the first sample of a data set has, with any number of rows; none if it does not tell.

    Of a pair the first is the input; of a dictionary, what the module has arguments for.
    """
    sample = built.sample
    if isinstance(sample, tuple | list) and sample:
        sample = sample[0]
    if isinstance(sample, Mapping):
        given = {str(name): value for name, value in sample.items() if name in names}
    else:
        given = {names[0] if names else "input": sample}
    declared = [_declare_rows(name, value) for name, value in given.items()]
    return tuple(one for one in declared if one is not None) if None not in declared else ()


def _declare_rows(name: str, value: Any) -> DeclaredTensor | None:
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return declare(name, tensor, shape=(-1, *tensor.shape))
