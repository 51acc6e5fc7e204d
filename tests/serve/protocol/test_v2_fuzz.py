"""Whatever a stranger sends: it is a request, or an `InvalidInput`; and memory stays in proportion to the body."""

import json
import tracemalloc
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.serve.protocol.tensors import binary_request, objects

from pliant.core.errors import InvalidInput
from pliant.serve.protocol import json_size
from pliant.serve.protocol.v2 import InferRequest, decode_request, encode_response, resolve_raw
from pliant.serve.runner.json_values import read_json

BYTES_PER_BYTE: Final = 100
"""An empty list takes 2 bytes of a body and 56 of memory; an object more."""
FIXED_BYTES: Final = 256 << 10
METADATA: Final = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]}
FIRST: Final = {
    "a": ("FP32", np.ones((2, 3), "f4")),
    "b": ("BYTES", objects([b"abc", b""], (2,))),
    "c": ("BOOL", np.array([True])),
}
BODY, NUM_JSON = binary_request(FIRST, id="7", outputs=[{"name": "y", "parameters": {"binary_data": True}}])

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4),
    st.sampled_from([1 << 31, 1 << 62, 1 << 64, 10**400, "FP32", "BYTES", "BOOL", "\ud800"]),
)  # fmt: skip
keys = st.sampled_from(
    ["name", "datatype", "shape", "data", "parameters", "inputs", "outputs", "id", "binary_data_size", "binary_data",
     "classification", "shared_memory_region", "binary_data_output"]
)  # fmt: skip
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=2), inner, max_size=4)
)
tensors = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["x", "y"]) | values,
        "datatype": st.sampled_from(["FP32", "INT8", "BYTES", "BOOL", "UINT64", "FP16"]) | values,
        "shape": st.lists(st.integers(-1, 3) | scalars, max_size=3) | values,
        "data": st.lists(scalars, max_size=4) | values,
        "parameters": st.dictionaries(keys, st.integers(-1, 9) | values, max_size=2) | values,
    },
)
requests = st.fixed_dictionaries(
    {"inputs": st.lists(tensors, max_size=3) | values},
    optional={"id": values, "outputs": st.lists(tensors, max_size=3) | values, "parameters": values},
)


def try_everything(body: bytes, num_json: int | None) -> InferRequest | None:
    """Read a body as a kernel does, and say what it answers."""
    try:
        request = resolve_raw(decode_request(body, num_json), METADATA)
        for tensor in request.inputs:
            assert tensor.data.shape == tensor.shape
        encode_response(request, "m", "1", {"y": np.ones((2, 2), "f4")})
    except InvalidInput as error:
        assert len(str(error)) < 1000  # noqa: PT017 (either way is right; what it says must be short)
        return None
    return request


@given(st.binary(max_size=300), st.none() | st.integers(-5, 310))
def test_arbitrary_bytes_are_refused_in_words(body: bytes, num_json: int | None) -> None:
    try_everything(body, num_json)


@given(requests, st.binary(max_size=20), st.booleans())
def test_arbitrary_json_is_refused_in_words(said: dict[str, Any], rest: bytes, is_binary: bool) -> None:
    text = json.dumps(said).encode()
    try_everything(text + rest if is_binary else text, len(text) if is_binary else None)


@given(
    st.lists(st.tuples(st.integers(0, len(BODY) - 1), st.integers(0, 255)), max_size=4),
    st.integers(0, len(BODY)),
    st.integers(0, 8),
    st.integers(-3, 3),
)
@example([], len(BODY), 0, 0)
def test_a_request_that_was_damaged_is_a_request_or_refused(
    changes: list[tuple[int, int]], end: int, num_more: int, shift: int
) -> None:
    damaged = bytearray(BODY)
    for at, value in changes:
        damaged[at] = value

    request = try_everything(bytes(damaged[:end]) + b"\xff" * num_more, NUM_JSON + shift)

    if (changes, end, num_more, shift) == ([], len(BODY), 0, 0):
        assert request is not None
        assert [one.name for one in request.inputs] == ["a", "b", "c"]


@given(
    st.sampled_from(
        [
            b"[",
            b"{",
            b'"',
            b'{"a":',
            b"[[],",
            b"\\",
            b'"\\',
            b"0,",
            b"[0,",
            b'"",',
            b"\xff\xff\xff\xff",
            b"9",
            b"-",
            b"1e9,",
        ]
    ),
    st.sampled_from([b"", b'{"inputs":[', b'{"inputs":[{"name":"x","datatype":"BYTES","shape":[1073741824],"data":[']),
    st.sampled_from([b"", b"0]}]}", b"]}]}", b"]]}"]),
)
@settings(max_examples=60)
def test_memory_stays_in_proportion(piece: bytes, start: bytes, end: bytes) -> None:
    body = start + piece * (20_000 // len(piece)) + end
    tracemalloc.start()
    try:
        for num_json in (None, 0, len(start)):
            try_everything(body, num_json)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < FIXED_BYTES + BYTES_PER_BYTE * len(body)


@given(
    st.lists(st.sampled_from([0, 1, 2, 1 << 16, 1 << 30, 1 << 31, 1 << 62, 1 << 64]), max_size=6),
    st.sampled_from(["FP64", "BYTES", "BOOL", "BF16"]),
    st.booleans(),
)
def test_a_shape_alone_takes_no_memory(shape: list[int], datatype: str, is_binary: bool) -> None:
    more: dict[str, Any] = {"parameters": {"binary_data_size": 8}} if is_binary else {"data": []}
    text = json.dumps({"inputs": [{"name": "x", "datatype": datatype, "shape": shape, **more}]}).encode()
    tracemalloc.start()
    try:
        try_everything(text + bytes(8) if is_binary else text, len(text) if is_binary else None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < FIXED_BYTES


@pytest.mark.parametrize("piece", [b"[],", b'{"":0},', b"{},", b"0.5,", b"1,", b"[", b'"",'])
def test_json_of_very_many_values_is_refused_before_it_is_parsed(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_size, "MAX_VALUES", 10_000)
    start, end = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[', b"0]}]}"
    body = start + piece * 200_000 + end
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="send tensors as binary data"):
            decode_request(body, None)
        with pytest.raises(InvalidInput, match="send tensors as binary data"):
            read_json(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 2 * len(body) + FIXED_BYTES


def test_json_of_as_many_values_as_are_taken_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    num = 9_980  # and what stands around them
    monkeypatch.setattr(json_size, "MAX_VALUES", 10_000)
    text = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [num], "data": [0.25] * num}]}).encode()

    (tensor,) = decode_request(text, None).inputs

    assert tensor.data.shape == (num,)
