"""Prints the table of the client's methods, in Markdown, from their signatures and docstrings.

`python -m pliant.client.methods` prints what `docs/client.md` holds between its marks. A test says when it is stale.
"""

import inspect
import sys
from collections.abc import Iterator
from typing import Final

from pliant.client.api import Client
from pliant.client.nouns.algorithms import AlgorithmClient
from pliant.client.nouns.arrays import ArrayClient
from pliant.client.nouns.datasets import DatasetClient
from pliant.client.nouns.endpoints import EndpointClient
from pliant.client.nouns.environments import EnvironmentClient
from pliant.client.nouns.jobs import JobHandle
from pliant.client.nouns.machines import MachineClient
from pliant.client.nouns.models import ModelClient, TemplateClient
from pliant.client.nouns.people import PeopleClient
from pliant.client.nouns.previews import PreviewClient
from pliant.client.nouns.queues import GroupClient, QueueClient
from pliant.client.nouns.searches import SearchClient, SearchHandle

_STARS: Final[dict[object, str]] = {inspect.Parameter.VAR_KEYWORD: "**", inspect.Parameter.VAR_POSITIONAL: "*"}
PARTS: Final[dict[str, type]] = {
    "job": JobHandle,
    "search": SearchHandle,
    "client": Client,
    "client.algorithms": AlgorithmClient,
    "client.arrays": ArrayClient,
    "client.datasets": DatasetClient,
    "client.endpoints": EndpointClient,
    "client.environments": EnvironmentClient,
    "client.templates": TemplateClient,
    "client.models": ModelClient,
    "client.queues": QueueClient,
    "client.groups": GroupClient,
    "client.machines": MachineClient,
    "client.searches": SearchClient,
    "client.previews": PreviewClient,
    "client.people": PeopleClient,
}


def rows() -> Iterator[str]:
    """Yield a row for every public method."""
    yield "| method | |"
    yield "|---|---|"
    for part, kind in PARTS.items():
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                yield f"| `{part}.{name}{_arguments(member)}` | {_sentence(member)} |"


def _arguments(member: object) -> str:
    if isinstance(member, property) or not callable(member):
        return ""
    shown = []
    for parameter in inspect.signature(member).parameters.values():
        if parameter.name == "self":
            continue
        stars = _STARS.get(parameter.kind, "")
        keyword = parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
        shown.append(f"{stars}{parameter.name}{'=' if keyword and not stars else ''}")
    return f"({', '.join(shown)})"


def _sentence(member: object) -> str:
    first = (inspect.getdoc(member) or "").partition("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write("\n".join(rows()) + "\n")
