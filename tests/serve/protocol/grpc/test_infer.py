"""`ModelInfer`: the same tensors and the same rules as over HTTP; and bytes of strangers are a request or refused."""

import tracemalloc
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.protocol.tensors import ARRAY, arrays, as_raw, from_raw, json_request, objects, same

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc import encode_message, peek
from pliant.serve.protocol.grpc.infer import decode_grpc, encode_grpc
from pliant.serve.protocol.grpc.messages import decode_message
from pliant.serve.protocol.grpc.plain import MAX_PARTS
from pliant.serve.protocol.v2 import BadOutput, InferRequest, RequestedOutput, decode_request
from pliant.serve.protocol.v2.datatypes import DATATYPES

PLACES: Final = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
}  # fmt: skip
OF_PROTOBUF: Final = bytes.fromhex(
    "0a04697269731201331a013722170a087072696f72697479120b10ffffffffffffffffff012a260a01781204494e54381a02020122080a026f"
    "6b120208002a0d120bffffffffffffffffff010532190a017912140a0e636c617373696669636174696f6e12021002"
)
"""As protobuf 6.33 writes what `test_a_request_that_protobuf_wrote` finds in it."""
ANSWER_OF_PROTOBUF: Final = bytes.fromhex("0a04697269731201331a01372a0e0a0179120555494e54381a02010232020102")
BYTES_PER_BYTE: Final = 200
"""An empty element of BYTES takes 2 bytes of a body, and a view of it 184."""
FIXED_BYTES: Final = 64 << 10


def raw_body(tensors: dict[str, tuple[str, ARRAY]], **more: object) -> bytes:
    inputs = [{"name": name, "datatype": kind, "shape": array.shape} for name, (kind, array) in tensors.items()]
    raws = [as_raw(kind, array) for kind, array in tensors.values()]
    return encode_message("ModelInferRequest", {**more, "inputs": inputs, "raw_input_contents": raws})


def body_with(contents: dict[str, Any] | None = None, **changes: Any) -> bytes:
    tensor: dict[str, Any] = {"name": "x", "datatype": "FP32", "shape": [2]}
    tensor["contents"] = {"fp32_contents": [1, 2.5]} if contents is None else contents
    said = {key: one for key, one in (tensor | changes).items() if one is not None}
    return encode_message("ModelInferRequest", {"inputs": [said]})


def refusal(body: bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        decode_grpc(body)
    return str(caught.value)


def test_a_request_that_protobuf_wrote() -> None:
    found = decode_grpc(OF_PROTOBUF)

    (tensor,) = found.inputs
    assert peek(OF_PROTOBUF) == ("iris", "3", "7")
    assert (found.id, found.parameters) == ("7", {"priority": -1})
    assert found.outputs == (RequestedOutput(name="y", classification=2, parameters={"classification": 2}),)
    assert (tensor.name, tensor.datatype, tensor.parameters) == ("x", "INT8", {"ok": False})
    assert same(tensor.data, np.array([[-1], [5]], "i1"))


def test_an_answer_is_what_protobuf_would_write() -> None:
    answer = encode_grpc(InferRequest(id="7", inputs=()), "iris", "3", {"y": np.array([[1, 2]], "u1")})

    assert answer == ANSWER_OF_PROTOBUF


@given(st.data(), st.lists(st.sampled_from(DATATYPES), min_size=1, max_size=4))
def test_raw_tensors_arrive_as_they_were_sent(data: st.DataObject, datatypes: list[str]) -> None:
    sent = {f"x{at}": (kind, data.draw(arrays(kind))) for at, kind in enumerate(datatypes)}

    found = decode_grpc(raw_body(sent)).inputs

    assert [(one.name, one.datatype) for one in found] == [(name, kind) for name, (kind, _) in sent.items()]
    assert all(same(one.data, array) for one, (_, array) in zip(found, sent.values(), strict=True))


@given(st.data(), st.sampled_from(sorted(PLACES)))
def test_contents_arrive_as_they_were_sent(data: st.DataObject, datatype: str) -> None:
    array = data.draw(arrays(datatype, for_json=True))
    body = body_with({PLACES[datatype]: array.ravel().tolist()}, datatype=datatype, shape=array.shape)

    (found,) = decode_grpc(body).inputs

    assert same(found.data, array)
    assert found.data.flags.writeable


def test_contents_may_hold_nan() -> None:
    (found,) = decode_grpc(body_with({"fp32_contents": [np.nan, np.inf]})).inputs

    assert found.data.tolist() == pytest.approx([np.nan, np.inf], nan_ok=True)


@given(st.data(), st.sampled_from(sorted(PLACES)))
def test_a_request_means_the_same_over_grpc_and_http(data: st.DataObject, datatype: str) -> None:
    sent = {"x": (datatype, data.draw(arrays(datatype, for_json=True)))}
    over_http = decode_request(json_request(sent, id="7", parameters={"priority": 1}, outputs=[{"name": "y"}]), None)
    said = {"id": "7", "parameters": {"priority": {"int64_param": 1}}, "outputs": [{"name": "y"}]}

    over_grpc = decode_grpc(raw_body(sent, **said))

    assert (over_grpc.id, over_grpc.outputs, over_grpc.parameters) == ("7", over_http.outputs, over_http.parameters)
    assert same(over_grpc.inputs[0].data, over_http.inputs[0].data)


def test_a_scalar_has_no_shape_on_the_wire() -> None:
    (found,) = decode_grpc(body_with({"fp32_contents": [7]}, shape=None)).inputs

    assert (found.shape, found.data.tolist()) == ((), 7)


def test_a_parameter_without_a_choice_is_none() -> None:
    body = encode_message("ModelInferRequest", {"parameters": {"a": {}, "b": {"string_param": ""}}})

    assert decode_grpc(body).parameters == {"b": ""}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (body_with(name=None), "inputs[0].name: is missing"),
        (body_with(datatype="FP33"), "inputs[0].datatype: 'FP33' is not known"),
        (body_with(shape=[-1]), "inputs[0].shape: [-1] holds -1"),
        (body_with(shape=[1 << 62, 1 << 62]), "too large"),
        (body_with(shape=[1] * 33), "has 33 dimensions"),
        (body_with(shape=[3]), "inputs[0].contents.fp32_contents: 2 elements, but shape [3] takes 3"),
        (body_with({}), "inputs[0].contents.fp32_contents: 0 elements, but shape [2] takes 2"),
        (body_with({"fp64_contents": [1, 2]}), "has fp64_contents, but FP32 belongs into fp32_contents"),
        (body_with(datatype="FP16"), "inputs[0].contents: FP16 has no contents; send it in raw_input_contents"),
        (body_with({"int_contents": [1, 128]}, datatype="INT8"), "element 1 is 128, which does not fit into INT8"),
        (body_with({"uint_contents": [1 << 16, 0]}, datatype="UINT16"), "element 0 is 65536, which does not fit"),
        (body_with(parameters={"shared_memory_region": {"string_param": "r"}}), "shared memory is not offered"),
        (body_with(parameters={"a": {"double_param": np.inf}}), "inputs[0].parameters.a: is no finite number"),
        (
            encode_message("ModelInferRequest", {"inputs": [{}], "raw_input_contents": [b"", b""]}),
            "2 tensors for 1 inp",
        ),
        (
            body_with() + encode_message("ModelInferRequest", {"raw_input_contents": [bytes(8)]}),
            "has raw_input_contents",
        ),
        (body_with() * 2, "inputs[1].name: 'x' stands there twice"),
        (raw_body({"x": ("FP32", np.ones(2))})[:-1] + b"\0\0", "is no field of a protobuf message"),
        (encode_message("ModelInferRequest", {"outputs": [{"name": "a"}] * 2}), "outputs[1].name: 'a' stands there"),
        (encode_message("ModelInferRequest", {"outputs": [{}]}), "outputs[0].name: is missing"),
        (b"\x28\x01", "inputs[0]: a number stands where InferInputTensor belongs"),
    ],
)
def test_a_wrong_request_is_refused_by_its_field(body: bytes, words: str) -> None:
    assert words in refusal(body)


def test_a_raw_tensor_must_fit_its_shape() -> None:
    inputs = [{"name": "x", "datatype": "FP32", "shape": [3]}]

    words = refusal(encode_message("ModelInferRequest", {"inputs": inputs, "raw_input_contents": [bytes(8)]}))

    assert "raw_input_contents[0]: 8 bytes, but FP32 of shape [3] takes 12" in words


@given(st.data(), st.lists(st.sampled_from([one for one in DATATYPES if one != "BF16"]), max_size=3))
def test_answers_say_what_the_model_said(data: st.DataObject, datatypes: list[str]) -> None:
    outputs = {f"y{at}": data.draw(arrays(kind)) for at, kind in enumerate(datatypes)}

    found = decode_message("ModelInferResponse", encode_grpc(InferRequest(id="7", inputs=()), "m", "1", outputs))

    said, raws = found.get("outputs", []), found.get("raw_output_contents", [])
    assert (found["model_name"], found["model_version"], found["id"]) == ("m", "1", "7")
    assert [(one["name"], one["datatype"]) for one in said] == list(zip(outputs, datatypes, strict=True))
    for one, raw, array in zip(said, raws, outputs.values(), strict=True):
        shape = one["shape"].tolist() if "shape" in one else []
        assert same(from_raw(one["datatype"], shape, bytes(raw)), array)


def test_an_answer_holds_what_is_asked_for_alone() -> None:
    request = InferRequest(inputs=(), outputs=(RequestedOutput(name="b", binary=False),))

    found = decode_message("ModelInferResponse", encode_grpc(request, "m", "1", {"a": np.ones(1), "b": np.ones(2)}))

    assert [one["name"] for one in found["outputs"]] == ["b"]
    with pytest.raises(InvalidInput, match="the model has no output 'b'"):
        encode_grpc(request, "m", "1", {"a": np.ones(1)})
    with pytest.raises(BadOutput, match="no datatype"):
        encode_grpc(request, "m", "1", {"b": np.ones(1, complex)})


# Strangers


@given(st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), st.randoms(use_true_random=False))
def test_what_a_gateway_sees_is_what_the_kernel_reads(name: str, version: str, id_: str, random: Any) -> None:
    fields = [("model_name", name), ("model_version", version), ("id", id_), ("id", "other"), ("model_name", "other")]
    random.shuffle(fields)
    body = b"".join(encode_message("ModelInferRequest", {key: value}) for key, value in fields)

    said = decode_message("ModelInferRequest", body)

    assert peek(body) == (said["model_name"], said["model_version"], said["id"])
    assert decode_grpc(body).id == said["id"]


def test_a_gateway_looks_at_so_many_fields_and_no_more() -> None:
    assert peek(b"\x2a\x00" * MAX_PARTS) == ("", "", "")
    with pytest.raises(InvalidInput, match="the message has too many fields"):
        peek(b"\x2a\x00" * (MAX_PARTS + 1))


def test_names_that_are_no_text_are_refused() -> None:
    for body, words in ((b"\x0a\x01\xff", "model_name: byte 0 is not UTF-8"), (b"\x10\x01", "model_version: a number")):
        with pytest.raises(InvalidInput, match=words):
            peek(body)


def try_everything(body: bytes) -> None:
    """Read a body as gateway and kernel do."""
    for read in (peek, decode_grpc):
        try:
            read(body)
        except InvalidInput as error:
            assert len(str(error)) < 1000  # noqa: PT017 (either way is right; what it says must be short)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_in_words(body: bytes) -> None:
    try_everything(body)


@given(
    st.sampled_from(
        [OF_PROTOBUF, raw_body({"a": ("BYTES", objects([b"ab"], (1,))), "b": ("BF16", np.ones((1, 2), "f4"))}, id="7")]
    ),
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 255)), max_size=4),
    st.integers(0, 1000),
)
def test_a_request_that_was_damaged_is_a_request_or_refused(
    body: bytes, changes: list[tuple[int, int]], num_cut: int
) -> None:
    damaged = bytearray(body)
    for at, value in changes:
        damaged[at % len(body)] = value

    try_everything(bytes(damaged[: len(body) - num_cut % len(body)]))


@given(
    st.sampled_from([b"\x2a\x00", b"\x42\x00", b"\x12\x00", b"\x08\x01", b"\x10\x01", b"\x18\x01", b"\xff", b"\x00"]),
    st.sampled_from(["request", "parameters", "input", "contents", "raw"]),
)
@settings(max_examples=40)
def test_memory_stays_in_proportion(piece: bytes, place: str) -> None:
    inside = piece * 2000
    body = {
        "request": inside,
        "parameters": encode_message("ModelInferRequest", {"parameters": {"a": inside}}),
        "input": encode_message("ModelInferRequest", {"inputs": [inside]}),
        "contents": encode_message("ModelInferRequest", {"inputs": [{"contents": inside}]}),
        "raw": encode_message("ModelInferRequest", {"inputs": [{}], "raw_input_contents": [inside]}),
    }[place]
    tracemalloc.start()
    try:
        try_everything(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < FIXED_BYTES + BYTES_PER_BYTE * len(body)
