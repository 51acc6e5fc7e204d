"""Patterns fit names as `.pliantignore` says."""

import pytest

from pliant.files.ignore import Patterns, read_patterns


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.pt", ["a.pt", "runs/1/a.pt", "x.pt/in/it"], ["a.pth", "pt"]),
        ("runs/", ["runs/a", "deep/runs/a/b"], ["runs", "deep/runs", "run/a"]),
        ("/data", ["data", "data/x"], ["deep/data"]),
        ("a/b", ["a/b", "a/b/c"], ["b", "x/a/b"]),
        ("runs/*", ["runs/7", "runs/7/out"], ["runs"]),
        ("[ab]?", ["a1", "b2"], ["c1", "a", "a12"]),
        ("a(b", ["a(b"], ["ab"]),
    ],
)
def test_a_pattern_fits_names_ways_and_what_lies_below(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    patterns = Patterns([pattern])

    assert [name for name in fits if not patterns.fit_way(name)] == []
    assert [name for name in fits_not if patterns.fit_way(name)] == []


def test_without_patterns_nothing_fits() -> None:
    assert not Patterns([]).fit_way("a/b")
    assert not Patterns([]).fit("a", True)


def test_comments_and_empty_lines_are_no_patterns() -> None:
    assert read_patterns("# no\n\n  data/  \n*.pt\r\n") == ("data/", "*.pt")
