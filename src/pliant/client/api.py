"""The client: one method per route of the REST API, nouns in and nouns out, errors as `pliant.core.errors`."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import httpx

from pliant.api.trust import Trust
from pliant.client.http.connection import Connection, parse
from pliant.client.http.home import read_record, read_token
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.session import choose, refuse_clear_text, server_of, token_of
from pliant.client.nouns.backup import fetch_backup
from pliant.client.nouns.jobs import JobClient
from pliant.client.nouns.late_noun import LateNoun
from pliant.core.errors import Unavailable

if TYPE_CHECKING:
    from pliant.api.overview import Overview
    from pliant.api.pool import ClusterView, UsagePage
    from pliant.api.upkeep import RetentionRequest, RetentionView
    from pliant.client.nouns.algorithms import AlgorithmClient
    from pliant.client.nouns.arrays import ArrayClient
    from pliant.client.nouns.datasets import DatasetClient
    from pliant.client.nouns.endpoints import EndpointClient
    from pliant.client.nouns.environments import EnvironmentClient
    from pliant.client.nouns.machines import MachineClient
    from pliant.client.nouns.models import ModelClient, TemplateClient
    from pliant.client.nouns.people import PeopleClient
    from pliant.client.nouns.previews import PreviewClient
    from pliant.client.nouns.queues import GroupClient, QueueClient
    from pliant.client.nouns.searches import GivenParameter, SearchClient, SearchHandle
    from pliant.core.upkeep import Sweep

_CLEAN_UP_TIMEOUT_S: Final = 300.0
"""A clean-up walks over all that jobs have left."""

_RETENTION: "Final[LazyAdapter[RetentionView]]" = LazyAdapter("pliant.api.upkeep:RetentionView")
_SWEEP: "Final[LazyAdapter[Sweep]]" = LazyAdapter("pliant.core.upkeep:Sweep")
_USAGE_PAGE: "Final[LazyAdapter[UsagePage]]" = LazyAdapter("pliant.api.pool:UsagePage")
_OVERVIEW: "Final[LazyAdapter[Overview]]" = LazyAdapter("pliant.api.overview:Overview")
_CLUSTER: "Final[LazyAdapter[ClusterView]]" = LazyAdapter("pliant.api.pool:ClusterView")


class Client(JobClient):
    """Talks to one Pliant server. Safe to share between threads.

    Every method raises `Unavailable` if the server does not answer, `Unauthorized` if the token does not open it,
    `NotFound` for an unknown job, `InvalidInput` with all problems, `Conflict` and `TooLarge`.

    Example:
        >>> with Client.connect() as client:
        ...     job = client.submit("train.py", max_tasks=8, args=["--epochs", "20"])
        ...     print(job.wait().state)
    """

    algorithms: "LateNoun[AlgorithmClient]" = LateNoun("algorithms:AlgorithmClient")
    arrays: "LateNoun[ArrayClient]" = LateNoun("arrays:ArrayClient")
    datasets: "LateNoun[DatasetClient]" = LateNoun("datasets:DatasetClient")
    people: "LateNoun[PeopleClient]" = LateNoun("people:PeopleClient")
    endpoints: "LateNoun[EndpointClient]" = LateNoun("endpoints:EndpointClient")
    environments: "LateNoun[EnvironmentClient]" = LateNoun("environments:EnvironmentClient")
    templates: "LateNoun[TemplateClient]" = LateNoun("models:TemplateClient")
    models: "LateNoun[ModelClient]" = LateNoun("models:ModelClient")
    queues: "LateNoun[QueueClient]" = LateNoun("queues:QueueClient")
    machines: "LateNoun[MachineClient]" = LateNoun("machines:MachineClient")
    groups: "LateNoun[GroupClient]" = LateNoun("queues:GroupClient")
    searches: "LateNoun[SearchClient]" = LateNoun("searches:SearchClient")
    previews: "LateNoun[PreviewClient]" = LateNoun("previews:PreviewClient")

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout_s: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        trust: Trust | None = None,
    ) -> None:
        """Prepare to talk to the server at `url`; nothing is sent yet. Without a token we can only log on.

        Raises:
            InvalidInput: the URL, the token or the certificate cannot be one.
        """
        super().__init__(Connection(url, token, timeout_s, transport, trust))

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        *,
        token: str | None = None,
        ca: Path | str | None = None,
        home: Path | str | None = None,
        timeout_s: float = 30.0,
    ) -> Self:
        """Return a client of the server that a command would speak to, as whom it would.

        What is left out comes from `PLIANT_URL`, `PLIANT_TOKEN`, `PLIANT_CA` and `PLIANT_HOME`; then from what
        `pliant login` has kept; then from the server that runs on this machine (`~/.pliant`).

        Args:
            url: where the server is.
            token: a personal token (`pliant tokens add`), or that of a session.
            ca: the server's certificate, or its authority's (PEM), if this machine does not trust it anyway.
            home: the state folder of a server on this machine.
            timeout_s: how long to wait for an answer, in seconds.

        Raises:
            Unavailable: no server runs for the home folder.
            Unauthorized: nobody is logged in there.
        """
        chosen = choose(os.environ, url=url, token=token, ca=ca, home=home)
        server = server_of(chosen)
        return cls(server.url, token_of(chosen, server), timeout_s=timeout_s, trust=server.trust)

    @classmethod
    def log_in(
        cls, name: str, password: str, url: str | None = None, *, ca: Path | str | None = None, timeout_s: float = 30.0
    ) -> Self:
        """Return a client with a session of its own, which `client.people.log_off()` ends; eight hours at most.

        Nothing is kept on this machine. `url` and `ca` are as for `connect`.

        Raises:
            InvalidInput: the password would pass over the network in the clear.
            Unauthorized: name or password is wrong.
            TooMany: wrong too often; `wait_s` says how long to wait.
        """
        server = server_of(choose(os.environ, url=url, ca=ca, token=None, home=None))
        refuse_clear_text(server.url)
        with cls(server.url, None, timeout_s=timeout_s, trust=server.trust) as stranger:
            token = stranger.people.log_on(name, password).token
        return cls(server.url, token, timeout_s=timeout_s, trust=server.trust)

    @classmethod
    def from_home(cls, home: Path, *, timeout_s: float = 30.0) -> Self:
        """Return a client of the server that runs for this home folder.

        Raises:
            Unavailable: none runs.
        """
        record = read_record(home)
        return cls(record.url, read_token(home), timeout_s=timeout_s, trust=record.trust)

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._connection.url

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tune(
        self,
        code: Path | str,
        *,
        parameters: "Mapping[str, GivenParameter]",
        metric: str | None = None,
        direction: Literal["minimize", "maximize"] | None = None,
        max_trials: int | None = None,
        **options: Any,
    ) -> "SearchHandle":
        """Pack a folder or a single file, upload it and search for the best values of a script's parameters.

        Args:
            code: a folder of code, or one Python file, as for `submit`.
            parameters: what may be chosen, by name: `"log:1e-5..1e-1"`, `"choice:relu,gelu"`, or a `SearchParameter`.
            metric: what the script reports that is made small or large: `"val_loss"`, or `"val_loss:min"` where its
                lowest value counts and not its last. Of several metrics give `objectives` instead.
            direction: minimize, if left out.
            max_trials: begin so many trials at most.
            options: the fields of `SearchRequest`, among them those of a job: `max_tasks=8`, `parallel=4`,
                `sampler={"name": "gp"}`, `halving="1..27:3"`, `population="8:3..27"`, `constraints=["memory_gb<=8"]`.
                Without `name` it is called like the script.

        Returns:
            A handle on the search: `search.wait()`, `search.best()`, `search.trials()`.

        Raises:
            InvalidInput: with everything that is wrong.
            Conflict: there is a search of this name.
        """
        from pliant.client.nouns.searches import SearchHandle, search_request  # who only submits does without

        folder = Path(code).expanduser()
        given = {"parameters": parameters, "metric": metric, "direction": direction, "max_trials": max_trials}
        request = search_request(folder, self.searches, {**given, **options})
        return SearchHandle(self.searches, self.searches.submit(folder, request))

    def retention(self) -> "RetentionView":
        """Return how long what ended jobs left is kept."""
        return self._connection.get(_RETENTION, "/retention")

    def set_retention(self, rules: "RetentionRequest", *, revision: int | None = None) -> "RetentionView":
        """Replace the rules.

        Raises:
            Stale: they are not at this revision any more.
        """
        return parse(_RETENTION, self._connection.send("PUT", "/retention", rules, revision))

    def clean_up(self, *, dry_run: bool) -> "Sweep":
        """Remove what the rules remove, or only tell what that would be."""
        response = self._connection.call(
            "POST",
            "/cleanup",
            params={"dry_run": dry_run},
            timeout_s=max(_CLEAN_UP_TIMEOUT_S, self._connection.timeout_s),
        )
        return parse(_SWEEP, response)

    def backup(self, to: Path, *, results: bool = True, data: bool = True) -> Path:
        """Write a backup of all that the server holds to a new file of mode 600, whole or not at all.

        Raises:
            Conflict: the file exists.
            Unavailable: the server did not finish it, or the disk is full.
        """
        return fetch_backup(self._connection, to, results=results, data=data)

    def usage(self, *, since: float = 0.0, job_id: str | None = None) -> "UsagePage":
        """Return how many slots jobs held over time."""
        return self._connection.get(_USAGE_PAGE, "/usage", {"since": since, "job_id": job_id})

    def overview(self) -> "Overview":
        """Return what runs, what waits and why, the newest events and the machines, in one answer."""
        return self._connection.get(_OVERVIEW, "/overview")

    def cluster(self) -> "ClusterView":
        """Return the pool of slots and who holds them."""
        return self._connection.get(_CLUSTER, "/cluster")

    def shutdown(self) -> None:
        """Ask the server to drain its tasks and end; returns at once."""
        self._connection.call("POST", "/shutdown")

    def healthy(self) -> bool:
        """Tell whether the server answers and its loop runs."""
        try:
            self._connection.call("GET", "/healthz", timeout_s=min(5.0, self._connection.timeout_s))
        except Unavailable:
            return False
        return True
