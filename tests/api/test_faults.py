"""Whoever gives something wrong reads sentences: no pattern, no Python, nothing of pydantic's own."""

import importlib
import math
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.server.played import Played, set_scene

import pliant.api
from pliant.api.faults import problems_of
from pliant.api.jobs import JobRequest
from pliant.api.people import UserRequest
from pliant.api.queues import QueueRequest
from pliant.api.request import Request
from pliant.core.errors import Problem

WRONG = [
    *(None, True, -1, 0, 10**30, 1.5, math.nan, [], [None], ["\x00", "a\nb"], ["a"] * 5001),
    *({}, {"no such field": 1}, {"a b": "\x00"}, {str(n): "x" for n in range(101)}),
    *("", " ", "\x00", "a\nb", "é\u202e", "A b", "../x", "x" * 300_000),
]
RAW = re.compile(
    r"pattern|Value error|Input should|should match|Extra|Field required|instance|unable to|String|List |Dictionary|"
    r"NoneType|\bTrue\b|\bNone\b|\^\[|\\x00-|cannot be taken: "
)


def bodies(of: type[Request] = Request) -> Iterator[type[Request]]:
    """Yield all kinds of bodies."""
    for kind in of.__subclasses__():
        yield kind
        yield from bodies(kind)


for module in pkgutil.iter_modules(pliant.api.__path__):
    importlib.import_module(f"pliant.api.{module.name}")
KINDS = sorted({kind for kind in bodies() if kind.model_fields}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_wrong_value_of_any_field_is_answered_with_what_only_programmers_read(kind: type[Request]) -> None:
    said: list[Problem] = []
    for value in WRONG:
        for field in kind.model_fields:
            try:
                kind.model_validate({field: value})
            except ValidationError as error:
                said += problems_of(error)

    assert said
    long = repr(WRONG[-1])[:80]
    assert [one for one in said if RAW.search(one.message.replace(long, ""))] == []
    assert [one for one in said if re.search(r"[\[(]|\b(str|int|none)\b", one.field)] == []


def problems(kind: type[Request], **given: object) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(given)
    return {one.field: one.message for one in problems_of(caught.value)}


def test_a_sentence_says_the_value_and_what_to_give() -> None:
    assert problems(
        JobRequest, script="a.py", priority=0, max_tasks="8", mode="exct", args=["a", 1], env={"1a": "x"}
    ) == {
        "priority": "0 is too small; give 1 or more",
        "max_tasks": "'8' is no whole number",
        "mode": "'exct' is not possible; give 'exact' or 'fast'; is 'exact' meant?",
        "args.1": "1 is no text",
        "env.1a": "'1a' cannot be taken; give a name of letters, digits and '_', no digit first",
    }
    assert problems(JobRequest, script="work/day one.ipynb") == {
        "script": "'work/day one.ipynb' is a notebook; `jupyter nbconvert --to script 'work/day one.ipynb'` makes "
        "'work/day one.py' of it: submit that"
    }
    assert problems(QueueRequest, name="a b") == {
        "name": "'a b' cannot be taken; give letters, digits, '.', '_' and '-', a letter or digit first"
    }


def test_a_password_is_not_said() -> None:
    assert "sesame" not in str(problems(UserRequest, name="ann", role="user", password="sesame"))


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Played]:
    """A server with a job."""
    pool = Played(tmp_path)
    yield set_scene(pool)
    pool.close()


def test_wrong_queries_are_answered_in_words_too(shown: Played) -> None:
    document = shown.http.get(f"{shown.url}/openapi.json").json()
    asked = 0
    for path, ways in document["paths"].items():
        for query in [one for one in ways.get("get", {}).get("parameters", ()) if one["in"] == "query"]:
            for wrong in ("\x00", "x" * 5000, "-1", "1e400", "A b/"):
                answer = shown.http.get(shown.url + re.sub(r"\{\w+\}", "job-1", path), params={query["name"]: wrong})
                if answer.status_code == 422:
                    asked += 1
                    assert RAW.search(answer.text) is None, answer.text
    assert asked > 20
