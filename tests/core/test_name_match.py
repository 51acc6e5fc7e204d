"""How well names fit a text."""

import pytest

from pliant.core.name_match import BEGINS, HOLDS, SAME, rank


@pytest.mark.parametrize(
    ("text", "names", "fit"),
    [
        ("job-1", ("job-1", "digits"), SAME),
        ("DIGITS", ("job-1", "digits"), SAME),
        ("dig", ("job-1", "digits"), BEGINS),
        ("its", ("job-1", "digits"), HOLDS),
        ("GRÖSSE", ("größe",), SAME),
        ("%", ("digits",), None),
        (".", ("digits",), None),
    ],
)
def test_the_best_of_the_names_counts(text: str, names: tuple[str, ...], fit: int | None) -> None:
    assert rank(text, *names) == fit
