"""Labels of a machine, as options give them."""

import pytest

from pliant.entry.labels import label_problems, read_labels


def test_labels_are_names_with_values() -> None:
    given = ["rack=7", "zone/a=eu-1", "empty="]

    assert list(label_problems(given)) == []
    assert read_labels(given) == {"rack": "7", "zone/a": "eu-1", "empty": ""}


@pytest.mark.parametrize(
    "label", ["rack", "=7", "ra ck=7", "rack=7=8", "rack=ü", f"{'x' * 61}=1", f"x={'1' * 61}", "a=1\n"]
)
def test_what_is_no_label_is_named_and_left_out(label: str) -> None:
    (problem,) = label_problems([label, "good=1"])

    assert problem.field == "--label"
    assert "give NAME=VALUE" in problem.message
    assert read_labels([label, "good=1"]) == {"good": "1"}


def test_a_name_that_is_given_twice_is_a_problem() -> None:
    (problem,) = label_problems(["rack=7", "zone=1", "rack=8"])

    assert problem.message.startswith("rack: given twice")
