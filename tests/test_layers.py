"""The layers of the tests, played with small files: what is run again, what is forgiven, and what never is."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.layers import closing_line, combine

ROOT = Path(__file__).parents[1]
CONFIG = """
[pytest]
addopts = --strict-markers
markers =
    slow: of the second layer
"""
HEAD = """
import os, pathlib, sys, pytest

def first(name):
    \"\"\"Say whether this is the first time that the test runs.\"\"\"
    seen = pathlib.Path(__file__).with_name(f"{name}.seen")
    try:
        return not seen.exists()
    finally:
        seen.touch()
"""
GOOD = "def test_good(): pass\n"
SLOW = "@pytest.mark.slow\n"
FLAKY = """
@pytest.mark.slow
@pytest.mark.parametrize("name", {names})
def test_flaky(name):
    print("what it printed first")
    assert not first(name), "a cause in words"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a run left."""

    code: int
    out: str

    @property
    def closing(self) -> str:
        return self.out.splitlines()[-1].strip("= ").rpartition(" in ")[0]

    @property
    def under_flaky(self) -> str:
        return self.out.partition(f"{' flaky ':=^80}")[2]


def play(folder: Path, test: str, *args: str) -> Ended:
    """Run the layers over one file of tests."""
    (folder / "pytest.ini").write_text(CONFIG)
    (folder / "test_it.py").write_text(HEAD + test)
    few = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p xdist.plugin -p no:cacheprovider"}
    command = [sys.executable, "-m", "tests.layers", *(args or ("-n", "0"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **few}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=50, check=False)
    return Ended(code=done.returncode, out=done.stdout)


def test_both_layers_pass_and_the_last_line_counts_both(tmp_path: Path) -> None:
    (tmp_path / "test_quick.py").write_text("print('is read')\n" + GOOD)
    test = GOOD + SLOW + "def test_slow(): pass\n" + SLOW + "def test_skipped(): pytest.skip()\n"
    ended = play(tmp_path, test, "-n", "0", "-s")
    assert (ended.code, ended.closing, ended.under_flaky) == (0, "3 passed, 1 skipped", "")
    assert ended.out.count("is read") == 1, "the slow layer has no use for it"


def test_a_failure_of_the_first_layer_is_not_forgiven_and_does_not_hide_the_second(tmp_path: Path) -> None:
    ended = play(tmp_path, "def test_unit(): assert not first('unit')\n" + SLOW + "def test_slow(): pass\n")
    assert (ended.code, ended.closing, ended.under_flaky) == (1, "1 failed, 1 passed", "")


def test_what_passes_the_second_time_is_forgiven_and_shown_whole(tmp_path: Path) -> None:
    ended = play(tmp_path, GOOD + FLAKY.format(names=["a[b]", "c"]))
    assert (ended.code, ended.closing) == (0, "1 passed, 2 flaky")
    for text in ("test_it.py::test_flaky[a[b]]", "a cause in words", "what it printed first", "assert not first(name)"):
        assert text in ended.under_flaky


def test_more_than_two_are_too_many(tmp_path: Path) -> None:
    ended = play(tmp_path, FLAKY.format(names=["a", "b", "c"]))
    assert (ended.code, ended.closing) == (1, "3 flaky")
    assert "3 flaky tests are more than 2" in ended.under_flaky


def test_what_fails_twice_has_failed_and_only_the_others_are_flaky(tmp_path: Path) -> None:
    ended = play(tmp_path, FLAKY.format(names=["a"]) + SLOW + "def test_broken(): assert 1 == 2\n")
    assert (ended.code, ended.closing) == (1, "1 failed, 1 flaky")
    assert "test_broken" not in ended.under_flaky


def test_what_is_skipped_the_second_time_has_not_passed(tmp_path: Path) -> None:
    ended = play(tmp_path, SLOW + "def test_it():\n    if not first('it'): pytest.skip()\n    assert 0\n")
    assert (ended.code, ended.closing) == (1, "1 failed")


def test_a_fixture_that_fails_counts_as_its_test(tmp_path: Path) -> None:
    fixture = "@pytest.fixture\ndef {name}():\n    {before}\n    yield\n    {after}\n"
    late = fixture.format(name="late", before="pass", after="assert not first('late')")
    early = fixture.format(name="early", before="assert not first('early')", after="pass")
    tests = "".join(f"{SLOW}def test_{name}({name}): pass\n" for name in ("early", "late"))
    ended = play(tmp_path, early + late + tests)
    assert (ended.code, ended.closing) == (0, "2 flaky")


def test_a_worker_that_dies_fails_the_test_that_it_ran(tmp_path: Path) -> None:
    test = SLOW + "def test_dies():\n    if first('dies'): os._exit(3)\n" + SLOW + "def test_next(): pass\n"
    ended = play(tmp_path, test, "-n", "2")
    assert (ended.code, ended.closing) == (0, "1 passed, 1 flaky")
    assert "crashed while running" in ended.under_flaky


def test_what_is_selected_is_what_runs_the_second_time_too(tmp_path: Path) -> None:
    both = FLAKY.format(names=["a", "b"]) + SLOW + "def test_other(): assert 0\n"
    ended = play(tmp_path, both, "-k", "flaky and not b", "-n", "0", "test_it.py")
    assert (ended.code, ended.closing) == (0, "1 flaky")


def test_a_run_that_was_ended_early_is_not_forgiven(tmp_path: Path) -> None:
    ended = play(tmp_path, FLAKY.format(names=["a", "b"]), "-n", "0", "-x")
    assert (ended.code, ended.closing) == (1, "1 failed")


@pytest.mark.parametrize(
    ("test", "args", "code"),
    [
        (GOOD, ["--no-such-option"], pytest.ExitCode.USAGE_ERROR),
        (GOOD, ["-n", "0", "-k", "nothing"], pytest.ExitCode.NO_TESTS_COLLECTED),
        (SLOW + GOOD, ["-n", "0"], pytest.ExitCode.OK),
        ("import no_such_module\n" + SLOW + GOOD, ["-n", "0"], pytest.ExitCode.INTERRUPTED),
        ("import no_such_module\n" + SLOW + GOOD, ["-n", "1"], pytest.ExitCode.TESTS_FAILED),
        (SLOW + "def test_it(): raise KeyboardInterrupt\n", ["-n", "0"], pytest.ExitCode.INTERRUPTED),
    ],
    ids=["usage", "no tests", "one layer only", "collection", "collection by workers", "interrupted"],
)
def test_pytests_exit_codes_are_kept(tmp_path: Path, test: str, args: list[str], code: int) -> None:
    assert play(tmp_path, test, *args).code == code


def test_the_first_bad_code_is_that_of_the_whole() -> None:
    assert [combine(*codes) for codes in ((0, 0), (0, 5), (5, 0), (5, 5), (0, 1), (137, 1), (3, 0))] == [
        *(0, 0, 0, 5, 1, 137, 3)
    ]


def test_the_last_line_is_as_pytests() -> None:
    outcomes = {"a": "passed", "b": "flaky", "c": "failed", "d": "passed"}
    assert closing_line(outcomes, 12.345).strip("=") == " 1 failed, 2 passed, 1 flaky in 12.35s "
    assert closing_line({}, 1.0).strip("=") == " no tests ran in 1.00s "
