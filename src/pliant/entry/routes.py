"""Prints a page for auditors, in Markdown: what each route of a server needs.

`python -m pliant.entry.routes > docs/routes.md` writes the page of this repository. A test says when it is stale.
"""

import sys
from typing import Final

from pliant.ibm.rest.api import IBM
from pliant.server.app import make_routes
from pliant.server.middleware.authorisation import table_rows

_HEAD: Final = """# Routes and permissions

What a caller needs for each route of the server, Pliant's own and IBM's. [People and access](access.md#roles) says
which role has which permission. This page is generated from the declarations of the routes; after a change run
`python -m pliant.entry.routes > docs/routes.md`.
"""


def page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *table_rows(make_routes(IBM)), ""))


if __name__ == "__main__":
    sys.stdout.write(page())
