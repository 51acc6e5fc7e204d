"""A Keras training is the same bits for any number of tasks, and after a checkpoint.

Keras is imported by the tasks alone: it takes seconds.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.train.crew import run_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def at_once(result_dir: str) -> dict[str, Any]:
    from tests.integrations.keras.models import train_all

    return train_all(result_dir)


def in_two_parts(result_dir: str) -> tuple[dict[str, Any], dict[str, Any]]:
    from tests.integrations.keras.models import train_all, train_until

    return train_until(result_dir, last=1), train_all(result_dir)


def test_any_number_of_tasks_and_a_checkpoint_between_them_come_to_the_same_bits(tmp_path: Path) -> None:
    [alone] = run_in(1, at_once, result_dir=str(tmp_path / "alone"))
    both = run_in(2, in_two_parts, result_dir=str(tmp_path / "parted"))

    assert [first["epochs"] for first, _ in both] == [[0, 1]] * 2
    assert [resumed for _, resumed in both] == [alone] * 2
    assert alone["in two parts"]["epochs"] == list(range(4))
    digests = {result["digest"] for result in (both[0][0], *alone.values())}
    assert len(digests) == 1 + len(alone), "each is a training of its own"
