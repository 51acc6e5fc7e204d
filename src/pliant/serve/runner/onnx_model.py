"""The runner of ONNX models, on ONNX Runtime: `pip install 'pliant[onnx]'`.

A file of this format holds no code: its operators are those of ONNX Runtime, and no other library is loaded for it.
Weights may lie in files beside it, in the model's folder. Texts are UTF-8 there.
"""

import importlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InvalidInput
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.gpu_memory import part_of_gpu
from pliant.serve.runner.joined import Arrays
from pliant.serve.runner.metadata import DeclaredTensor, ModelMetadata
from pliant.serve.runner.session import KernelSession
from pliant.serve.runner.tensor_model import TensorModel
from pliant.serve.runner.tensors import check_inputs

NOT_INSTALLED: Final = "ONNX Runtime is not installed in the kernel's environment; pip install 'pliant[onnx]'"
OLDEST: Final = (1, 24)
"""Those before read whatever file a model says that its weights are in."""
_WHERE: Final = re.compile(r"\S*/onnxruntime/\S+:\d+ .*?\)(?: const)? (?=\S)|^\[ONNXRuntimeError\] : \d+ : \w+ : ")
"""Of an error: the place in its source, and a number."""
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
        ModelNotLoaded: ONNX Runtime is missing or too old, or cannot read the file.
    """
    path = model.path
    try:
        runtime: Any = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ModelNotLoaded(NOT_INSTALLED) from error
    require_recent(str(runtime.__version__))
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = model.num_threads, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other kernels want the processor
    providers = choose_providers(runtime.get_available_providers(), part_of_gpu(model.slot_share))
    try:
        inference = runtime.InferenceSession(str(path), options, providers=providers)
    except Exception as error:  # its errors have no other root
        said = _WHERE.sub("", str(error)).replace(f"{path.parent}/", "").strip()
        raise ModelNotLoaded(f"{path.name} cannot be read by ONNX Runtime: {said:.300}") from error
    return _tensor_model(model, inference)


def require_recent(version: str) -> None:
    """Refuse an ONNX Runtime that is too old.

    Raises:
        ModelNotLoaded: it is.
    """
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        message = f"ONNX Runtime {version} reads files outside of a model's folder; pip install 'onnxruntime>={wanted}'"
        raise ModelNotLoaded(message)


def choose_providers(available: Collection[str], gpu_bytes: int | None) -> list[tuple[str, dict[str, object]]]:
    """Return what computes, best first: a GPU if there is one for ONNX Runtime, and the processor.

    Args:
        available: what ONNX Runtime has.
        gpu_bytes: so much of the GPU's memory is the kernel's; None: all of it.
    """
    cuda: dict[str, object] = {}
    if gpu_bytes is not None:  # by default it takes twice as much with every step, which passes the limit too early
        cuda = {"gpu_mem_limit": gpu_bytes, "arena_extend_strategy": "kSameAsRequested"}
    wanted: tuple[tuple[str, dict[str, object]], ...] = (("CUDAExecutionProvider", cuda), ("CPUExecutionProvider", {}))
    return [one for one in wanted if one[0] in available]


def _tensor_model(model: DeployedModel, inference: Any) -> TensorModel:
    inputs = tuple(declare(one.name, one.type, one.shape) for one in inference.get_inputs())
    outputs = tuple(declare(one.name, one.type, one.shape) for one in inference.get_outputs())
    names = [one.name for one in outputs]
    shapes: dict[str, Sequence[object]] = {one.name: one.shape for one in inference.get_inputs()}
    has_ranks = all(shapes.values())

    def compute(given: Arrays) -> Arrays:
        if not has_ranks:
            check_inputs(given, tuple(_of_any_rank(one, given.get(one.name)) for one in inputs))
        texts = {name: _as_texts(name, array) if array.dtype.hasobject else array for name, array in given.items()}
        try:
            return dict(zip(names, inference.run(names, texts), strict=True))
        except Exception as error:
            require_same_sizes(given, shapes)
            raise RuntimeError(_WHERE.sub("", str(error))) from error

    return TensorModel(
        model,
        ModelMetadata(platform="onnxruntime_onnx", inputs=inputs, outputs=outputs),
        compute,
        is_strict=has_ranks,
        may_join=_have_rows(list(shapes.values())),
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


def require_same_sizes(given: Arrays, shapes: Mapping[str, Sequence[object]]) -> None:
    """Raise unless sizes that a model calls by one name are the same; it may compute others all the same.

    Args:
        given: inputs that the model could not compute.
        shapes: of its inputs; open sizes have names, or None.

    Raises:
        InvalidInput: they are not.
    """
    found: dict[str, tuple[str, int]] = {}
    for name, array in given.items():
        for called, size in zip(shapes[name], array.shape, strict=False):
            if isinstance(called, str):
                other, its_size = found.setdefault(called, (name, size))
                if size != its_size:
                    raise InvalidInput.at(name, f"has {size} as its {called!r}, and {other} has {its_size}")


def _of_any_rank(declared: DeclaredTensor, given: NDArray[Any] | None) -> DeclaredTensor:
    """Return what an input may be: ONNX Runtime says the same of one number and of what has no known rank."""
    return declared if declared.shape or given is None else replace(declared, shape=given.shape)


def _have_rows(shapes: Sequence[Sequence[object]]) -> bool:
    """Tell whether the first size of all inputs is open, and by its names the same: then requests can be joined."""
    if not all(shape and not isinstance(shape[0], int) for shape in shapes):
        return False
    return len({shape[0] for shape in shapes if shape[0] is not None}) <= 1


def _as_texts(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return texts as ONNX Runtime takes them; of bytes it would take what Python shows of them.

    Raises:
        InvalidInput: they are not UTF-8.
    """
    try:
        texts = [one.decode() if isinstance(one, bytes) else str(one) for one in array.ravel().tolist()]
    except UnicodeDecodeError as error:
        raise InvalidInput.at(name, f"{error.object!r:.60} is not UTF-8, which the texts of this model are") from None
    return np.array(texts, object).reshape(array.shape)


def _blames_caller(error: Exception) -> bool:
    return isinstance(error, InvalidInput) or type(error.__cause__).__name__ == "InvalidArgument"
