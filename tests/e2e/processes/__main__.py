"""`python -m tests.e2e.processes`, as root: writes the table of processes into docs/security.md."""

import os
import sys

from tests.e2e.processes.stage import Stage
from tests.e2e.processes.table import PAGE, take_census, write


def main() -> None:
    """Run every kind of process, look at them, and write what was seen."""
    if os.geteuid() != 0:
        sys.exit("the table is that of a server of root: run this as root")
    with Stage() as stage:
        write(take_census(stage).rows())
    print(f"{PAGE} has the table of all processes")


if __name__ == "__main__":
    main()
