"""A process of a fixed job that writes what it sees of the server's credentials: its own variables, and others'."""

import os
import sys
from contextlib import suppress
from pathlib import Path

found = sorted(f"own:{name}" for name in os.environ if name.startswith("AWS_"))
for process in Path("/proc").iterdir():
    with suppress(OSError):
        if sys.argv[1].encode() in (process / "environ").read_bytes():
            found.append(f"of {process.name}")
(Path(os.environ["RESULT_DIR"]) / "seen.txt").write_text("\n".join(found))
