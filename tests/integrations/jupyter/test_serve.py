"""What `pliant notebook` runs in a job says when it cannot; that it can is shown by tests/e2e/test_jupyter.py."""

import os
import subprocess
import sys
from pathlib import Path

import annotated_types

from pliant.integrations.jupyter.serve import MISSING

SOURCE = Path(__file__).parents[3] / "src"


def run(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run it with an interpreter that has no packages but the one that Pliant's values need."""
    packages = folder / "packages"
    packages.mkdir()
    (packages / "annotated_types").symlink_to(Path(annotated_types.__file__).parent)
    paths = [str(SOURCE), str(packages)]
    program = f"import sys; sys.path[:0] = {paths}\nfrom pliant.integrations.jupyter.serve import main\nmain()"
    env = {"PATH": os.defpath, "JUPYTER_RUNTIME_DIR": str(folder / "runtime"), "TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, *options],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_jupyter_it_says_where_to_install_what(tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"pliant: {MISSING}\n")
    assert "pip install 'pliant[notebook]'" in ended.stderr


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, "--idle", "soon")
    assert ended.returncode == 2
    assert "'soon' is no length of time; give one like 90s, 30m, 1h30m or 2d" in ended.stderr
