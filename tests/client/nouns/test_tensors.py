"""Arrays as the Open Inference Protocol sends them."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pliant.client.nouns.tensors import decode_outputs, encode_inputs
from pliant.core.errors import InternalError, InvalidInput

DTYPES = ("?", "u1", "<u2", "<u4", "<u8", "i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8")


def as_answer(body: bytes, num_json_bytes: int) -> tuple[bytes, int]:
    """Return a request's body as the answer of a model that gives its inputs back."""
    said = json.loads(body[:num_json_bytes])
    head = json.dumps({"model_name": "m", "outputs": said["inputs"]}).encode()
    return head + body[num_json_bytes:], len(head)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.sampled_from(DTYPES).flatmap(
            lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
        ),
        max_size=3,
    )
)
def test_what_is_sent_comes_back_to_the_bit(inputs: dict[str, Any]) -> None:
    found = decode_outputs(*as_answer(*encode_inputs(inputs, {})))
    assert found.keys() == inputs.keys()
    for name, array in inputs.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_the_bytes_are_those_of_the_protocol() -> None:
    body, end = encode_inputs({"x": np.array([[1, -2]], dtype=">i2"), "t": ["ab", b""]}, {})
    assert json.loads(body[:end]) == {
        "inputs": [
            {"name": "x", "shape": [1, 2], "datatype": "INT16", "parameters": {"binary_data_size": 4}},
            {"name": "t", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": 10}},
        ],
        "parameters": {"binary_data_output": True},
    }
    assert body[end:] == bytes.fromhex("0100feff 02000000 6162 00000000")


def test_a_list_becomes_what_the_model_takes_or_what_models_usually_take() -> None:
    def datatypes(inputs: dict[str, Any], declared: dict[str, str]) -> list[str]:
        body, end = encode_inputs(inputs, declared)
        return [one["datatype"] for one in json.loads(body[:end])["inputs"]]

    lists = {"a": [[0.5, 1.0]], "b": [1, 2], "c": [True], "d": ["x"], "e": 1.5}
    assert datatypes(lists, {}) == ["FP32", "INT64", "BOOL", "BYTES", "FP32"]
    assert datatypes({"a": [0.5], "b": [1], "c": [1]}, {"a": "FP64", "b": "FP32", "c": "UINT8"}) == [
        "FP64",
        "FP32",
        "UINT8",
    ]
    assert datatypes({"a": np.array([0.5])}, {"a": "FP32"}) == ["FP64"], "an array is sent as what it is"


@pytest.mark.parametrize("wrong", [[[1, 2], [3]], [None], [{"a": 1}], np.array([1 + 2j])])
def test_what_cannot_be_sent_is_named(wrong: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        encode_inputs({"x": wrong}, {})
    assert caught.value.problems[0].field == "inputs.x"


def test_a_list_that_does_not_fit_the_models_datatype_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"inputs\.x"):
        encode_inputs({"x": [300]}, {"x": "UINT8"})


def test_an_answer_in_json_is_read_too() -> None:
    answer = {
        "outputs": [
            {"name": "y", "shape": [2, 1], "datatype": "FP32", "data": [1.5, 2]},
            {"name": "t", "shape": [1], "datatype": "BYTES", "data": ["é"]},
        ]
    }
    found = decode_outputs(json.dumps(answer).encode(), None)
    assert found["y"].tolist() == [[1.5], [2.0]]
    assert found["y"].dtype == np.float32
    assert found["t"].tolist() == ["é".encode()]


def test_bf16_is_the_upper_half_of_a_float32() -> None:
    output = {"name": "y", "shape": [2], "datatype": "BF16", "parameters": {"binary_data_size": 4}}
    head = json.dumps({"outputs": [output]}).encode()
    found = decode_outputs(head + bytes.fromhex("803f 20c0"), len(head))
    assert found["y"].tolist() == [1.0, -2.5]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[1]",
        b'{"outputs": 3}',
        b'{"outputs": [{"name": "y"}]}',
        b'{"outputs": [{"name": "y", "shape": [3], "datatype": "FP32", "data": [1]}]}',
        b'{"outputs": [{"name": "y", "shape": [1], "datatype": "FP31", "data": [1]}]}',
        b'{"outputs": [{"name": "y", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}]}',
        b'{"outputs": [{"name": "y", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 4}}]}',
    ],
)
def test_an_answer_that_is_none_is_no_answer(answer: bytes) -> None:
    with pytest.raises(InternalError, match="Open Inference Protocol"):
        decode_outputs(answer, len(answer))
