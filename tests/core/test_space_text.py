"""The grammar of parameters: what is written is read again, and what cannot be read is said with its place."""

import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.core.space import ParameterKind, SearchParameter, same_as
from pliant.core.space_rules import problems_of_space
from pliant.core.space_text import (
    EXAMPLES,
    read_domain,
    read_parameter,
    read_value,
    write_domain,
    write_parameter,
    write_value,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.integers(-(2**53), 2**53)
SCALARS = st.none() | st.booleans() | WHOLE | NUMBERS | st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: st.SearchStrategy[Any] = SCALARS | st.lists(SCALARS | st.lists(SCALARS, max_size=3).map(tuple), max_size=3).map(
    tuple
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,9}", fullmatch=True)
CONDITIONS = st.dictionaries(NAMES, st.lists(SCALARS, min_size=1, max_size=3).map(tuple), max_size=2)


@st.composite
def numbers(draw: st.DrawFn) -> SearchParameter:
    kinds: list[ParameterKind] = ["float", "int"]
    kind = draw(st.sampled_from(kinds))
    one = NUMBERS if kind == "float" else WHOLE.map(float)
    log = draw(st.booleans())
    step = None if log else draw(st.none() | one)
    return SearchParameter(kind=kind, low=draw(one), high=draw(one), step=step, log=log, when=draw(CONDITIONS))


PARAMETERS = (
    numbers()
    | st.builds(
        SearchParameter, kind=st.just("choice"), choices=st.lists(VALUES, min_size=1).map(tuple), when=CONDITIONS
    )
    | st.builds(SearchParameter, kind=st.just("fixed"), value=VALUES, when=CONDITIONS)
)


@given(NAMES, PARAMETERS)
def test_what_is_written_is_read_again(name: str, parameter: SearchParameter) -> None:
    read_name, read = read_parameter(write_parameter(name, parameter))

    assert (read_name, read) == (name, parameter)
    assert tuple(map(same_as, read.choices)) == tuple(map(same_as, parameter.choices))
    assert read_domain(write_domain(parameter)) == parameter


@given(NAMES, PARAMETERS)
def test_what_was_read_is_written_as_it_was_the_second_time(name: str, parameter: SearchParameter) -> None:
    text = write_parameter(name, parameter)

    assert write_parameter(*read_parameter(text)) == text


@given(VALUES)
def test_a_value_is_read_as_what_it_was_written_for(value: Any) -> None:
    assert same_as(read_value(write_value(value))) == same_as(value)


@given(st.text(st.sampled_from('lr=:.,@|"[]{}01e-5 floatchoicefixedlogint'), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(InvalidInput):
        read_parameter(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lr=log:1e-5..1e-1", SearchParameter(kind="float", low=1e-5, high=0.1, log=True)),
        (
            "momentum=float:0..0.99:0.01@opt=sgd",
            SearchParameter(kind="float", low=0, high=0.99, step=0.01, when={"opt": ("sgd",)}),
        ),
        ("hidden=int:16..256:16", SearchParameter(kind="int", low=16, high=256, step=16)),
        ("width=int:8..1024:log", SearchParameter(kind="int", low=8, high=1024, log=True)),
        ("act=choice:relu, gelu", SearchParameter(kind="choice", choices=("relu", "gelu"))),
        ('x=choice:1,2.5,true,null,"7"', SearchParameter(kind="choice", choices=(1, 2.5, True, None, "7"))),
        ("layers=choice:[[64],[64,64]]", SearchParameter(kind="choice", choices=((64,), (64, 64)))),
        ('c=choice:["a@b","c,d"]', SearchParameter(kind="choice", choices=("a@b", "c,d"))),
        ("seed=fixed:7", SearchParameter(kind="fixed", value=7)),
        ("names=fixed:a,b", SearchParameter(kind="fixed", value="a,b")),
        ("beta=float:-1..1", SearchParameter(kind="float", low=-1, high=1)),
        (
            "m=float:0..1@opt=sgd|adam@layers=2",
            SearchParameter(kind="float", low=0, high=1, when={"opt": ("sgd", "adam"), "layers": (2,)}),
        ),
    ],
)
def test_texts_say_what_they_look_like(text: str, expected: SearchParameter) -> None:
    assert read_parameter(text)[1] == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr", "there is no '='"),
        ("1r=log:1..2", "'1r' is no name"),
        ("lr=logg:1..2", "'logg' is no kind of parameter; is 'log' meant?"),
        ("lr=0.1", "'0.1' is no kind of parameter; give one of log, float, int, choice, fixed"),
        ("lr=log", "a ':' is due where nothing stands (character 7); an example is lr=log:1e-5..1e-1"),
        ("lr=log:1e-5", "'..' and the highest value are due where nothing stands"),
        ("lr=log:1e-5.1", "'..' and the highest value are due where '.1' stands (character 12)"),
        ("lr=log:.5..1", "a number such as 16, 0.5 or 1e-5 is due where '.5..1' stands (character 8)"),
        ("lr=float:0..1:x", "a step, or 'log', such as"),
        ("lr=float:0..1:0.1:log", "the end is due where ':log' stands"),
        ("lr=float:0..nan", "is due where 'nan' stands"),
        ("act=choice:", "a value is due"),
        ("act=choice:a,,b", "a value is due"),
        ("act=choice:.5", 'or ".5" if a text is meant'),
        ("act=choice:nan", 'or "nan" if a text is meant'),
        ("act=choice:[1,NaN]", "JSON is due (NaN is no number)"),
        ("act=choice:[{}]", "only texts, numbers"),
        ("act=choice:[[[[1]]]]", "only texts, numbers"),
        ("act=choice:[1],[2]", "the end is due where ',[2]' stands"),
        ("act=choice:" + "[" * 100_000, "JSON is due"),
        ("act=choice:" + "9" * 5000, "fewer digits"),
        ("act=choice:[" + "9" * 5000 + "]", "JSON is due"),
        ("lr=float:0..1@", "the name of an earlier parameter is due"),
        ("lr=float:0..1@opt", "'=' and a value are due"),
        ("lr=float:0..1@opt=", "a value is due"),
        ("lr=float:0..1@opt=a@opt=b", "'opt' stands in two conditions"),
    ],
)
def test_what_is_no_parameter_is_said(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_parameter(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_examples_are_sound() -> None:
    space = dict(map(read_parameter, EXAMPLES.values()))

    assert problems_of_space(space) == ()
    assert math.isclose(space["lr"].high or 0, 0.1)
