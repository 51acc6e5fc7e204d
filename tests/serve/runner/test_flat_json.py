"""Plain JSON by the names of inputs and outputs: Triton's generate extension."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.runner.folders import deployed

from pliant.core.errors import InvalidInput
from pliant.serve.runner.flat_json import read_flat, write_flat
from pliant.serve.runner.metadata import DeclaredTensor, ModelMetadata

STORY = ModelMetadata(
    platform="python",
    inputs=(
        DeclaredTensor(name="text_input", datatype="BYTES", shape=(-1,)),
        DeclaredTensor(name="length", datatype="INT32", shape=(1,)),
        DeclaredTensor(name="x", datatype="FP32", shape=(-1, 2)),
    ),
)
ANY = ModelMetadata(platform="python")


def read(value: Any, metadata: ModelMetadata = STORY) -> dict[str, tuple[str, tuple[int, ...], Any]]:
    asked = read_flat(json.dumps(value).encode(), metadata)
    return {one.name: (one.datatype, one.data.shape, one.data.tolist()) for one in asked.inputs}


def test_values_become_the_tensors_that_the_model_declares() -> None:
    assert read({"text_input": "ä", "length": 3, "x": [1, 2]}) == {
        "text_input": ("BYTES", (1,), ["ä".encode()]),
        "length": ("INT32", (1,), [3]),
        "x": ("FP32", (1, 2), [[1.0, 2.0]]),
    }
    assert read({"x": [[1, 2], [3, 4]]})["x"] == ("FP32", (2, 2), [[1, 2], [3, 4]])


def test_parameters_are_inputs_if_the_model_takes_them_and_stay_parameters_otherwise() -> None:
    asked = read_flat(b'{"text_input": "a", "id": "7", "parameters": {"length": 2, "stream": true}}', STORY)

    assert [one.name for one in asked.inputs] == ["text_input", "length"]
    assert (asked.id, dict(asked.parameters)) == ("7", {"stream": True})


def test_a_model_that_declares_nothing_takes_any_name() -> None:
    assert read({"a": "x", "b": [True], "c": [1, 2], "d": 0.5, "parameters": {"e": []}}, ANY) == {
        "a": ("BYTES", (1,), [b"x"]),
        "b": ("BOOL", (1,), [True]),
        "c": ("INT64", (2,), [1, 2]),
        "d": ("FP32", (1,), [0.5]),
        "e": ("INT64", (0,), []),
    }


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        ([1], "", "send an object"),
        ({"wrong": 1}, "wrong", "takes text_input, length, x"),
        ({"length": "3"}, "length", "INT32 takes a whole number"),
        ({"length": 2**40}, "length", "does not fit into INT32"),
        ({"x": [[1], [2, 3]]}, "x", "nest the data"),
        ({"x": {"y": 1}}, "x", "is no list"),
        ({"id": 7}, "id", ""),
        ({"parameters": [1]}, "parameters", "is no object"),
        ({"parameters": {"deep": {}}}, "parameters.deep", ""),
    ],
)
def test_what_is_no_request_is_said(value: Any, field: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_flat(json.dumps(value).encode(), STORY)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert message in problem.message


@pytest.mark.parametrize("value", [{"a": [1, "x"]}, {"a": {}}, {"a": None}, {"a": [[1], 2]}])
def test_values_that_are_no_tensor_are_refused_where_nothing_is_declared(value: Any) -> None:
    with pytest.raises(InvalidInput):
        read_flat(json.dumps(value).encode(), ANY)


def test_outputs_are_values_and_flat_lists(tmp_path: Path) -> None:
    asked = read_flat(b'{"id": "7"}', ANY)
    outputs = {"text_output": np.array(["upon"]), "y": np.arange(4).reshape(2, 2), "none": np.array([])}
    answer = write_flat(asked, deployed(tmp_path, "serve.py"), outputs)

    assert json.loads(answer.body) == {
        "id": "7",
        "model_name": "digits",
        "model_version": "3",
        "text_output": "upon",
        "y": [0, 1, 2, 3],
        "none": [],
    }
