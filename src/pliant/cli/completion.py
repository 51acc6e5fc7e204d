"""What the shell offers for an argument or an option: names that the server knows, for who asks; none if none answers.

The client is imported when something is asked, so that pages of help and other completions do not wait for it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import typer

from pliant.cli.formatting import count_of
from pliant.cli.settings import Settings
from pliant.core.errors import PliantError
from pliant.core.lifecycle import STATE_WORDS
from pliant.core.tag import words_of_tag

_TIMEOUT_S: Final = 1.0
_NUM_JOBS: Final = 200


def _jobs_and_arrays(client: Any) -> Iterable[tuple[str, str]]:
    jobs = client.jobs(limit=_NUM_JOBS).jobs
    arrays = {job.spec.array.id: job.spec.array for job in jobs if job.spec.array is not None}
    yield from ((array.id, f"{array.name} ({array.num_jobs} jobs)") for array in arrays.values())
    yield from ((job.id, f"{job.spec.name} ({job.state.value})") for job in jobs)


def _jobs_and_searches(client: Any) -> Iterable[tuple[str, str]]:
    yield from ((one.name, f"search ({one.state.value})") for one in client.searches.list())
    yield from ((job.id, f"{job.spec.name} ({job.state.value})") for job in client.jobs(limit=_NUM_JOBS).jobs)


def _of_jobs(client: Any, what: Callable[[Any], Iterable[str]]) -> Iterable[tuple[str, str]]:
    found = Counter(name for job in client.jobs(limit=_NUM_JOBS).jobs for name in what(job))
    return ((name, count_of(number, "job")) for name, number in found.items())


Complete = Callable[[typer.Context, str], list[tuple[str, str]]]
_NAMES: Final[Mapping[str, Callable[[Any], Iterable[tuple[str, str]]]]] = MappingProxyType(
    {
        "algorithm": lambda client: ((one.name, one.kind) for one in client.algorithms.list()),
        "array": lambda client: (one for one in _jobs_and_arrays(client) if one[0].startswith("array-")),
        "data set": lambda client: ((one.name, f"{one.kind} ({one.state})") for one in client.datasets.list()),
        "endpoint": lambda client: ((one.name, one.state) for one in client.endpoints.list().endpoints),
        "environment": lambda client: ((one.name, f"{one.kind} ({one.state})") for one in client.environments.list()),
        "group": lambda client: ((one.group.name, f"{one.num_slots} slots") for one in client.groups.list()),
        "job": lambda client: (
            (one.id, f"{one.spec.name} ({one.state.value})") for one in client.jobs(limit=_NUM_JOBS).jobs
        ),
        "job or array": lambda client: _jobs_and_arrays(client),
        "machine": lambda client: ((one.name, one.state) for one in client.machines.list()),
        "model": lambda client: ((one.name, one.settings.description) for one in client.models.list().models),
        "queue": lambda client: ((one.queue.name, one.queue.policy.value) for one in client.queues.list()),
        "job or search": lambda client: _jobs_and_searches(client),
        "search": lambda client: ((one.name, one.state.value) for one in client.searches.list()),
        "job owner": lambda client: _of_jobs(client, lambda job: (job.owner,)),
        "tag": lambda client: _of_jobs(client, lambda job: (words_of_tag(*tag) for tag in job.tags.items())),
        "tag name": lambda client: _of_jobs(client, lambda job: job.tags),
        "template": lambda client: ((one.name, one.description) for one in client.templates.list().templates),
        "user": lambda client: ((one.name, one.role.value) for one in client.people.users()),
    }
)
"""What a client is asked for the names of a kind, each with what it is."""
_KIND_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "after": "job or array",
        "after_any": "job or array",
        "dataset": "data set",
        "default_environment": "environment",
        "environment": "environment",
        "queue": "queue",
        "resource_group": "group",
        "resume_from": "job",
        "shared_with": "user",
        "tags": "tag",
        "weights": "job",
    }
)
"""What the fields of nouns name."""


def complete(kind: str) -> Complete:
    """Return what completes the name of something of this kind."""

    def names(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        from pliant.cli.session import client_of

        try:
            with client_of(_settings(context), timeout_s=_TIMEOUT_S) as client:
                return [(name, what) for name, what in _NAMES[kind](client) if name.startswith(incomplete)]
        except PliantError:
            return []

    return names


def complete_states(incomplete: str) -> list[tuple[str, str]]:
    """Return what completes a state, also the last of several between commas; no server is asked."""
    before, comma, last = incomplete.rpartition(",")
    words = ((word, f"{' or '.join(states)}" if (word,) != states else "") for word, states in STATE_WORDS.items())
    return [(f"{before}{comma}{word}", what) for word, what in words if word.startswith(last)]


def complete_field(field: str) -> Complete | None:
    """Return what completes the value of a noun's field; None if it names nothing that a server knows."""
    return complete(_KIND_OF[field]) if field in _KIND_OF else None


def complete_choice(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """Return what completes one of these words."""

    def words(incomplete: str) -> list[str]:
        return [word for word in choices if word.startswith(incomplete)]

    return words


def _settings(context: typer.Context) -> Settings:
    """Return what stands before the verb: while a shell completes, no command has been called that would keep it."""
    given = context.find_root().params
    return Settings(
        home=Path(given["home"]).expanduser(), url=given.get("url"), token=given.get("token"), ca=given.get("ca")
    )
