"""Answers that are made from nouns."""

from dataclasses import MISSING, dataclass, fields

from pliant.api.view import fill, view


@dataclass(frozen=True, kw_only=True)
class Named:
    name: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    name: str
    weight: int = 1
    tags: tuple[str, ...] = ()


@view
class Answer(Settings, Named):
    """An answer."""

    tags: tuple[str, ...]
    revision: int


@dataclass(frozen=True, kw_only=True)
class Kept:
    revision: int
    name: str = "of the envelope"


def test_an_answer_has_every_field_of_its_nouns_and_none_has_a_default() -> None:
    assert [one.name for one in fields(Answer)] == ["name", "weight", "tags", "revision"]
    assert {one.default for one in fields(Answer)} == {MISSING}


def test_an_answer_is_filled_from_what_is_given_and_then_from_the_first_source_that_has_it() -> None:
    noun = Settings(name="a", weight=2, tags=("x",))

    assert fill(Answer, noun, Kept(revision=3), tags=()) == Answer(name="a", weight=2, tags=(), revision=3)
