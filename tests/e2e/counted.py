"""A program that trains nothing: it notes that it was started, once for every start, and ends."""

import os
import sys
from pathlib import Path

with (Path(sys.argv[1]) / os.environ["PLIANT_TASK_ID"]).open("a") as file:
    file.write(f"{os.getpid()}\n")
