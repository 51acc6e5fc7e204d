"""Waits until it is told of a shell beside it, and lays hands on that."""

import os
import runpy
import sys
import time
from pathlib import Path

told = Path(os.environ["RESULT_DIR"]) / "told.json"
while not told.exists():
    time.sleep(0.05)  # between two looks
sys.argv = ["beside.py", told.read_text()]
runpy.run_path(str(Path(__file__).with_name("beside.py")))
