"""`--set NAME=VALUE` becomes the fields of a request."""

import pytest

from pliant.cli.catalog.assignments import assign
from pliant.core.errors import InvalidInput


def test_numbers_and_parameters_are_told_apart_by_name() -> None:
    given = [
        "learning-rate=1e-3",
        "epochs=5",
        "optimizer=Adam",
        "nesterov=true",
        "width=8",
        "label=5",
        "lr_values=1,0.5",
    ]

    assert assign(given, {"label": "x", "width": 4}) == {
        "hyperparameters": {
            "learning_rate": 1e-3,
            "epochs": 5,
            "optimizer": "Adam",
            "nesterov": True,
            "lr_values": [1, 0.5],
        },
        "parameters": {"width": 8, "label": "5"},
    }


def test_null_goes_back_to_the_default_and_a_text_may_hold_a_sign_of_equality() -> None:
    assert assign(["epochs=null", "lr_milestones=", "note=a=b"], {}) == {
        "hyperparameters": {"epochs": None, "lr_milestones": None},
        "parameters": {"note": "a=b"},
    }


def test_nothing_given_is_nothing_to_send() -> None:
    assert assign([], {}) == {}


def test_what_has_no_sign_of_equality_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'epochs' has no '='"):
        assign(["epochs"], {})
