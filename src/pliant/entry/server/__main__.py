"""`python -m pliant.entry.server …` is the server's process, which `process.py` describes.

It takes a second to be imported. Ctrl-C in that time ends it on the spot, without a traceback.
"""

import sys

from pliant.entry.interrupt import exit_with, leaving_at_once

if __name__ == "__main__":
    with leaving_at_once():
        from pliant.entry.server.process import main
    exit_with(main(sys.argv[1:]))
