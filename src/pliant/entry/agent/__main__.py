"""`python -P -m pliant.entry.agent …` is the agent's process, which `process.py` describes.

A machine that joins is used when its agent is there, so that what it imports counts.
"""

import gc
import sys

from pliant.entry.interrupt import leaving_at_once

if __name__ == "__main__":
    with leaving_at_once():
        gc.disable()  # next to nothing of what modules make is garbage; to look for it takes a tenth of the time
        from pliant.entry.agent.process import main

        gc.freeze()
        gc.enable()
    sys.exit(main(sys.argv[1:]))
