"""What a model has answered, as the protocol can say it: which outputs, of which datatype, and the best classes only.

An output is what its array is, not what the metadata promises: the answer says its datatype and shape.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InternalError, InvalidInput
from pliant.serve.protocol.v2.fields import show
from pliant.serve.protocol.v2.request import InferRequest, RequestedOutput

_NUMBERS: Final = {"u": "UINT", "i": "INT", "f": "FP"}
_SIZES: Final = {"u": (1, 2, 4, 8), "i": (1, 2, 4, 8), "f": (2, 4, 8)}


class BadOutput(InternalError):
    """The model has answered what the protocol cannot say; whoever wrote the model can mend it."""


def select_outputs(
    request: InferRequest, outputs: Mapping[str, NDArray[Any]]
) -> Iterator[tuple[RequestedOutput, NDArray[Any]]]:
    """Yield the outputs that are asked for, in the order of the request; all in the model's order if it names none.

    Raises:
        InvalidInput: the model has no output of that name.
    """
    for at, wanted in enumerate(request.outputs or [RequestedOutput(name=name) for name in outputs]):
        if wanted.name not in outputs:
            known = ", ".join(sorted(outputs)) or "none"
            message = f"the model has no output {show(wanted.name)}; it has {known}"
            raise InvalidInput.at(f"outputs[{at}].name", message)
        array = outputs[wanted.name]
        if wanted.classification is not None:
            array = _classify(array, wanted.classification, f"outputs[{at}].parameters.classification")
        yield wanted, array


def datatype_of(name: str, array: NDArray[Any]) -> str:
    """Return the datatype of an output.

    Raises:
        BadOutput: it has none.
    """
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        return "BOOL"
    if kind in "OSUT":
        return "BYTES"
    if size not in _SIZES.get(kind, ()):
        message = f"the model's output {name!r} is an array of {array.dtype}, for which the protocol has no datatype"
        raise BadOutput(f"{message}; return truth values, numbers of at most 64 bits, or texts")
    return f"{_NUMBERS[kind]}{8 * size}"


def elements_of(name: str, array: NDArray[Any]) -> list[bytes]:
    """Return the elements of an output of BYTES, flat; texts as UTF-8.

    Raises:
        BadOutput: one is neither bytes nor text.
    """
    return [_element(name, at, one) for at, one in enumerate(array.ravel().tolist())]


def _element(name: str, at: int, value: object) -> bytes:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not isinstance(value, str):
        raise BadOutput(f"element {at} of the model's output {name!r} is {show(value)}; return bytes or texts")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise BadOutput(f"element {at} of the model's output {name!r} holds half a character; return bytes") from None


def _classify(array: NDArray[Any], num_classes: int, field: str) -> NDArray[Any]:
    """Return the largest values along the last dimension as `value:index`; of equal ones the earlier comes first."""
    if array.dtype.kind not in "iuf" or not array.ndim:
        raise InvalidInput.at(field, f"an output of {array.dtype} and shape {list(array.shape)} has no classes")
    order = array.shape[-1] - 1 - np.argsort(array[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = order[..., :num_classes]
    best = np.take_along_axis(array, order, axis=-1)
    found = np.empty(order.shape, object)
    for at, (value, index) in enumerate(zip(best.ravel(), order.ravel().tolist(), strict=True)):
        found.flat[at] = f"{value!s}:{index}".encode()
    return found
