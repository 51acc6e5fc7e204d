"""A full disk stops no script that prints; the kernel refuses the same writes here through a limit on file sizes."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import resource, sys
from pliant.entry.output import survive_full_disk
survive_full_disk()
print("before")
resource.setrlimit(resource.RLIMIT_FSIZE, (7, resource.RLIM_INFINITY))
print("lost")
print("lost too", file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("after")
"""


def test_what_finds_no_room_is_dropped_and_the_rest_is_there(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    err.write_text("1234567")
    with out.open("a") as stdout, err.open("a") as stderr:
        code = subprocess.run([sys.executable, "-c", SCRIPT], stdout=stdout, stderr=stderr, timeout=60).returncode
    assert (code, out.read_text(), err.read_text()) == (0, "before\nafter\n", "1234567")


def test_other_errors_are_raised() -> None:
    broken = [*SCRIPT.splitlines()[1:4], "import os", "os.close(1)", "print('to nobody')"]
    done = subprocess.run([sys.executable, "-c", "\n".join(broken)], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "Bad file descriptor" in done.stderr
