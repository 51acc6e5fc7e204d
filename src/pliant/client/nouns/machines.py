"""The routes of machines."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from pliant.api.machines import (
    ExcludeRequest,
    IncludeRequest,
    JoinTokenPage,
    JoinTokenRequest,
    JoinTokenView,
    LabelsRequest,
    MachinePage,
    MachinePatch,
    MachineView,
    MadeJoinToken,
)
from pliant.api.request import Request
from pliant.client.http.connection import Connection, parse
from pliant.client.http.lazy_adapter import LazyAdapter

_ROOT: Final = "/machines"
_MACHINES: Final = LazyAdapter(MachinePage)
_MACHINE: Final = LazyAdapter(MachineView)
_TOKENS: Final = LazyAdapter(JoinTokenPage)
_MADE: Final = LazyAdapter(MadeJoinToken)


class MachineClient:
    """The machines of a server; errors as `Client` says. They come and go with their agents."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> tuple[MachineView, ...]:
        """Return all of them, with who holds their slots."""
        return self.page().machines

    def page(self) -> MachinePage:
        """Return all of them, and whether others can join."""
        return self._connection.get(_MACHINES, _ROOT)

    def get(self, name: str) -> MachineView:
        """Return one."""
        return self._connection.get(_MACHINE, _path(name))

    def drain(self, name: str) -> MachineView:
        """Let tasks leave one, and start none there, until it is returned."""
        return self._change(name, MachinePatch(drained=True))

    def put_back(self, name: str) -> MachineView:
        """Let tasks be started on one again."""
        return self._change(name, MachinePatch(drained=False))

    def exclude(self, name: str, because: str, slots: Sequence[int] | None = None) -> MachineView:
        """Take slots of one, or all of it, out of use until they are included again; say why."""
        body = ExcludeRequest(slots=None if slots is None else tuple(slots), because=because)
        return self._ask(f"{_path(name)}/exclude", body)

    def include(self, name: str, slots: Sequence[int] | None = None) -> MachineView:
        """Let tasks be started again on slots of one, or on all of it."""
        return self._ask(f"{_path(name)}/include", IncludeRequest(slots=None if slots is None else tuple(slots)))

    def label(self, name: str, labels: Mapping[str, str]) -> MachineView:
        """Give one these labels, in place of all that people gave it; an empty value hides one that it declares."""
        body = LabelsRequest(labels=dict(labels))
        return parse(_MACHINE, self._connection.send("PUT", f"{_path(name)}/labels", body, None))

    def remove(self, name: str) -> None:
        """Forget one that has joined, and is away or drained; to come back it has to join again."""
        self._connection.call("DELETE", _path(name))

    def tokens(self) -> tuple[JoinTokenView, ...]:
        """Return the tokens with which machines can join, newest first; never their text."""
        return self._connection.get(_TOKENS, f"{_ROOT}/tokens").tokens

    def make_token(self, request: JoinTokenRequest | None = None) -> MadeJoinToken:
        """Make a token with which a machine joins; its text is in this answer only."""
        return parse(_MADE, self._connection.send("POST", f"{_ROOT}/tokens", request or JoinTokenRequest(), None))

    def revoke_token(self, token_id: str) -> None:
        """Make a join token worthless at once; machines that have joined with it stay."""
        self._connection.call("DELETE", f"{_ROOT}/tokens/{quote(token_id, safe='')}")

    def _change(self, name: str, patch: MachinePatch) -> MachineView:
        return parse(_MACHINE, self._connection.send("PATCH", _path(name), patch, None))

    def _ask(self, path: str, body: Request) -> MachineView:
        return parse(_MACHINE, self._connection.send("POST", path, body, None))


def _path(name: str) -> str:
    return f"{_ROOT}/{quote(name, safe='')}"
