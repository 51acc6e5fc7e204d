"""Prints the table of all metrics, in Markdown.

`python -m pliant.server.monitoring.table` prints what `docs/monitoring.md` holds. A test says when it is stale.
"""

import sys
from collections.abc import Iterator

from pliant.server.monitoring.families import FAMILIES


def rows() -> Iterator[str]:
    """Yield a row for every metric."""
    yield "| metric | type | labels | |"
    yield "|---|---|---|---|"
    for family in FAMILIES:
        yield f"| `{family.name}` | {family.kind} | {', '.join(f'`{one}`' for one in family.labels)} | {family.doc} |"


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
