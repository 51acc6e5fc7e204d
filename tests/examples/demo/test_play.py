"""The demo as a process: it can be stopped at any moment, and cleans up behind itself."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo.server import leftovers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def start(folder: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "examples.demo.play", "--plain", "--out", str(folder), *args]
    environment = {**os.environ, "COLUMNS": "400"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def homes(folder: Path) -> list[Path]:
    return list(folder.glob("*/home"))


def test_an_interrupt_ends_the_demo_and_all_its_processes(tmp_path: Path) -> None:
    demo = start(tmp_path)
    assert demo.stdout is not None
    first = next(line for line in demo.stdout if "A starts on one slot" in line)
    assert first
    assert leftovers(homes(tmp_path)[0]) != []

    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=120)

    assert demo.returncode == 130, said
    assert "Stopped, and everything shut down" in said
    assert leftovers(homes(tmp_path)[0]) == []
