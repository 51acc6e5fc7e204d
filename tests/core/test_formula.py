"""Formulas of slots per host: what they come to, and what is said of those that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.core.formula import MAX_LENGTH, read_formula


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("ngpus", 8),
        ("ncpus // 2", 16),
        ("ngpus * 2 + 1", 17),
        ("1 + ngpus * 2", 17),
        ("(1 + ngpus) * 2", 18),
        ("20 - 3 - 2", 15),
        ("100 // 7 // 2", 7),
        ("min(ngpus, 4)", 4),
        ("max(1, ngpus, ncpus - 8)", 24),
        ("min(max(1, 2), 3 * (4 - 2))", 2),
        ("-ngpus + 10", 2),
        ("--3", 3),
        ("ngpus // (ncpus - 32)", 0),
        ("7 // -2", -4),
    ],
)
def test_a_formula_comes_to_what_arithmetic_says(text: str, value: int) -> None:
    assert read_formula(text).value(ngpus=8, ncpus=32) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "position 1: it ends where a number"),
        ("ngpus +", "position 8: it ends where"),
        ("4 5", "position 3: '5' is not expected"),
        ("gpus", "position 1: 'gpus' is not known; there are ngpus, ncpus, min, max"),
        ("ngpus ** 2", "position 8: '*' stands where"),
        ("(1 + 2", "position 7: ')' is missing"),
        ("min 3", "position 5: '(' is missing"),
        ("__import__('os')", "position 1: '__import__' is not known"),
        ("1.5", "position 2: '.' means nothing here"),
        ("ngpus / 2", "position 7: '/' means nothing here"),
        ("99999999", "position 1: 99999999 is too large"),
        ("(" * 40 + "1" + ")" * 40, "more than 20 brackets"),
        ("1" + "+1" * 200, f"{MAX_LENGTH} at most"),
    ],
)
def test_what_is_no_formula_is_told_with_its_position(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_formula(text)

    assert message in str(caught.value)
    assert {problem.field for problem in caught.value.problems} == {"slots_per_host"}


def test_every_wrong_word_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        read_formula("cpus + gpus @ 3")

    assert [problem.message.partition(": ")[2].partition(":")[0] for problem in caught.value.problems] == [
        "position 1",
        "position 8",
        "position 13",
    ]


FORMULAS = st.recursive(
    st.sampled_from(["ngpus", "ncpus"]) | st.integers(0, 99).map(str),
    lambda inner: (
        st.tuples(inner, st.sampled_from([" + ", "-", " * "]), inner).map("".join).map("({})".format)
        | st.tuples(inner, inner).map(lambda pair: f"min({pair[0]}, {pair[1]})")
        | inner.map("-{}".format)
    ),
    max_leaves=6,
)


@given(text=FORMULAS, ngpus=st.integers(0, 64), ncpus=st.integers(1, 512))
def test_formulas_agree_with_python(text: str, ngpus: int, ncpus: int) -> None:
    if len(text) <= MAX_LENGTH:
        expected = eval(text, {"__builtins__": {}, "min": min}, {"ngpus": ngpus, "ncpus": ncpus})

        assert read_formula(text).value(ngpus=ngpus, ncpus=ncpus) == expected


@given(text=st.text(max_size=40))
def test_any_text_is_a_formula_or_is_refused(text: str) -> None:
    try:
        formula = read_formula(text)
    except InvalidInput:
        return
    formula.value(ngpus=1, ncpus=2)
