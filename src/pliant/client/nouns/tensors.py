"""Arrays as the Open Inference Protocol sends them: a JSON object, and behind it the tensors' bytes.

    {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}]}........

Bytes are little-endian and row-major. An element of BYTES is four bytes that say its length, and the element. BF16,
which numpy lacks, is the upper half of a float32. An answer may also hold its tensors as JSON.
"""

import json
import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pliant.core.errors import InternalError, InvalidInput

_STORED: Final[Mapping[str, str]] = {
    "BOOL": "?",
    "UINT8": "u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
"""How an element is stored, by the protocol's datatype."""
_NAMES: Final = {np.dtype(stored).newbyteorder("="): name for name, stored in _STORED.items()}
_LENGTH: Final = struct.Struct("<I")


def encode_inputs(
    inputs: Mapping[str, Any], datatypes: Mapping[str, str], *, wants_binary: bool = True
) -> tuple[bytes, int]:
    """Return the body of a request, and how many of its bytes are JSON.

    Args:
        inputs: by name: arrays, or nested lists of numbers, truth values, texts or bytes.
        datatypes: what the model says of its inputs. A list becomes that; of one that is not named, numbers with a
            point become FP32. An array is sent as what it is.
        wants_binary: the tensors of the answer are to follow its JSON, and not to stand in it.

    Raises:
        InvalidInput: with every input that cannot be sent.
    """
    tensors, raw = [], []
    for name, value in inputs.items():
        array = _array_of(name, value, datatypes.get(name))
        datatype = _NAMES.get(array.dtype.newbyteorder("="), "BYTES")
        content = _raw_texts(name, array) if datatype == "BYTES" else _raw_numbers(array, datatype)
        shape = [int(one) for one in array.shape]
        said = {"binary_data_size": len(content)}
        tensors.append({"name": name, "shape": shape, "datatype": datatype, "parameters": said})
        raw.append(content)
    head = json.dumps({"inputs": tensors, "parameters": {"binary_data_output": wants_binary}}).encode()
    return b"".join((head, *raw)), len(head)


def decode_outputs(content: bytes, num_json_bytes: int | None) -> dict[str, NDArray[Any]]:
    """Return the tensors of an answer, by name; elements of BYTES are `bytes`.

    Args:
        content: the answer's body.
        num_json_bytes: how many of its bytes are JSON; None: all.

    Raises:
        InternalError: it is no such answer.
    """
    end = len(content) if num_json_bytes is None else num_json_bytes
    try:
        outputs = json.loads(content[:end])["outputs"]
        found: dict[str, NDArray[Any]] = {}
        for one in outputs:
            shape = tuple(int(number) for number in one["shape"])
            size = one.get("parameters", {}).get("binary_data_size")
            if size is None:
                found[one["name"]] = _from_json(one["data"], one["datatype"], shape)
                continue
            found[one["name"]] = _from_raw(content[end : end + size], one["datatype"], shape)
            end += size
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        message = f"the answer is none of the Open Inference Protocol ({type(error).__name__}: {error})"
        raise InternalError(f"{message}; see that client and server have the same version") from error
    return found


def _array_of(name: str, value: Any, declared: str | None) -> NDArray[Any]:
    try:
        if isinstance(value, list | tuple | int | float | str | bytes):
            array = np.asarray(value, dtype=_STORED.get(declared or ""))
            return array.astype("<f4") if declared is None and array.dtype == np.float64 else array
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput.at(f"inputs.{name}", f"it is no array ({error}); give lists of one length each") from error


def _raw_numbers(array: NDArray[Any], datatype: str) -> bytes:
    return np.ascontiguousarray(array, dtype=_STORED[datatype]).tobytes()


def _raw_texts(name: str, array: NDArray[Any]) -> bytes:
    return b"".join(part for element in array.ravel() for part in _raw_text(name, element))


def _raw_text(name: str, element: object) -> Iterator[bytes]:
    if isinstance(element, str):
        element = element.encode()
    if not isinstance(element, bytes):
        message = f"a {type(element).__name__} cannot be sent; give numbers, truth values, texts or bytes"
        raise InvalidInput.at(f"inputs.{name}", message)
    yield _LENGTH.pack(len(element))
    yield element


def _from_json(data: Any, datatype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if datatype == "BYTES":
        flat = np.asarray(data, dtype=object).ravel()
        texts = [one.encode() if isinstance(one, str) else bytes(one) for one in flat]
        return _objects(texts, shape)
    return np.asarray(data, dtype=_STORED[datatype]).reshape(shape)


def _from_raw(raw: bytes, datatype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    if datatype == "BYTES":
        return _objects(list(_texts_in(raw)), shape)
    if datatype == "BF16":
        upper = np.frombuffer(raw, dtype="<u2").astype("<u4") << 16
        return upper.view("<f4").reshape(shape)
    return np.frombuffer(raw, dtype=_STORED[datatype]).reshape(shape).copy()


def _texts_in(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        (length,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        if at + length > len(raw):
            raise ValueError("an element of BYTES is longer than what was sent")
        yield raw[at : at + length]
        at += length


def _objects(texts: list[bytes], shape: tuple[int, ...]) -> NDArray[Any]:
    if len(texts) != math.prod(shape):
        raise ValueError(f"{len(texts)} elements do not fill the shape {list(shape)}")
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array.reshape(shape)
