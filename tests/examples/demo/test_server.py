"""The demo finds the processes that its server left behind."""

import os
import subprocess
import sys
from pathlib import Path

from examples.demo.server import leftovers


def test_a_process_on_the_state_folder_is_found_and_no_other(tmp_path: Path) -> None:
    program = "import sys; print('up', flush=True); sys.stdin.read()"
    homes = [tmp_path / "home", tmp_path / "home-of-another"]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "PLIANT_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for home in homes
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()

        assert leftovers(homes[0]) == [started[0].pid]
    finally:
        for process in started:
            process.communicate(timeout=30)
    assert leftovers(homes[0]) == []
