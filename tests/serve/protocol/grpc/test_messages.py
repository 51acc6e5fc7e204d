"""Messages come back from the wire as they were put on it, in every form that the format allows."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message
from pliant.serve.protocol.grpc.packed import read_packed
from pliant.serve.protocol.grpc.wire import WireType, pack_double, read_varint, scan, tag, varint

NUMBERS = st.integers(0, (1 << 64) - 1) | st.sampled_from([0, 127, 128, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])


def bytes_field(number: int, value: bytes) -> bytes:
    return tag(number, WireType.BYTES) + varint(len(value)) + value


def test_the_example_of_the_format() -> None:
    message = bytes.fromhex("0a 02 61 62 10 ac 02")

    found = list(scan(memoryview(message), "", iter(range(2))))

    assert found == [(1, WireType.BYTES, b"ab"), (2, WireType.VARINT, 300)]


@given(st.lists(NUMBERS))
def test_numbers_come_back(numbers: list[int]) -> None:
    packed = memoryview(b"".join(map(varint, numbers)))
    one_by_one, at = [], 0
    while at < len(packed):
        number, at = read_varint(packed, at, "")
        one_by_one.append(number)

    assert one_by_one == numbers
    assert read_packed(packed, "").tolist() == numbers


@given(st.binary(max_size=40))
@example(b"\xff" * 9 + b"\x7f")
def test_packed_numbers_are_those_that_one_finds_one_by_one(packed: bytes) -> None:
    one_by_one: list[int] | None = []
    at = 0
    try:
        while at < len(packed):
            number, at = read_varint(memoryview(packed), at, "")
            assert one_by_one is not None
            one_by_one.append(number)
    except InvalidInput:
        one_by_one = None

    try:
        at_once: list[int] | None = read_packed(memoryview(packed), "").tolist()
    except InvalidInput:
        at_once = None
    assert at_once == one_by_one


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "bool_contents": st.lists(st.booleans(), min_size=1),
            "int_contents": st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1),
            "int64_contents": st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1),
            "uint_contents": st.lists(st.integers(0, (1 << 32) - 1), min_size=1),
            "uint64_contents": st.lists(NUMBERS, min_size=1),
            "fp32_contents": st.lists(st.floats(width=32, allow_nan=False), min_size=1),
            "fp64_contents": st.lists(st.floats(allow_nan=False), min_size=1),
            "bytes_contents": st.lists(st.binary(max_size=200), min_size=1),
        },
    )
)
def test_every_scalar_comes_back(values: dict[str, list[object]]) -> None:
    found = decode_message("InferTensorContents", encode_message("InferTensorContents", values))

    assert {key: list(one) for key, one in found.items()} == values


def test_messages_lists_and_maps_come_back() -> None:
    values = {
        "name": "né",
        "versions": ["1", ""],
        "inputs": [{"name": "x", "datatype": "FP32"}, {}],
        "properties": {"a": "b", "": ""},
    }

    assert decode_message("ModelMetadataResponse", encode_message("ModelMetadataResponse", values)) == values


def test_defaults_are_said_where_they_are_given() -> None:
    assert encode_message("InferParameter", {"bool_param": False}) == b"\x08\x00"
    assert decode_message("InferParameter", b"\x08\x00") == {"bool_param": False}
    assert encode_message("ModelReadyResponse", {}) == b""
    assert encode_message("TensorMetadata", {"shape": []}) == b""


def test_of_a_number_that_is_too_long_64_bits_are_kept() -> None:
    found = decode_message("InferParameter", tag(5, WireType.VARINT) + b"\xff" * 9 + b"\x7f")

    assert found == {"uint64_param": (1 << 64) - 1}


def test_an_entry_of_a_map_without_a_value_is_passed_over() -> None:
    assert decode_message("ModelInferRequest", bytes_field(4, bytes_field(1, b"a"))) == {"parameters": {}}


def test_a_message_may_be_given_as_its_bytes() -> None:
    inner = encode_message("ModelInferResponse", {"id": "7"})

    found = decode_message(
        "ModelStreamInferResponse", encode_message("ModelStreamInferResponse", {"infer_response": inner})
    )

    assert found == {"infer_response": {"id": "7"}}


def test_numbers_may_be_packed_or_not_or_both() -> None:
    loose = tag(3, WireType.VARINT) + varint(7)

    found = decode_message("TensorMetadata", loose + bytes_field(3, varint(8) + varint(-1)) + loose)

    assert found["shape"].tolist() == [7, 8, -1, 7]
    assert found["shape"].dtype == np.int64


def test_the_last_counts_of_what_stands_there_twice() -> None:
    choice = encode_message("InferParameter", {"bool_param": True}) + encode_message(
        "InferParameter", {"int64_param": 4}
    )
    again = choice + encode_message("InferParameter", {"bool_param": False})

    assert list(decode_message("InferParameter", again).items()) == [("int64_param", 4), ("bool_param", False)]


def test_what_the_schema_does_not_know_is_passed_over() -> None:
    unknown = tag(99, WireType.FIXED64) + bytes(8) + tag(98, WireType.FIXED32) + bytes(4) + bytes_field(97, b"\xff")

    assert decode_message("ServerLiveResponse", unknown + b"\x08\x01") == {"live": True}


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("ServerLiveResponse", b"\x08", "the number at byte 1 is cut off"),
        ("ServerLiveResponse", b"\x08" + b"\xff" * 11, "has more than 10 bytes"),
        ("ServerLiveResponse", b"\x00\x00", "is no field of a protobuf message (number 0, type 0)"),
        ("ServerLiveResponse", b"\x0b", "is no field of a protobuf message (number 1, type 3)"),
        ("ServerLiveResponse", b"\x0a\x01\x01", "live: bytes stand where a bool belongs"),
        ("ServerLiveResponse", b"\x0d\x01\x00\x00\x00", "live: this is no bool"),
        ("ModelIndex", b"\x08\x01", "name: a number stands where string belongs"),
        ("ModelIndex", b"\x0a\x05ab", "field 1 has 5 bytes, but 2 follow; the message is cut off"),
        ("ModelIndex", b"\x0a\x02a\xff", "name: byte 1 is not UTF-8"),
        ("ModelIndex", b"\x09\x00", "field 1 has 8 bytes, but 1 follow"),
        ("InferParameter", b"\x20\x01", "double_param: this is no double"),
        ("InferTensorContents", b"\x32\x03abc", "fp32_contents: this is no float"),
        ("InferTensorContents", b"\x12\x01\x80", "int_contents: the last number is cut off"),
        ("InferTensorContents", b"\x12\x0b" + b"\x80" * 10 + b"\x01", "int_contents: a number has more than 10 bytes"),
        ("RepositoryIndexResponse", bytes_field(1, b"") + bytes_field(1, b"\x08\x01"), "models[1].name: a number"),
    ],
)
def test_what_is_no_message_is_refused(name: str, body: bytes, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode_message(name, body)

    assert words in str(caught.value)


def test_a_message_has_only_so_many_fields_with_those_in_it() -> None:
    body = encode_message("RepositoryIndexResponse", {"models": [{"name": "a", "state": "b"}, {}]})

    assert len(decode_message("RepositoryIndexResponse", body, allowance=iter(range(4)))["models"]) == 2
    with pytest.raises(InvalidInput, match="the message has too many fields"):
        decode_message("RepositoryIndexResponse", body, allowance=iter(range(3)))


def test_floats_may_stand_alone() -> None:
    loose = tag(7, WireType.FIXED64) + pack_double(0.1)

    assert decode_message("InferTensorContents", loose * 2)["fp64_contents"].tolist() == [0.1, 0.1]
