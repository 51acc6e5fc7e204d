"""torch modules as functions of arrays: arguments by name, outputs by name, and whose fault an error is."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.runner.errors import last_line
from pliant.serve.runner.joined import Arrays
from pliant.serve.runner.metadata import DeclaredTensor

DATATYPES: Final[Mapping[torch.dtype, str]] = {
    torch.bool: "BOOL",
    torch.uint8: "UINT8",
    torch.uint16: "UINT16",
    torch.uint32: "UINT32",
    torch.uint64: "UINT64",
    torch.int8: "INT8",
    torch.int16: "INT16",
    torch.int32: "INT32",
    torch.int64: "INT64",
    torch.float16: "FP16",
    torch.bfloat16: "BF16",
    torch.float32: "FP32",
    torch.float64: "FP64",
}
_OF_INPUTS: Final = re.compile(
    r"size|shape|dimension|dtype|scalar type|out of range|guard|argument|expected", re.IGNORECASE
)
"""Words of torch's errors that are about what went in."""

_RAISED_BY_TORCH: Final = (RuntimeError, IndexError, ValueError, TypeError, AssertionError, torch.jit.Error)


def choose_device() -> torch.device:
    """Return where models compute."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def as_tensors(inputs: Arrays, device: torch.device) -> dict[str, torch.Tensor]:
    """Return arrays as tensors.

    Raises:
        InvalidInput: torch has no such type.
    """
    tensors = {}
    for name, array in inputs.items():
        if array.dtype.hasobject:
            raise InvalidInput.at(name, "is BYTES; the model takes numbers")
        tensors[name] = torch.from_numpy(np.require(array, requirements=["C", "W"])).to(device)
    return tensors


def name_outputs(output: Any) -> dict[str, Any]:
    """Return what a model gave by name: `output`, or `output_0`, `output_1`, …, or its own names.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(output, torch.Tensor):
        return {"output": output}
    if isinstance(output, Mapping):
        return {str(name): value for name, value in output.items() if value is not None}
    if isinstance(output, Sequence) and not isinstance(output, str):
        return {f"output_{index}": value for index, value in enumerate(output)}
    raise TypeError(f"the model returned {type(output).__name__}; return a tensor, or a list or dict of them")


def as_arrays_of_tensors(output: Any) -> dict[str, NDArray[Any]]:
    """Return what a model gave as arrays by name.

    Raises:
        TypeError: it holds something that is no tensor.
    """
    arrays = {}
    for name, value in name_outputs(output).items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"the model's output {name!r} is {type(value).__name__}; return tensors")
        value = value.detach().cpu()
        arrays[name] = (value.float() if value.dtype is torch.bfloat16 else value).numpy()
    return arrays


def declare(name: str, tensor: torch.Tensor, *, shape: Sequence[int] | None = None) -> DeclaredTensor | None:
    """Return the declaration of a tensor; sizes that are symbols are open. None: the protocol has no such type."""
    datatype = DATATYPES.get(tensor.dtype)
    if datatype is None:
        return None
    sizes = tensor.shape if shape is None else shape
    return DeclaredTensor(name=name, datatype=datatype, shape=tuple(s if type(s) is int else -1 for s in sizes))


def compute_with(call: Callable[[dict[str, torch.Tensor]], Any], device: torch.device) -> Callable[[Arrays], Arrays]:
    """Return a function of arrays that calls a module without gradients."""

    def compute(inputs: Arrays) -> Arrays:
        with torch.inference_mode():
            return as_arrays_of_tensors(call(as_tensors(inputs, device)))

    return compute


def blames_caller(error: Exception) -> bool:
    """Tell whether an error is due to the inputs: their number, shape or type, or an index that is too large."""
    if isinstance(error, InvalidInput):
        return True
    text = last_line(error)
    if isinstance(error, torch.OutOfMemoryError) or "CUDA error" in text:
        return False
    return isinstance(error, _RAISED_BY_TORCH) and bool(_OF_INPUTS.search(text))
