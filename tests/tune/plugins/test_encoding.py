"""What an algorithm keeps comes back as it was, of the same types; what cannot be kept says where it is."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pliant.tune.plugins.encoding import MAX_PARTS, NotEncodable, decode, encode

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
KINDS = st.sampled_from(["<f8", ">f4", "<i8", "|u1", "|b1", "<c16", "<U3", "|S4"])
ARRAYS = KINDS.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))
NUMPY_SCALARS = ARRAYS.filter(lambda array: array.size > 0).map(lambda array: array.reshape(-1)[0])
KEYS = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
ANYTHING = st.recursive(
    SCALARS | ARRAYS | NUMPY_SCALARS | st.binary().map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal, of the same types, all through; a NaN is one."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same([*one.items()], [*other.items()])
    if isinstance(one, np.ndarray | np.generic):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return repr(one) == repr(other)


@given(ANYTHING)
@settings(max_examples=40, deadline=None)
def test_what_is_kept_comes_back_through_json(value: Any) -> None:
    text = json.dumps(encode(value), allow_nan=False)

    assert text.isascii()
    assert same(decode(json.loads(text)), value)


@given(st.recursive(st.none() | st.integers() | st.text() | st.just("array"), st.lists, max_leaves=8))
@settings(max_examples=50, deadline=None)
def test_what_was_not_kept_is_refused_or_some_value(anything: Any) -> None:
    try:
        decode(anything)
    except ValueError:
        return


def test_arrays_that_are_no_block_of_memory_come_back_and_can_be_written() -> None:
    array = np.arange(12.0).reshape(3, 4).T[::2]
    found = decode(encode({"a": array}))["a"]
    found[0, 0] = math.pi

    assert found[1:].tolist() == array[1:].tolist()
    assert array[0, 0] == 0.0


class Named(dict[str, int]):
    pass


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"rng": [1, {2, 3}]}, r"rng\[1\] is a set, which cannot be kept; give numbers, texts"),
        ({"a": {"b": object()}}, r"a\.b is a object"),
        (Named(a=1), "it is a Named"),
        (np.array([object()]), "it is an array of object"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "it is an array of datetime64"),
        ({"rng": np.random.default_rng(1)}, "rng is a Generator"),
        ({(1, frozenset()): 1}, r"a key of it\[1\] is a frozenset"),
        (1 << 5000, "it is a number of 5001 bits; 4096 are the most"),
        (CYCLE, "lies deeper than 50 levels, or holds itself; keep it flat"),
        ([0] * (MAX_PARTS + 1), "it holds more than 500,000 values; keep large tables as arrays of numpy"),
    ],
)
def test_what_cannot_be_kept_says_where_it_is(value: object, message: str) -> None:
    with pytest.raises(NotEncodable, match=message):
        encode(value)
