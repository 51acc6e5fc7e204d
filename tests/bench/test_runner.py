"""`make bench` runs what is there, and says what is not."""

import subprocess
import sys

import pytest

from bench.__main__ import main, names


def test_an_unknown_benchmark_is_refused_with_the_names_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2

    assert "no benchmark named nonsense; there are: " in capsys.readouterr().err


@pytest.mark.parametrize("name", names())
def test_every_benchmark_takes_the_file_to_write_its_report_to(name: str) -> None:
    said = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", "--help"], capture_output=True, text=True, timeout=50, check=True
    )

    assert "--out" in said.stdout
