"""A program that trains nothing: it notes that it was started, in a file for every start, and ends."""

import os
import sys
from pathlib import Path

(Path(sys.argv[1]) / f"{os.environ['PLIANT_TASK_ID']}-{os.getpid()}").touch()  # there or not, however it is killed
