"""The routes of machines."""

from typing import Final
from urllib.parse import quote

from pliant.api.machines import MachinePage, MachinePatch, MachineView
from pliant.client.http.connection import Connection, parse
from pliant.client.http.lazy_adapter import LazyAdapter

_ROOT: Final = "/machines"
_MACHINES: Final = LazyAdapter(MachinePage)
_MACHINE: Final = LazyAdapter(MachineView)


class MachineClient:
    """The machines of a server; errors as `Client` says. They come and go with their agents."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> tuple[MachineView, ...]:
        """Return all of them, with who holds their slots."""
        return self._connection.get(_MACHINES, _ROOT).machines

    def get(self, name: str) -> MachineView:
        """Return one."""
        return self._connection.get(_MACHINE, _path(name))

    def drain(self, name: str) -> MachineView:
        """Let tasks leave one, and start none there, until it is returned."""
        return self._change(name, MachinePatch(drained=True))

    def put_back(self, name: str) -> MachineView:
        """Let tasks be started on one again."""
        return self._change(name, MachinePatch(drained=False))

    def _change(self, name: str, patch: MachinePatch) -> MachineView:
        return parse(_MACHINE, self._connection.send("PATCH", _path(name), patch, None))


def _path(name: str) -> str:
    return f"{_ROOT}/{quote(name, safe='')}"
