"""`python -m pliant.entry.server …` is the server's process, which `process.py` describes.

It takes a second to be imported. Ctrl-C in that time ends it on the spot, without a traceback.
"""

import gc
import sys

from pliant.entry.interrupt import exit_with, leaving_at_once

if __name__ == "__main__":
    with leaving_at_once():
        gc.disable()  # next to nothing of what modules make is garbage; to look for it takes a tenth of the time
        from pliant.entry.server.process import main

        gc.freeze()  # the collections of its start have less to look through
        gc.enable()
    exit_with(main(sys.argv[1:]))
