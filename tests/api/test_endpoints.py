"""Bodies and answers of endpoints: what was given, what is hidden."""

import pytest
from pydantic import ValidationError

from pliant.api.endpoints import DeployRequest, EndpointPatch, RollbackRequest, version_view
from pliant.core.endpoint import EndpointVersion, VersionState
from pliant.core.slot import share_of_slot, whole_slots


def test_a_deployment_says_only_what_was_given_each_with_its_noun() -> None:
    given = {"kernel_min": 2, "idempotent": False, "env": {"A": "b"}, "memory_bytes": None, "job": "job-3"}
    asked = DeployRequest.model_validate(given)
    assert asked.given_settings() == {"kernel_min": 2, "idempotent": False}
    assert asked.given_version() == {"env": {"A": "b"}, "memory_bytes": None}
    assert (asked.job, asked.file, asked.source) == ("job-3", None, "")


def test_null_says_nothing_where_a_field_needs_a_value() -> None:
    asked = DeployRequest.model_validate_json('{"kernel_max": null, "slots_per_task": null, "environment": null}')
    assert asked.given_settings() == {}
    assert asked.given_version() == {"environment": None}


def test_all_that_is_wrong_with_a_deployment_is_said_at_once() -> None:
    given = {"kernel_min": -1, "batch_size": "8", "job": "array-1", "file": "", "latency_objective_s": 0, "slots": 1}
    with pytest.raises(ValidationError) as caught:
        DeployRequest.model_validate(given)
    assert {error["loc"][0] for error in caught.value.errors()} == set(given)


@pytest.mark.parametrize("name", ["A=B", "", "1A", "A\0", "A B", "LD PRELOAD"])
def test_a_variable_of_a_deployment_has_a_name_that_a_variable_can_have(name: str) -> None:
    with pytest.raises(ValidationError, match="a name of letters, digits"):
        DeployRequest.model_validate({"env": {name: "c"}})


def test_a_change_gives_at_least_one_field_and_no_field_of_a_version() -> None:
    assert EndpointPatch.model_validate({"kernel_max": 3, "queue": "research"}).values() == {
        "kernel_max": 3,
        "queue": "research",
    }
    for wrong in ({}, {"slots_per_task": 2}, {"job": "job-1"}):
        with pytest.raises(ValidationError):
            EndpointPatch.model_validate(wrong)


def test_a_rollback_names_a_number_from_one() -> None:
    assert RollbackRequest().number is None
    with pytest.raises(ValidationError):
        RollbackRequest(number=0)


def test_a_deployment_describes_its_fields_as_the_nouns_do() -> None:
    shown = DeployRequest.model_json_schema()["properties"]
    assert "kernels whatever the load" in shown["kernel_min"]["description"]
    assert "uses more memory" in shown["memory_bytes"]["description"]
    assert "looked for if left out" in shown["file"]["description"]


def test_a_version_is_shown_without_the_values_of_secrets() -> None:
    version = EndpointVersion(
        number=1,
        runner="python",
        file="serve.py",
        checksum="c" * 64,
        num_bytes=10,
        state=VersionState.SERVING,
        created_at=1.0,
        created_by="ada",
        env={"HF_TOKEN": "hf_123", "MODE": "fast"},
    )
    shown = version_view(
        version,
        traffic=90,
        num_kernels=1,
        num_ready=1,
        wanted=2,
        why="it has 1",
        demand="it needs 2",
        load=None,
        kernels=(),
    )
    assert dict(shown.env) == {"HF_TOKEN": "(hidden)", "MODE": "fast"}
    assert (shown.number, shown.file, shown.wanted) == (1, "serve.py", 2)
    assert version.env["HF_TOKEN"] == "hf_123"


@pytest.mark.parametrize(
    ("given", "whole", "share"), [(1, 1, 1000), (4, 4, 1000), (0.25, 1, 250), (0.01, 1, 10), (0.999, 1, 999)]
)
def test_slots_are_whole_or_a_part_of_one(given: float, whole: int, share: int) -> None:
    read = DeployRequest.model_validate({"slots_per_task": given}).given_version()["slots_per_task"]

    assert read == given
    assert (whole_slots(given), share_of_slot(given)) == (whole, share)


@pytest.mark.parametrize("given", [0, -1, 1.5, 64.5, 65, 0.0005, 0.009, 0.33333, float("nan"), float("inf"), "many"])
def test_slots_that_are_neither_are_refused(given: object) -> None:
    with pytest.raises(ValidationError) as refused:
        DeployRequest.model_validate({"slots_per_task": given})

    assert [error["loc"][0] for error in refused.value.errors()] == ["slots_per_task"]
