"""`python -P -m pliant.entry.gateway`: see `pliant.entry.gateway.launch`."""

import sys

from pliant.entry.gateway.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
