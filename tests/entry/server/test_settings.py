"""What the server is told on its command line."""

import pytest

from pliant.core.errors import InvalidInput
from pliant.entry.server.settings import DEFAULT_LEASE_S, read_settings


def test_the_lease_is_two_seconds_unless_another_is_asked_for() -> None:
    assert read_settings([], {}).lease_s == DEFAULT_LEASE_S == 2.0
    assert read_settings(["--lease-s", "0.5"], {}).lease_s == 0.5


@pytest.mark.parametrize("seconds", ["0", "0.1", "-1", "inf"])
def test_a_lease_that_no_task_could_keep_is_refused(seconds: str) -> None:
    with pytest.raises(InvalidInput, match="--lease-s"):
        read_settings(["--lease-s", seconds], {})


def test_labels_are_names_with_values() -> None:
    assert read_settings(["--label", "kind=gpu", "--label", "rack="], {}).labels == {"kind": "gpu", "rack": ""}


@pytest.mark.parametrize("labels", [["kind"], ["a b=c"], ["=gpu"], ["kind=gpu", "kind=cpu"]])
def test_what_is_no_label_is_refused(labels: list[str]) -> None:
    with pytest.raises(InvalidInput, match="--label"):
        read_settings([f"--label={label}" for label in labels], {})
