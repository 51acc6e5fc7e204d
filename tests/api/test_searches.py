"""Bodies and answers of searches: what is taken, what is refused and why, and what is hidden."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from pliant.api.faults import problems_of
from pliant.api.searches import SearchPatch, SearchRequest, TrialsRequest, require_search_name, search_view
from pliant.core.errors import InvalidInput
from pliant.core.known_trial import KnownTrial
from pliant.core.search import Halving, Objective, Search, SearchSettings, SearchState, TrialState
from pliant.core.space import SearchParameter

ASKED: dict[str, Any] = {
    "name": "digits",
    "script": "train.py",
    "max_tasks": 4,
    "env": {"API_TOKEN": "secret"},
    "parameters": {
        "opt": {"kind": "choice", "choices": ["sgd", 1, 1.5, True, None, [64, [8, "a"]]]},
        "lr": {"kind": "float", "low": 1e-5, "high": 1, "log": True, "when": {"opt": ["sgd"]}},
    },
    "objectives": [{"metric": "val_loss", "direction": "minimize"}],
    "halving": {"max": 27},
    "max_trials": 40,
}


POPULATION = {"size": 8, "every": 3, "max": 27}


def request(**changes: Any) -> SearchRequest:
    return SearchRequest.model_validate_json(json.dumps(ASKED | changes))


def test_a_body_becomes_a_search_and_the_job_of_its_trials() -> None:
    assert request().settings() == SearchSettings(
        parameters={
            "opt": SearchParameter(kind="choice", choices=("sgd", 1, 1.5, True, None, (64, (8, "a")))),
            "lr": SearchParameter(kind="float", low=1e-5, high=1.0, log=True, when={"opt": ("sgd",)}),
        },
        objectives=(Objective(metric="val_loss", direction="minimize"),),
        halving=Halving(max=27),
        max_trials=40,
    )
    choices = request().settings().parameters["opt"].choices
    assert [type(one) for one in choices[1:4]] == [int, float, bool]
    assert (request().spec().name, request().spec().max_tasks) == ("digits", 4)


def test_what_a_client_sends_is_what_it_has() -> None:
    body = request()

    assert SearchRequest.model_validate_json(body.model_dump_json(exclude_defaults=True)) == body


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"name": None}, "name", "a search needs a name; give one"),
        ({"name": "a b"}, "name", "'a b' cannot be taken; give letters, digits"),
        ({"name": "x" * 51}, "name", "50 at most"),
        ({"fixed": True, "min_tasks": 4, "max_tasks": 4}, "halving", "a fixed job cannot pause at a rung"),
        (
            {"fixed": True, "min_tasks": 4, "max_tasks": 4, "halving": None, "population": POPULATION},
            "population",
            "a fixed job cannot pause, nor start from another one's state; leave --fixed out, or use a pruner",
        ),
        ({"halving": None, "population": {"size": 8, "every": 3}}, "population.max", "it is missing"),
        (
            {"halving": None, "population": POPULATION | {"fraction": 0.6}},
            "population.fraction",
            "0.6 is too large; give 0.5 or less",
        ),
        ({"halving": None, "population": POPULATION | {"factor": 1}}, "population.factor", "more than 1"),
        ({"parameters": {}}, "parameters", "too few entries"),
        ({"parameters": {"a b": {"kind": "fixed", "value": 1}}}, "parameters.a b", "give a name of letters"),
        ({"parameters": {"x": {"kind": "floot"}}}, "parameters.x.kind", "is 'float' meant?"),
        ({"parameters": {"x": {"kind": "float", "low": "1e-5", "high": 1}}}, "parameters.x.low", "'1e-5' is no number"),
        ({"parameters": {"x": {"kind": "float", "low": 1, "high": 0}}}, "parameters.x.low", "1 is above high, 0"),
        ({"parameters": {"x": {"kind": "fixed", "value": {}}}}, "parameters.x.value", "it is no value; give a text"),
        ({"parameters": {"x": {"kind": "fixed", "vlaue": 1}}}, "parameters.x.vlaue", "there is no field of this name"),
        ({"parameters": {"x": {"kind": "choice", "choices": [[[[1]]]]}}}, "parameters.x.choices.0", "it is no value"),
        ({"objectives": []}, "objectives", "too few entries"),
        ({"objectives": [{"metric": "", "direction": "minimize"}]}, "objectives.0.metric", "it is empty"),
        ({"objectives": [{"metric": "a", "direction": "up"}]}, "objectives.0.direction", "'up' is not possible"),
        ({"sampler": {"seed": -1}}, "sampler.seed", "-1 is too small"),
        ({"sampler": {"options": {"a": []}}}, "sampler.options.a", "it is no value"),
        ({"halving": {"max": 1}}, "halving.max", "it prunes nothing"),
        ({"halving": {"max": 9, "factor": 1}}, "halving.factor", "1 is too small"),
        ({"halving": None, "pruner": {}}, "pruner.name", "it is missing"),
        ({"max_trials": None}, "max_trials", "nothing ends the search"),
        ({"max_trials": 100_001}, "max_trials", "is too large"),
        ({"pass_as": ["args"]}, "pass_as.0", "'args' is not possible"),
        ({"min_tasks": 5}, "", "min_tasks 5 is above max_tasks 4"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(changes: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        request(**changes)

    (problem,) = problems_of(caught.value)
    assert problem.field == field
    assert said in problem.message


def test_all_that_is_wrong_with_a_space_is_said_at_once() -> None:
    wrong = {"a": {"kind": "int", "low": 0.5, "high": 8}, "b": {"kind": "choice", "choices": [1, 1.0], "low": 1}}
    with pytest.raises(ValidationError) as caught:
        request(parameters=wrong, max_trials=None, name="_")

    fields = [problem.field for problem in problems_of(caught.value)]
    assert fields == ["name", "parameters.a.low", "parameters.b.low", "parameters.b.choices", "max_trials"]


def test_a_change_says_what_is_given_and_null_takes_a_limit_away() -> None:
    asked = SearchPatch.model_validate({"max_trials": None, "parallel": 4, "description": None, "shared_with": ["*"]})

    assert asked.changes() == {"max_trials": None, "parallel": 4, "shared_with": ("*",)}
    refused: list[dict[str, Any]] = [{}, {"sampler": {"name": "tpe"}}, {"max_trials": 0}, {"max_time_s": "1h"}]
    for wrong in refused:
        with pytest.raises(ValidationError):
            SearchPatch.model_validate(wrong)


def test_trials_to_be_tried_hold_values() -> None:
    assert TrialsRequest.model_validate({"trials": [{"lr": 0.1, "layers": [64, 64]}]}).trials == (
        {"lr": 0.1, "layers": (64, 64)},
    )
    refused: list[Any] = [[], [{}], [{"lr": {}}], [{"l r": 1}], [{"lr": 1}] * 1001]
    for wrong in refused:
        with pytest.raises(ValidationError):
            TrialsRequest.model_validate({"trials": wrong})


def test_a_search_is_shown_without_secrets_and_with_how_far_it_is() -> None:
    search = Search(
        name="digits",
        owner="ada",
        settings=request().settings(),
        job=request().spec(),
        checksum="0" * 64,
        created_at=1.0,
        ran_s=50.0,
        running_since=100.0,
        num_trials=12,
    )
    counts = {TrialState.COMPLETED: 6, TrialState.PRUNED: 4, TrialState.RUNNING: 2}
    view = search_view(search, trials=counts, best=None, eta_s=300.0, now=150.0)

    assert (view.ran_s, view.progress, view.eta_s) == (100.0, 0.25, 300.0)
    assert view.job.env["API_TOKEN"] != "secret"
    rested = replace(search, state=SearchState.STOPPED, running_since=None)
    at_rest = search_view(rested, trials={}, best=None, eta_s=None, now=9.0)
    assert (at_rest.ran_s, at_rest.progress, at_rest.eta_s) == (50.0, 0.0, None)


def test_a_name_is_one_that_a_search_can_have() -> None:
    require_search_name("digits-2.x_y")
    for wrong in ("", "-a", "a/b", "x" * 51):
        with pytest.raises(InvalidInput, match="name: "):
            require_search_name(wrong)


def test_the_bodies_describe_their_fields_as_the_nouns_do() -> None:
    shown = SearchRequest.model_json_schema()

    assert "in the order in which it is chosen" in shown["properties"]["parameters"]["description"]
    assert "Grow up to" in shown["properties"]["max_tasks"]["description"]
    assert "so many goes on" in shown["$defs"]["HalvingRequest"]["properties"]["factor"]["description"]
    assert (
        "the values to choose from"
        in shown["$defs"]["SearchParameterRequest"]["properties"]["choices"]["description"].lower()
    )


def test_known_trials_travel_with_what_json_lacks() -> None:
    given = {
        "name": "digits",
        "script": "train.py",
        "virtual_workers": 8,
        "parameters": {"act": {"kind": "choice", "choices": ["relu", [64, [32]]]}},
        "objectives": [{"metric": "loss", "direction": "minimize"}],
        "max_trials": 4,
        "known": [{"values": {"act": [64, [32]]}, "results": [0.5], "reports": [[1, None], [2, 0.5]]}],
    }
    request = SearchRequest.model_validate_json(json.dumps(given))

    again = SearchRequest.model_validate_json(request.model_dump_json(exclude_defaults=True))

    noun = KnownTrial(values={"act": (64, (32,))}, results=(0.5,), reports=((1, math.nan), (2, 0.5)))
    assert repr([one.noun() for one in again.known]) == repr([noun])
