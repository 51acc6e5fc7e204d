"""The Open Inference Protocol on the kernel's side: requests are read as they are meant, or refused in words."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serve.protocol.tensors import ARRAY, arrays, binary_request, json_request, objects, read_response, same

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2 import (
    BadOutput,
    InferRequest,
    RequestedOutput,
    decode_request,
    encode_response,
    resolve_raw,
)
from pliant.serve.protocol.v2.datatypes import DATATYPES
from pliant.serve.protocol.v2.json_text import MAX_DEPTH, measure_depth

JSON_DATATYPES = [one for one in DATATYPES if one not in ("FP16", "BF16")]
ASKS_ALL = InferRequest(inputs=())
ASKS_BINARY = InferRequest(inputs=(), parameters={"binary_data_output": True})
WITH_SIZE = {"binary_data_size": 8}


def asks(*outputs: RequestedOutput) -> InferRequest:
    return InferRequest(inputs=(), outputs=outputs)


def tensor(**changes: Any) -> dict[str, Any]:
    said = {"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2.5]} | changes
    return {key: one for key, one in said.items() if one is not ...}


def body_of(*inputs: object, **more: object) -> bytes:
    return json.dumps({"inputs": inputs, **more}).encode()


def refusal(body: bytes, num_json: int | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        decode_request(body, num_json)
    return str(caught.value)


# What comes in


@given(st.data(), st.sampled_from(JSON_DATATYPES), st.booleans())
def test_json_data_arrives_as_it_was_sent(data: st.DataObject, datatype: str, is_flat: bool) -> None:
    array = data.draw(arrays(datatype, for_json=True))

    (found,) = decode_request(json_request({"x": (datatype, array)}, is_flat=is_flat), None).inputs

    assert (found.name, found.datatype, found.shape) == ("x", datatype, array.shape)
    assert same(found.data, array)
    assert found.data.flags.writeable


@given(st.data(), st.lists(st.sampled_from(DATATYPES), max_size=4))
def test_binary_data_arrives_as_it_was_sent(data: st.DataObject, datatypes: list[str]) -> None:
    sent = {f"x{at}": (kind, data.draw(arrays(kind))) for at, kind in enumerate(datatypes)}
    body, num_json = binary_request(sent)

    found = decode_request(memoryview(body), num_json).inputs

    assert [(one.name, one.datatype) for one in found] == [(name, kind) for name, (kind, _) in sent.items()]
    assert all(same(one.data, array) for one, (_, array) in zip(found, sent.values(), strict=True))
    assert all(one.data.flags.writeable and one.data.flags.aligned for one in found)


def test_all_that_a_request_says_is_read() -> None:
    body = body_of(
        tensor(parameters={"content_type": "np", "nothing": None}),
        id="7",
        parameters={"priority": 2, "binary_data_output": True, "timeout": 2.5},
        outputs=[
            {"name": "a"},
            {"name": "b", "parameters": {"binary_data": False, "classification": 3}},
            {"name": "c", "parameters": {"classification": 0}},
        ],
        of_another_server={"deep": [[]]},
    )

    found = decode_request(body, None)

    assert found.id == "7"
    assert found.parameters == {"priority": 2, "binary_data_output": True, "timeout": 2.5}
    assert found.inputs[0].parameters == {"content_type": "np"}
    assert found.inputs[0].data.tolist() == [1, 2.5]
    assert found.outputs == (
        RequestedOutput(name="a"),
        RequestedOutput(
            name="b", binary=False, classification=3, parameters={"binary_data": False, "classification": 3}
        ),
        RequestedOutput(name="c", parameters={"classification": 0}),
    )


def test_null_is_as_good_as_not_there() -> None:
    found = decode_request(body_of(tensor(parameters=None), id=None, parameters=None, outputs=None), None)

    assert (found.id, found.outputs, found.parameters, found.inputs[0].parameters) == ("", (), {}, {})


def test_json_and_binary_inputs_stand_side_by_side() -> None:
    text = body_of(tensor(name="a"), tensor(name="b", datatype="INT32", data=..., parameters=WITH_SIZE))

    found = decode_request(text + b"\1\0\0\0\xff\xff\xff\xff", len(text)).inputs

    assert [one.data.tolist() for one in found] == [[1, 2.5], [1, -1]]


@pytest.mark.parametrize("data", [5, [5]])
def test_a_scalar_is_one_element(data: object) -> None:
    (found,) = decode_request(body_of(tensor(shape=[], data=data)), None).inputs

    assert (found.shape, found.data.tolist()) == ((), 5)


@pytest.mark.parametrize(("shape", "data"), [([0], []), ([2, 0], [[], []]), ([2, 0], []), ([0, 1 << 30], [])])
def test_tensors_may_be_empty(shape: list[int], data: object) -> None:
    (found,) = decode_request(body_of(tensor(shape=shape, data=data)), None).inputs

    assert (found.data.shape, found.data.dtype) == (tuple(shape), np.dtype("f4"))


def test_any_byte_but_zero_is_true() -> None:
    text = body_of(tensor(datatype="BOOL", data=..., parameters={"binary_data_size": 2}))

    assert decode_request(text + b"\0\7", len(text)).inputs[0].data.tolist() == [False, True]


# What is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": ...}, "inputs[0].name: is missing"),
        ({"name": ""}, "inputs[0].name: is missing"),
        ({"name": 7}, "inputs[0].name: 7 is no text"),
        ({"name": "\ud800"}, "half a character"),
        ({"datatype": ...}, "inputs[0].datatype: is missing; say one of BOOL"),
        ({"datatype": "FP33"}, "inputs[0].datatype: 'FP33' is not known; say one of BOOL"),
        ({"datatype": ["FP32"]}, "inputs[0].datatype: ['FP32'] is not known"),
        ({"shape": ...}, "inputs[0].shape: is missing"),
        ({"shape": 2}, "inputs[0].shape: 2 is no list of sizes"),
        ({"shape": [-1, 2]}, "inputs[0].shape: [-1, 2] holds -1; a size is a whole number from 0 on"),
        ({"shape": [2.0]}, "holds 2.0"),
        ({"shape": [True]}, "holds True"),
        ({"shape": [1 << 40]}, "too large"),
        ({"shape": [1 << 31] * 3}, "too large"),
        ({"shape": [0, 1 << 31, 1 << 31], "data": []}, "too large"),
        ({"shape": [1] * 33}, "has 33 dimensions; at most 32"),
        ({"shape": [3]}, "inputs[0].data: 2 elements, but shape [3] takes 3"),
        ({"shape": [1 << 31]}, "inputs[0].data: 2 elements, but shape [2147483648] takes 2147483648"),
        ({"data": ...}, "inputs[0].data: is missing"),
        ({"data": "12"}, "inputs[0].data: '12' is no list"),
        ({"data": {"a": 1}, "shape": []}, "is no list"),
        ({"data": [1, "2"]}, "element 1 is '2'; FP32 takes a number"),
        ({"data": [1, True]}, "element 1 is True; FP32 takes a number"),
        ({"data": [1, None]}, "element 1 is None; FP32 takes a number"),
        ({"data": [1, [2]]}, "element 1 is [2]; FP32 takes a number"),
        ({"data": [1, 1e39]}, "element 1 is 1e+39, which does not fit into FP32"),
        ({"data": [1, 10**400]}, "which does not fit into FP32"),
        ({"data": [1, -(10**400)], "datatype": "FP64"}, "which does not fit into FP64"),
        ({"data": [1, 2.0], "datatype": "INT8"}, "element 1 is 2.0; INT8 takes a whole number"),
        ({"data": [1, True], "datatype": "INT8"}, "element 1 is True; INT8 takes a whole number"),
        ({"data": [1, 128], "datatype": "INT8"}, "element 1 is 128, which does not fit into INT8"),
        ({"data": [1, -1], "datatype": "UINT64"}, "element 1 is -1, which does not fit into UINT64"),
        ({"data": [1, 1 << 63], "datatype": "INT64"}, "does not fit into INT64"),
        ({"data": [True, 1], "datatype": "BOOL"}, "element 1 is 1; BOOL takes true or false"),
        ({"data": ["a", 1], "datatype": "BYTES"}, "element 1 is 1; BYTES takes a text"),
        ({"data": ["a", "\udc00"], "datatype": "BYTES"}, "inputs[0].data[1]: "),
        ({"datatype": "FP16"}, "inputs[0].data: FP16 has no form in JSON; send binary data"),
        ({"datatype": "BF16"}, "inputs[0].data: BF16 has no form in JSON"),
        ({"shape": [2, 1], "data": [[1], 2]}, "has no list everywhere at depth 2; nest the data as shape [2, 1] says"),
        ({"shape": [2, 2], "data": [[1], [2, 3, 4]]}, "a list at depth 2 has 1 elements"),
        ({"shape": [2], "data": [[1], [2]]}, "element 0 is [1]"),
        ({"shape": [], "data": [[1]]}, "element 0 is [1]"),
        ({"parameters": WITH_SIZE}, "inputs[0].parameters.binary_data_size: the tensor has `data` too"),
        ({"parameters": WITH_SIZE, "data": ...}, "binary data needs the header Inference-Header-Content-Length"),
        ({"parameters": {"binary_data_size": "8"}}, "'8' is no whole number from 0 on"),
        ({"parameters": {"binary_data_size": -8}}, "-8 is no whole number"),
        ({"parameters": {"shared_memory_region": "r"}}, "inputs[0].parameters.shared_memory_region: shared memory is"),
        ({"parameters": [1]}, "inputs[0].parameters: [1] is no object"),
        ({"parameters": {"a": [1]}}, "inputs[0].parameters.a: [1] is no text, number or truth value"),
        ({"parameters": {"a": 1 << 64}}, "does not fit into 64 bits"),
        ({"parameters": {"\ud800": 1}}, "half a character"),
    ],
)
def test_a_wrong_tensor_is_refused_by_its_field(changes: dict[str, Any], words: str) -> None:
    assert words in refusal(body_of(tensor(**changes)))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the JSON is empty"),
        (b"[]", "the JSON is []; send an object"),
        (b'{"inputs": [}', "this is no JSON: Expecting value at character 12"),
        (b'{"id": "\xff"}', "byte 8 of the JSON is not UTF-8"),
        ('{"inputs": []}'.encode("utf-16"), "is not UTF-8"),
        (b'{"id": "1", "id": "2"}', "an object names 'id' twice"),
        (b"{}", "inputs: is missing"),
        (body_of(*[{}] * 10_001), "inputs: 10001 tensors; at most 10000"),
        (body_of(parameters={str(at): at for at in range(1001)}), "parameters: 1001 parameters; at most 1000"),
        (b'{"inputs": {}}', "inputs: {} is no list"),
        (b'{"inputs": [7]}', "inputs[0]: 7 is no object"),
        (b'{"inputs": [], "id": 7}', "id: 7 is no text"),
        (b'{"inputs": [], "id": "\\ud800"}', "id: '\\ud800' holds half a character"),
        (b'{"inputs": [], "parameters": {"binary_data_output": 1}}', "parameters.binary_data_output: 1 is neither"),
        (b'{"inputs": [], "parameters": {"a": 1e999}}', "parameters.a: is no finite number"),
        (b'{"inputs": [], "outputs": [{}]}', "outputs[0].name: is missing"),
        (b'{"inputs": [], "outputs": [{"name": "a", "parameters": {"binary_data": 0}}]}', "0 is neither true nor"),
        (b'{"inputs": [], "outputs": [{"name": "a", "parameters": {"classification": -1}}]}', "-1 is no whole"),
        (b'{"inputs": [], "outputs": [{"name": "a"}, {"name": "a"}]}', "outputs[1].name: 'a' stands there twice"),
        (body_of(tensor(), tensor()), "inputs[1].name: 'x' stands there twice"),
        (body_of(tensor(data=[1, float("nan")])), "NaN is not a number of JSON; send the tensor as binary data"),
        (body_of(tensor(data=[1, float("-inf")])), "-Infinity is not a number of JSON"),
        (b'{"inputs": [], "a": ' + b"9" * 5000 + b"}", "this is no JSON"),
        (b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", "nested 65 levels deep; at most 64"),
        (b"[" * 100_000, "nested 100000 levels deep"),
        (b'{"a":' * 100_000, "nested 100000 levels deep"),
    ],
)
def test_a_wrong_request_is_refused(body: bytes, words: str) -> None:
    assert words in refusal(body)


def test_lists_and_objects_may_be_nested_to_the_limit() -> None:
    inside = MAX_DEPTH - 1

    found = decode_request(b'{"inputs": [], "a": ' + b"[" * inside + b"]" * inside + b"}", None)

    assert found.inputs == ()


@given(
    st.recursive(
        st.text('[{"\\\\]}a', max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\\\[', max_size=3), inner, max_size=3),
    )
)
def test_the_depth_is_that_of_the_lists_and_objects(value: object) -> None:
    def depth(one: object) -> int:
        if isinstance(one, dict):
            one = list(one.values())
        return 1 + max(map(depth, one), default=0) if isinstance(one, list) else 0

    enough_to_be_measured = [[[]] * MAX_DEPTH, value]

    assert measure_depth(json.dumps(enough_to_be_measured).encode()) == max(3, 1 + depth(value))


def test_brackets_in_texts_are_no_depth() -> None:
    assert measure_depth(json.dumps(['[["\\' * 100, "{" * 100, "\\"]).encode()) == 1


@pytest.mark.parametrize(
    ("size", "rest", "words"),
    [
        (8, b"1234567", "8 bytes, but 7 are left in the body"),
        (8, b"123456789", "inputs: 1 bytes follow the last input"),
        (4, b"1234", "4 bytes, but FP32 of shape [2] takes 8"),
        (None, b"12345678", "inputs[0].data: is missing"),
    ],
)
def test_binary_data_must_add_up(size: int | None, rest: bytes, words: str) -> None:
    text = body_of(tensor(data=..., parameters={"binary_data_size": size}))

    assert words in refusal(text + rest, len(text))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"\0\0\0", "3 bytes, but 2 elements of BYTES take 8 for their lengths alone"),
        (b"\0\0\0\0\1\0\0\0", "element 1 of 2 ends at byte 9, but there are 8; the data is cut off"),
        (b"\4\0\0\0abcd", "element 1 of 2 ends at byte 12, but there are 8"),
        (b"\xff\xff\xff\xff\0\0\0\0", "element 0 of 2 ends at byte 4294967299"),
        (b"\0" * 9, "1 bytes follow the last of 2 elements"),
    ],
)
def test_elements_of_bytes_are_whole(raw: bytes, words: str) -> None:
    text = body_of(tensor(datatype="BYTES", data=..., parameters={"binary_data_size": len(raw)}))

    assert words in refusal(text + raw, len(text))


@pytest.mark.parametrize("num_json", [-1, 100_000])
def test_the_json_ends_within_the_body(num_json: int) -> None:
    assert f"Inference-Header-Content-Length: {num_json}, but the body has" in refusal(body_of(tensor()), num_json)


# Data alone


def metadata(datatype: str, shape: list[int], num_inputs: int = 1) -> dict[str, object]:
    return {"inputs": [{"name": "x", "datatype": datatype, "shape": shape}] * num_inputs}


@pytest.mark.parametrize(
    ("shape", "found"),
    [([2, 3], (2, 3)), ([-1, 3], (2, 3)), ([-1, -1], (1, 6)), ([-1, 2, -1], (1, 2, 3)), ([-1], (6,))],
)
def test_data_alone_is_the_models_only_input(shape: list[int], found: tuple[int, ...]) -> None:
    sent = np.arange(6, dtype="<i2")

    request = resolve_raw(decode_request(sent.tobytes(), 0), metadata("INT16", shape))

    (one,) = request.inputs
    assert (one.name, one.datatype, one.shape, one.data.ravel().tolist()) == ("x", "INT16", found, sent.tolist())
    assert not request.is_raw
    assert encode_response(request, "m", "1", {"y": sent})[1] is not None


def test_data_alone_is_its_bytes_until_it_is_resolved() -> None:
    request = decode_request(b"abc", 0)

    assert request.is_raw
    assert request.inputs[0].data.tolist() == [97, 98, 99]
    assert request.inputs[0].data.flags.writeable


def test_data_alone_is_one_element_of_bytes() -> None:
    (one,) = resolve_raw(decode_request(b"abc\0", 0), metadata("BYTES", [-1, 1])).inputs

    assert (one.shape, one.data.tolist()) == ((1, 1), [[b"abc\0"]])


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (metadata("INT16", [4]), "6 bytes, but INT16 of shape [4] takes 8"),
        (metadata("INT32", [-1]), "6 bytes are no whole number of parts of 'x', whose shape is [-1]"),
        (metadata("INT16", [-1, 0]), "no whole number of parts"),
        (metadata("INT16", [3, -1, -1]), "too open for data alone"),
        (metadata("BYTES", [2]), "the body is one element"),
        (metadata("INT16", [3], num_inputs=2), "the model's inputs are 2, not one; send JSON"),
        ({}, "the model's inputs are unknown"),
        ({"inputs": [{"name": "x"}]}, "the model does not say what its input is"),
    ],
)
def test_data_alone_that_is_no_tensor_is_refused(said: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        resolve_raw(decode_request(b"123456", 0), said)

    assert words in str(caught.value)


def test_a_request_that_describes_its_inputs_needs_no_metadata() -> None:
    request = decode_request(body_of(tensor()), None)

    assert resolve_raw(request, {}) is request


# What goes out


@given(st.data(), st.sampled_from(JSON_DATATYPES))
def test_an_answer_in_json_says_what_the_model_said(data: st.DataObject, datatype: str) -> None:
    array = data.draw(arrays(datatype, for_json=True))

    said, found = read_response(*encode_response(ASKS_ALL, "m", "1", {"y": array}))

    assert (said["model_name"], said["model_version"], said["outputs"][0]["datatype"]) == ("m", "1", datatype)
    assert "id" not in said
    assert same(found["y"], array)


@given(st.data(), st.lists(st.sampled_from([one for one in DATATYPES if one != "BF16"]), max_size=3))
def test_binary_answers_say_what_the_model_said(data: st.DataObject, datatypes: list[str]) -> None:
    outputs = {f"y{at}": data.draw(arrays(kind)) for at, kind in enumerate(datatypes)}

    body, num_json = encode_response(ASKS_BINARY, "m", "1", outputs)

    said, found = read_response(body, num_json)
    assert [one["datatype"] for one in said["outputs"]] == datatypes
    assert all(same(found[name], array) for name, array in outputs.items())
    assert (num_json is None) == (not outputs)


@pytest.mark.parametrize("request_", [ASKS_ALL, ASKS_BINARY])
@pytest.mark.parametrize(
    ("array", "meant"),
    [
        (np.arange(6, dtype=">i4").reshape(2, 3), np.arange(6, dtype="i4").reshape(2, 3)),
        (np.arange(6, dtype="f4").reshape(2, 3).T, np.array([[0, 3], [1, 4], [2, 5]], "f4")),
        (np.arange(8, dtype="u2")[::-2], np.array([7, 5, 3, 1], "u2")),
        (np.array(True), np.array(True)),
        (np.broadcast_to(np.float64(0.1), (2, 2)), np.full((2, 2), 0.1)),
        (np.array(["ä", "b"]), objects(["ä".encode(), b"b"], (2,))),
        (np.array([b"a", b"bc"]), objects([b"a", b"bc"], (2,))),
        (objects(["ä", b"b"], (2, 1)), objects(["ä".encode(), b"b"], (2, 1))),
        (np.array(["ä"], np.dtypes.StringDType()), objects(["ä".encode()], (1,))),
    ],
)
def test_arrays_of_every_layout_are_said(request_: InferRequest, array: ARRAY, meant: ARRAY) -> None:
    _, found = read_response(*encode_response(request_, "m", "1", {"y": array}))

    assert same(found["y"], meant)


def test_only_what_is_asked_for_is_said_and_in_that_order() -> None:
    request = InferRequest(
        id="né",
        inputs=(),
        outputs=(RequestedOutput(name="c"), RequestedOutput(name="a", binary=False)),
        parameters={"binary_data_output": True},
    )
    outputs = {name: np.array([at], "i4") for at, name in enumerate("abc")}

    said, found = read_response(*encode_response(request, "m", "1", outputs))

    assert said["id"] == "né"
    assert [one["name"] for one in said["outputs"]] == ["c", "a"]
    assert ["data" in one for one in said["outputs"]] == [False, True]
    assert (found["c"].tolist(), found["a"].tolist()) == ([2], [0])


def test_float64_is_written_as_short_as_it_can_be() -> None:
    body, _ = encode_response(ASKS_ALL, "m", "1", {"y": np.array([0.1, 1e22, -0.0])})

    assert b'"data":[0.1,1e+22,-0.0]' in body


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1, np.nan]), "outputs: 'y' holds nan (element 1), which has no form in JSON; ask for it with"),
        (np.array([[1, 2], [-np.inf, 3]], "f4"), "holds -inf (element 2)"),
        (np.array([1], "f2"), "'y' is FP16, which has no form in JSON"),
        (objects([b"a", b"\xff"], (2,)), "holds bytes that are no text in UTF-8 (element 1)"),
    ],
)
def test_what_json_cannot_say_is_refused_unless_it_is_binary(array: ARRAY, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        encode_response(ASKS_ALL, "m", "1", {"y": array})

    assert words in str(caught.value)
    assert '"binary_data": true' in str(caught.value)
    assert same(read_response(*encode_response(ASKS_BINARY, "m", "1", {"y": array}))[1]["y"], array)


def test_an_output_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"outputs\[1\].name: the model has no output 'z'; it has a, y"):
        encode_response(
            asks(RequestedOutput(name="y"), RequestedOutput(name="z")), "m", "1", {"y": np.ones(1), "a": np.ones(1)}
        )


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1j]), "an array of complex128, for which the protocol has no datatype"),
        (np.array(["2026-01-01"], "M8[D]"), "no datatype"),
        (np.array([1], np.longdouble), "no datatype"),
        (np.array([b"a", None], object), "element 1 of the model's output 'y' is None; return bytes or texts"),
        (np.array(["\ud800"], object), "holds half a character"),
    ],
)
def test_a_model_that_answers_what_cannot_be_said_is_at_fault(array: ARRAY, words: str) -> None:
    for request in (ASKS_ALL, ASKS_BINARY):
        with pytest.raises(BadOutput) as caught:
            encode_response(request, "m", "1", {"y": array})
        assert words in str(caught.value)


def test_the_best_classes_come_first_with_their_indices() -> None:
    request = asks(RequestedOutput(name="y", classification=2))
    scores = np.array([[0.1, 0.3, 0.3], [1e-9, -1, 2]], "f4")

    said, found = read_response(*encode_response(request, "m", "1", {"y": scores}))

    assert said["outputs"][0]["datatype"] == "BYTES"
    assert found["y"].tolist() == [[b"0.3:1", b"0.3:2"], [b"2.0:2", b"1e-09:0"]]


@pytest.mark.parametrize(("scores", "shape"), [(np.array([3, 1], "u1"), (2,)), (np.ones((2, 0)), (2, 0))])
def test_there_are_no_more_classes_than_the_model_has(scores: ARRAY, shape: tuple[int, ...]) -> None:
    request = asks(RequestedOutput(name="y", classification=1_000_000_000))

    _, found = read_response(*encode_response(request, "m", "1", {"y": scores}))

    assert found["y"].shape == shape


@pytest.mark.parametrize("array", [np.array(["a"]), np.array(1.0), np.array([True])])
def test_what_has_no_order_has_no_classes(array: ARRAY) -> None:
    with pytest.raises(InvalidInput, match=r"outputs\[0\].parameters.classification: .* has no classes"):
        encode_response(asks(RequestedOutput(name="y", classification=1)), "m", "1", {"y": array})
