"""The routes of environments."""

from collections.abc import Sequence
from typing import Final

from pliant.api.environments import EnvironmentPage, EnvironmentRequest, EnvironmentShares
from pliant.client.http.connection import parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.pages import pages
from pliant.client.nouns.noun import NounClient
from pliant.core.environment import EnvironmentView

_PAGE: Final = 1000
_VIEWS: Final = LazyAdapter(EnvironmentPage)


class EnvironmentClient(NounClient[EnvironmentView]):
    """The environments of a server; errors as `Client` says."""

    _root = "/environments"
    _view = LazyAdapter(EnvironmentView)

    def list(self) -> tuple[EnvironmentView, ...]:
        """Return all that we may use, in the order of their names."""
        asked = pages(lambda after: self._connection.get(_VIEWS, self._root, {"after": after, "limit": _PAGE}))
        return tuple(view for page in asked for view in page.environments)

    def add(self, request: EnvironmentRequest) -> EnvironmentView:
        """Register one; the server begins to build or to try it."""
        return self._send("POST", self._root, request)

    def share(self, name: str, shared_with: Sequence[str]) -> EnvironmentView:
        """Let these people use it, and nobody else."""
        body = EnvironmentShares(shared_with=tuple(shared_with))
        return self._send("PUT", f"{self._path(name)}/shares", body)

    def rebuild(self, name: str) -> EnvironmentView:
        """Build or try it anew."""
        return parse(self._view, self._connection.call("POST", f"{self._path(name)}/rebuild"))

    def log(self, name: str) -> str:
        """Return what the builder printed."""
        return self._connection.call("GET", f"{self._path(name)}/log").text
