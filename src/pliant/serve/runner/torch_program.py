"""The runner of models that torch has written: TorchScript (`torch.jit.save`), or `torch.export.save` (`.pt2`).

No code of the model's author is needed. A module with parameters alone (`state_dict`) is none: its code is missing.
"""

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from pliant.core.errors import InvalidInput
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.metadata import DeclaredTensor, ModelMetadata
from pliant.serve.runner.session import KernelSession
from pliant.serve.runner.tensor_model import TensorModel
from pliant.serve.runner.torch_compute import blames_caller, choose_device, compute_with, declare, name_outputs

_UNREADABLE = (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile)


def serve(session: KernelSession, model: DeployedModel) -> None:
    """Load the program, and answer requests with it.

    Raises:
        ModelNotLoaded: it is no program.
    """
    session.serve(load(model))


def load(model: DeployedModel) -> TensorModel:
    """Return the model that a file holds.

    Raises:
        ModelNotLoaded: it is no program.
    """
    path = model.path
    if path.suffix == ".pt2":
        return _load_exported(model, path)
    return _load_script(model, path)


def _load_script(model: DeployedModel, path: Path) -> TensorModel:
    device = choose_device()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit itself: people have such files
            module = torch.jit.load(str(path), map_location=device)  # type: ignore[no-untyped-call]
    except _UNREADABLE as error:
        remedy = "write it with torch.jit.script(model).save(…), or torch.export.save(…) into a .pt2 file"
        raise ModelNotLoaded(f"{path.name} is no TorchScript ({str(error).splitlines()[0]:.200}); {remedy}") from error
    module.eval()
    names = [argument.name for argument in module.forward.schema.arguments if argument.name != "self"]

    def call(tensors: dict[str, torch.Tensor]) -> Any:
        if set(tensors) <= set(names):
            return module(**tensors)
        if len(tensors) == 1:
            return module(*tensors.values())
        raise InvalidInput.at("inputs", f"{', '.join(tensors):.200} were sent; the model takes {', '.join(names)}")

    metadata = ModelMetadata(platform="pytorch_torchscript")
    compute = compute_with(call, device)
    return TensorModel(model, metadata, compute, is_strict=False, blames_caller=blames_caller)


def _load_exported(model: DeployedModel, path: Path) -> TensorModel:
    device = choose_device()
    try:
        program = torch.export.load(path)
    except _UNREADABLE as error:
        remedy = "write it with torch.export.save(torch.export.export(model, …), …)"
        raise ModelNotLoaded(f"{path.name} is no exported program ({error!s:.200}); {remedy}") from error
    if device.type != "cpu":
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, device)
    metadata = describe(program)
    module, spec = program.module(), program.call_spec.in_spec
    names = [one.name for one in metadata.inputs]

    def call(tensors: dict[str, torch.Tensor]) -> Any:
        assert spec is not None
        args, kwargs = pytree.tree_unflatten([_cast(tensors[one.name], one) for one in metadata.inputs], spec)
        return module(*args, **kwargs)

    return TensorModel(
        model,
        metadata,
        compute_with(call, device),
        is_strict=bool(names),
        may_join=all(one.shape and one.shape[0] == -1 for one in metadata.inputs),
        blames_caller=blames_caller,
    )


def describe(program: torch.export.ExportedProgram) -> ModelMetadata:
    """Return what a program says of its inputs and outputs.

    Raises:
        ModelNotLoaded: an input is no tensor.
    """
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    inputs = [_declared(str(name), values.get(str(name))) for name in program.graph_signature.user_inputs]
    outputs = [values.get(str(name)) for name in program.graph_signature.user_outputs]
    spec = program.call_spec.out_spec
    named = name_outputs(pytree.tree_unflatten(outputs, spec)) if spec is not None else {}
    declared = [declare(name, value) for name, value in named.items() if isinstance(value, torch.Tensor)]
    return ModelMetadata(
        platform="pytorch_export", inputs=tuple(inputs), outputs=tuple(one for one in declared if one is not None)
    )


def _declared(name: str, value: object) -> DeclaredTensor:
    declared = declare(name, value) if isinstance(value, torch.Tensor) else None
    if declared is None:
        raise ModelNotLoaded(f"the program's input {name} is no tensor of numbers; export it with tensors alone")
    return declared


def _cast(tensor: torch.Tensor, declared: DeclaredTensor) -> torch.Tensor:
    return tensor.bfloat16() if declared.datatype == "BF16" else tensor
