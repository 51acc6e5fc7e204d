"""Run the tests layer by layer: `python -m tests.layers`, with any arguments of pytest.

The layer `unit` comes first, then the layer `slow`; the second runs whatever became of the first, and the run fails if
either did. Two workers share the tests of the first layer, three those of the second, which waits more than it
computes: one that is done takes half of what is left to another.

Real processes on a loaded machine fail once in fifty runs without being wrong, so a test of the slow layer that fails
is run again, alone, after the others. If it passes then, the run passes, and shows its first failure whole under the
heading `flaky`. More than two of them fail the run. The unit layer has no such grace, and neither has a run that was
ended early (Ctrl-C, `--maxfail`, an error of usage or collection): what it did not run is not known to pass.

In the pytest that each layer runs in, this file is a plugin. It writes down what became of every test (`--record`), and
for the second run it leaves out all tests but those named (`--only`), so that every other argument may stay as it was.
For the slow layer it reads no file that has not the word `slow` in it: each worker would import all of them.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import pytest

MAX_FLAKY: Final = 2
_MAX_AGAIN: Final = 5
"""The second run ends when so many have failed again: then the layer is broken, not flaky."""
_SLOW: Final = "slow"
_WIDTH: Final = 80
_OUTCOMES: Final = ("failed", "error", "passed", "skipped", "xfailed", "xpassed", "flaky")
"""In the order of pytest's closing line."""


@dataclass(slots=True, kw_only=True)
class Record:
    """What became of the tests of one run of pytest."""

    code: int = pytest.ExitCode.OK
    outcomes: dict[str, str] = field(default_factory=dict)
    """By the id of the test, or of the file that could not be collected."""
    failures: dict[str, str] = field(default_factory=dict)
    """The failures of each test, whole."""
    ended_early: bool = False


# The plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the two files over which the driver below and pytest speak."""
    group = parser.getgroup("layers")
    group.addoption("--record", type=Path, default=None, help="write what became of every test to this file")
    group.addoption("--only", type=Path, default=None, help="run only the tests whose ids this file lists")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that hears of all tests, not in the workers of xdist."""
    path = config.getoption("--record")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(path))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files without a slow test when only those run: each worker would import all of them."""
    if config.option.markexpr != _SLOW or not collection_path.is_file():
        return None
    return True if f"mark.{_SLOW}" not in collection_path.read_text() else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all tests but those named."""
    path = config.getoption("--only")
    if path is not None:
        only = set(json.loads(path.read_text()))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in only])
        items[:] = [item for item in items if item.nodeid in only]


class _Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._record = Record()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected."""
        if not report.passed:
            self._record.outcomes[report.nodeid] = "error" if report.failed else "skipped"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a failure of any phase: of the test, of its fixtures, of the worker that it ran in."""
        outcomes, failures = self._record.outcomes, self._record.failures
        if report.failed:
            outcomes[report.nodeid] = "failed"
            parts = [report.longreprtext, *(f"--- {title} ---\n{text}" for title, text in report.sections)]
            failures[report.nodeid] = "\n".join([failures.get(report.nodeid, ""), *parts]).strip()
        elif report.skipped or (report.passed and report.when == "call"):
            expected = {"skipped": "xfailed", "passed": "xpassed"} if hasattr(report, "wasxfail") else {}
            outcomes.setdefault(report.nodeid, expected.get(report.outcome, report.outcome))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the file."""
        self._record.code = exitstatus
        self._record.ended_early = bool(session.shouldfail or session.shouldstop)
        self._path.write_text(json.dumps(asdict(self._record)))


# The driver


def main(args: Sequence[str]) -> int:
    """Run both layers; return the exit code of the whole."""
    signal.signal(signal.SIGINT, lambda *_: None)  # pytest ends at Ctrl-C and says so by its exit code
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pliant-layers-") as place:
        unit = run(Path(place), "-m", f"not {_SLOW}", *args)
        if unit.code in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR):
            return unit.code
        slow = run(Path(place), "-m", _SLOW, *args, workers=3)
        flaky = find_flaky(Path(place), slow, args)
    code = combine(unit.code, pytest.ExitCode.OK if flaky and set(flaky) == set(slow.failures) else slow.code)
    print("\n".join(describe(flaky)), end="", flush=True)
    if len(flaky) > MAX_FLAKY:
        print(f"{len(flaky)} flaky tests are more than {MAX_FLAKY}: this run fails. Mend them.", flush=True)
        code = code or pytest.ExitCode.TESTS_FAILED
    outcomes = unit.outcomes | slow.outcomes | dict.fromkeys(flaky, "flaky")
    print(closing_line(outcomes, time.monotonic() - began), flush=True)
    return code


def run(place: Path, *args: str, workers: int = 2) -> Record:
    """Run pytest in a process of its own; return what became of the tests."""
    path = place / "record.json"
    path.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "tests.layers", "-n", str(workers), "--dist", "worksteal"]
    # The tests start hundreds of processes; none of them shall compile Pliant anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    code = subprocess.run([*command, *args, f"--record={path}"], env=environment, check=False).returncode
    record = Record(**json.loads(path.read_text())) if path.exists() else Record()
    record.code = code if code >= 0 else 128 - code
    return record


def find_flaky(place: Path, slow: Record, args: Sequence[str]) -> Mapping[str, str]:
    """Run the failed tests of the slow layer again, alone; return the first failures of those that pass now."""
    if slow.code != pytest.ExitCode.TESTS_FAILED or slow.ended_early or not slow.failures:
        return {}
    print(f"\nfailed in the slow layer, and now run again alone: {len(slow.failures)}", flush=True)
    only = place / "only.json"
    only.write_text(json.dumps(list(slow.failures)))
    again = run(place, "-m", _SLOW, *args, "-n", "0", f"--maxfail={_MAX_AGAIN}", f"--only={only}")
    return {test: failure for test, failure in slow.failures.items() if again.outcomes.get(test) == "passed"}


def combine(*codes: int) -> int:
    """Return the exit code of several runs: the first that is bad; or that no tests were found, if none found any."""
    good = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    bad = [code for code in codes if code not in good]
    return bad[0] if bad else min(codes)


def describe(flaky: Mapping[str, str]) -> Iterator[str]:
    """Yield the heading and each first failure whole."""
    if flaky:
        yield f"\n{' flaky ':=^{_WIDTH}}"
        yield "These failed, and passed when they were run again alone. Mend each, or explain its cause."
    for test, failure in flaky.items():
        yield f"{f' {test} ':_^{_WIDTH}}"
        yield f"{failure}\n"


def closing_line(outcomes: Mapping[str, str], seconds: float) -> str:
    """Return a last line as pytest's: how many of each outcome, of both layers."""
    counts = Counter(outcomes.values())
    said = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _OUTCOMES if counts[outcome]) or "no tests ran"
    return f"{f' {said} in {seconds:.2f}s ':=^{_WIDTH}}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
