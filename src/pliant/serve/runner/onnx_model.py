"""The runner of ONNX models, on ONNX Runtime: `pip install 'pliant[onnx]'`."""

import importlib
from typing import Any, Final

from pliant.core.errors import InvalidInput
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.gpu_memory import part_of_gpu
from pliant.serve.runner.joined import Arrays
from pliant.serve.runner.metadata import DeclaredTensor, ModelMetadata
from pliant.serve.runner.session import KernelSession
from pliant.serve.runner.tensor_model import TensorModel

NOT_INSTALLED: Final = "ONNX Runtime is not installed in the kernel's environment; pip install 'pliant[onnx]'"
_DATATYPES: Final = {
    "tensor(bool)": "BOOL",
    "tensor(string)": "BYTES",
    "tensor(float16)": "FP16",
    "tensor(bfloat16)": "BF16",
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
} | {f"tensor({sign}int{bits})": f"{sign}int{bits}".upper() for sign in ("", "u") for bits in (8, 16, 32, 64)}


def serve(session: KernelSession, model: DeployedModel) -> None:
    """Load the model, and answer requests with it.

    Raises:
        ModelNotLoaded: ONNX Runtime is missing, or cannot read the file.
    """
    session.serve(load(model))


def load(model: DeployedModel) -> TensorModel:
    """Return the model that a file holds.

    Raises:
        ModelNotLoaded: ONNX Runtime is missing, or cannot read the file.
    """
    path = model.path
    try:
        runtime: Any = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ModelNotLoaded(NOT_INSTALLED) from error
    options = runtime.SessionOptions()
    options.intra_op_num_threads = model.num_threads
    limit = part_of_gpu(model.slot_share)
    cuda: dict[str, object] = {} if limit is None else {"gpu_mem_limit": limit}
    wanted: tuple[tuple[str, dict[str, object]], ...] = (("CUDAExecutionProvider", cuda), ("CPUExecutionProvider", {}))
    providers = [one for one in wanted if one[0] in runtime.get_available_providers()]
    try:
        inference = runtime.InferenceSession(str(path), options, providers=providers)
    except Exception as error:  # its errors have no other root
        raise ModelNotLoaded(f"{path.name} cannot be read by ONNX Runtime: {error!s:.300}") from error
    return _tensor_model(model, inference)


def _tensor_model(model: DeployedModel, inference: Any) -> TensorModel:
    inputs = tuple(declare(one.name, one.type, one.shape) for one in inference.get_inputs())
    outputs = tuple(declare(one.name, one.type, one.shape) for one in inference.get_outputs())
    names = [one.name for one in outputs]

    def compute(given: Arrays) -> Arrays:
        return dict(zip(names, inference.run(names, dict(given)), strict=True))

    return TensorModel(
        model,
        ModelMetadata(platform="onnxruntime_onnx", inputs=inputs, outputs=outputs),
        compute,
        is_strict=True,
        may_join=all(one.shape and one.shape[0] == -1 for one in inputs),
        blames_caller=_blames_caller,
    )


def declare(name: str, kind: str, shape: list[Any]) -> DeclaredTensor:
    """Return the declaration of an input or output; sizes that are names or unknown are open.

    Raises:
        ModelNotLoaded: it is no tensor that the Open Inference Protocol has.
    """
    datatype = _DATATYPES.get(kind)
    if datatype is None or datatype == "BF16":
        raise ModelNotLoaded(f"the model's {name} is {kind}, which cannot be sent; use tensors of numbers or texts")
    sizes = tuple(size if isinstance(size, int) and size >= 0 else -1 for size in shape)
    return DeclaredTensor(name=name, datatype=datatype, shape=sizes)


def _blames_caller(error: Exception) -> bool:
    return isinstance(error, InvalidInput) or type(error).__name__ == "InvalidArgument"
