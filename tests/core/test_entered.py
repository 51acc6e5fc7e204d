"""What was entered for a training, with the values of a trial in its place."""

import json
import math
from dataclasses import asdict, fields
from typing import Any

import pytest

from pliant.core.entered import FLAGS, LISTS, NUMBERS, PARAMETERS, PS_CONF, WHOLE, WORDS, files_of, misfit, with_values
from pliant.core.hyperparameters import Hyperparameters

ENTERED = {
    "template": "digits",
    "hyperparameters": asdict(Hyperparameters(momentum=0.9, lr_policy="step", lr_gamma=0.1, lr_step_size=3)),
    "parameters": {"width": 8},
}


def given(**values: Any) -> dict[str, Any]:
    """Return what is told of the values of a trial, by field; or the hyperparameters that are not the default ones."""
    found, problems = with_values(ENTERED, values)
    if problems:
        return {one.field: one.message for one in problems}
    fresh, after = asdict(Hyperparameters()), found["hyperparameters"]
    changed: dict[str, Any] = {name: value for name, value in after.items() if value != fresh[name]}
    return {**changed, **found["parameters"]}


def test_values_stand_in_the_place_of_what_was_entered() -> None:
    before = {"momentum": 0.9, "lr_policy": "step", "lr_gamma": 0.1, "lr_step_size": 3, "width": 8}
    assert given() == before
    assert given(batch_size=8.0, width=16) == before | {"batch_size": 8, "width": 16}
    files = files_of(with_values(ENTERED, {"learning_rate": 1e-05, "width": 16})[0])
    assert files[PS_CONF].decode().splitlines()[1:3] == ["base_lr=1e-05", "batch_size=32"]
    read = json.loads(files[PARAMETERS])
    assert (read["template"], read["parameters"], read["hyperparameters"]["learning_rate"]) == (
        "digits",
        {"width": 16},
        1e-05,
    )


def test_what_belongs_to_another_optimizer_or_policy_is_left_out() -> None:
    assert given(optimizer="adam", beta1=0.5, beta2=0.9, lr_policy="fixed") == {
        "optimizer": "Adam",
        "beta1": 0.5,
        "beta2": 0.9,
        "width": 8,
    }
    assert "Adam has no such parameter" in given(optimizer="Adam", momentum=0.5)["hyperparameters.momentum"]
    multistep = given(lr_policy="multistep", lr_milestones=[2, 4])
    assert (multistep["lr_gamma"], multistep.get("lr_step_size")) == (0.1, None)
    piecewise = given(lr_policy="piecewise", lr_milestones=[2], lr_values=[0.1, 0.01])
    assert piecewise["lr_values"] == (0.1, 0.01)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", "0.1"),
        ("learning_rate", None),
        ("momentum", True),
        ("epochs", 1.5),
        ("batch_size", 10**400),
        ("nesterov", 1),
        ("optimizer", None),
        ("lr_policy", 3),
        ("lr_milestones", [1, True]),
        ("lr_values", "0.1"),
    ],
)
def test_a_value_of_another_kind_is_told(name: str, value: object) -> None:
    assert set(given(**{name: value})) == {f"hyperparameters.{name}"}


def test_everything_is_told_at_once_and_no_number_is_too_odd() -> None:
    assert set(given(learning_rate=math.nan, epochs=0, test_batch_size=2.0)) == {
        "hyperparameters.learning_rate",
        "hyperparameters.epochs",
    }
    assert "the template has no such parameter (it has: width)" in given(height=3)["parameters.height"]


@pytest.mark.parametrize("entered", [{}, {"hyperparameters": [], "parameters": {}}, {"hyperparameters": {"a": 1}}])
def test_a_file_that_somebody_else_wrote_is_refused(entered: dict[str, Any]) -> None:
    _, problems = with_values(entered, {"epochs": 3})
    assert [one.field for one in problems] == ["pass_as"]
    _, problems = with_values({"hyperparameters": {"a": 1}, "parameters": {}}, {})
    assert [one.field for one in problems] == ["hyperparameters.a"]


def test_every_hyperparameter_has_a_kind() -> None:
    kinds = {one.name: str(one.type) for one in fields(Hyperparameters)}
    assert WHOLE | FLAGS | WORDS | LISTS <= NUMBERS
    for name, default in asdict(Hyperparameters()).items():
        assert default is None or misfit(name, default) == ""
        assert (name in FLAGS) == ("bool" in kinds[name])
