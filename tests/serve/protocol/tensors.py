"""A client of the Open Inference Protocol, as far as the tests need one: it writes requests, and reads answers."""

import json
import struct
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

DTYPES: Final = {
    "BOOL": np.dtype("?"),
    "UINT8": np.dtype("u1"),
    "UINT16": np.dtype("<u2"),
    "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"),
    "INT8": np.dtype("i1"),
    "INT16": np.dtype("<i2"),
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FP16": np.dtype("<f2"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
ARRAY = NDArray[Any]


def objects(elements: Iterable[bytes | str], shape: tuple[int, ...]) -> ARRAY:
    """Return an array of bytes or texts; numpy would cut zeros from their ends by itself."""
    listed = list(elements)
    array = np.empty(len(listed), object)
    array[:] = listed
    return array.reshape(shape)


def as_raw(datatype: str, array: ARRAY) -> bytes:
    """Return a tensor's raw bytes."""
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(one)) + one for one in array.ravel().tolist())
    if datatype == "BF16":
        return bytes((array.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes())
    return array.astype(DTYPES[datatype]).tobytes()


def from_raw(datatype: str, shape: list[int], raw: bytes) -> ARRAY:
    """Return the tensor that raw bytes are."""
    if datatype != "BYTES":
        return np.frombuffer(raw, DTYPES[datatype]).reshape(shape)
    elements, at = [], 0
    while at < len(raw):
        (size,) = struct.unpack_from("<I", raw, at)
        elements.append(raw[at + 4 : at + 4 + size])
        at += 4 + size
    return objects(elements, tuple(shape))


def as_json(datatype: str, array: ARRAY, *, is_flat: bool) -> Any:
    """Return a tensor's data for JSON."""
    listed = array.ravel() if is_flat else array
    if datatype == "BYTES":
        listed = np.vectorize(bytes.decode, otypes=[object])(listed) if listed.size else listed
    return listed.tolist()


def json_request(tensors: dict[str, tuple[str, ARRAY]], *, is_flat: bool = True, **more: object) -> bytes:
    """Return a request whose tensors are JSON."""
    inputs = [
        {"name": name, "datatype": kind, "shape": array.shape, "data": as_json(kind, array, is_flat=is_flat)}
        for name, (kind, array) in tensors.items()
    ]
    return json.dumps({"inputs": inputs, **more}).encode()


def binary_request(tensors: dict[str, tuple[str, ARRAY]], **more: object) -> tuple[bytes, int]:
    """Return a request whose tensors are binary data, and how much of it is JSON."""
    raws = [as_raw(kind, array) for kind, array in tensors.values()]
    inputs = [
        {"name": name, "datatype": kind, "shape": array.shape, "parameters": {"binary_data_size": len(raw)}}
        for (name, (kind, array)), raw in zip(tensors.items(), raws, strict=True)
    ]
    text = json.dumps({"inputs": inputs, **more}).encode()
    return text + b"".join(raws), len(text)


def read_response(body: bytes, num_json: int | None) -> tuple[dict[str, Any], dict[str, ARRAY]]:
    """Return the JSON of an answer, and its outputs."""
    said = json.loads(body[:num_json])
    found, at = {}, len(body) if num_json is None else num_json
    for output in said["outputs"]:
        kind, shape = output["datatype"], output["shape"]
        if "data" in output:
            data = [one.encode() for one in output["data"]] if kind == "BYTES" else output["data"]
            made = objects(data, tuple(shape)) if kind == "BYTES" else np.array(data, DTYPES[kind]).reshape(shape)
        else:
            size = output["parameters"]["binary_data_size"]
            made = from_raw(kind, shape, body[at : at + size])
            at += size
        found[output["name"]] = made
    assert at == len(body)
    return said, found


def same(a: ARRAY, b: ARRAY) -> bool:
    """Say whether two arrays are the same, bit for bit."""
    if a.shape != b.shape or (a.dtype != b.dtype.newbyteorder("=")):
        return False
    return bool(a.tolist() == b.tolist() if a.dtype.kind == "O" else a.tobytes() == b.astype(a.dtype).tobytes())


shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@st.composite
def arrays(draw: st.DrawFn, datatype: str, *, for_json: bool = False) -> ARRAY:
    """Draw a tensor; any bits, but those alone that JSON can say if it is for JSON."""
    shape = draw(shapes)
    count = int(np.prod(shape))
    if datatype == "BYTES":
        one = (
            st.text(st.characters(exclude_categories=["Cs"]), max_size=6).map(str.encode)
            if for_json
            else st.binary(max_size=6)
        )
        return objects(draw(st.lists(one, min_size=count, max_size=count)), shape)
    if datatype == "BF16":
        bits = np.frombuffer(draw(st.binary(min_size=2 * count, max_size=2 * count)), "<u2")
        return (bits.astype(np.uint32) << 16).view(np.float32).reshape(shape)
    dtype = DTYPES[datatype]
    if datatype == "BOOL":
        return np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), bool).reshape(shape)
    size = count * dtype.itemsize
    made = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), dtype).reshape(shape)
    return np.where(np.isfinite(made), made, dtype.type(0)) if for_json and dtype.kind == "f" else made
