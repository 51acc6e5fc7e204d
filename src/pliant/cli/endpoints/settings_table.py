"""Prints the table of what can be said of an endpoint and a version, in Markdown, from the nouns and the options.

`python -m pliant.cli.endpoints.settings_table` prints what `docs/endpoints.md` holds. A test says when it is stale.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import MISSING

from pliant.api.derive import Settable, settable
from pliant.cli.endpoints.asked import OF_DEPLOYMENT
from pliant.core.endpoint import EndpointSettings, VersionSettings


def rows() -> Iterator[str]:
    """Yield a row for every field."""
    yield "| field | option | default | |"
    yield "|---|---|---|---|"
    for noun in (EndpointSettings, VersionSettings):
        for one in settable(noun):
            option = OF_DEPLOYMENT[one.name]
            doc = " ".join((one.doc or option.help).split()).replace("|", "\\|")
            yield f"| `{one.name}` | `{option.name}` | {_default(one)} | {doc} |"


def _default(one: Settable) -> str:
    if one.field.default is MISSING or one.field.default in (None, "", ()):
        return ""
    return "`" + json.dumps(one.field.default).strip('"') + "`"


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
