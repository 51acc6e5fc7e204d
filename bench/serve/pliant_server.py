"""A Pliant server of a benchmark's own, with endpoints that models of the scripts are deployed to."""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from bench.peers.server import Server, until
from bench.serve.load import Target
from bench.serve.payload import CNN, ECHO
from bench.serve.place import SCRIPTS, Place
from bench.serve.scripts import pliant_model
from pliant.api.endpoints import EndpointView, VersionView
from pliant.client import Client

LIMIT_S = 60.0


class PliantServer:
    """`pliant up`, with its gateway and kernels, on the cores of the servers; its end is that of the context."""

    def __init__(self, place: Place, *, slots: int = 4, options: tuple[str, ...] = ()) -> None:
        self._place = place
        with place.as_server():
            self._server = Server(place.folder, place.processes, slots=slots, options=options)
        self.token = (self._server.home / "token").read_text().strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    @property
    def client(self) -> Client:
        """Drives it."""
        return self._server.client

    def deploy(self, name: str, source: str, **settings: Any) -> EndpointView:
        """Deploy a model's source and wait until it serves."""
        folder = self._place.folder / f"model-{name}"
        folder.mkdir(exist_ok=True)
        (folder / "serve.py").write_text(source)
        (folder / "net.py").write_text((SCRIPTS / "net.py").read_text())
        self.client.endpoints.deploy(name, folder, **settings)
        view = self.client.endpoints.wait(name, timeout_s=LIMIT_S, poll_s=0.05)
        if view.state not in ("serving", "idle"):
            raise RuntimeError(f"{name} is {view.state}: {view.reason}")
        return view

    def deploy_usual(self, name: str) -> EndpointView:
        """Deploy the echo or the CNN with one kernel, no more and no less."""
        source = {ECHO: pliant_model.ECHO, CNN: pliant_model.CNN}[name]
        more = {"latency_objective_s": 0.05} if name == CNN else {}
        self.deploy(name, source, kernel_min=1, kernel_max=1, **more)
        until(lambda: self.version(name).num_ready == 1, f"a kernel of {name} is ready", LIMIT_S)
        return self.client.endpoints.get(name)

    def version(self, name: str) -> VersionView:
        """Return the newest version of an endpoint as it is now."""
        return self.client.endpoints.get(name).versions[-1]

    def raw_target(self, view: EndpointView) -> Target:
        """Return a small question to an endpoint over IBM's route."""
        path = f"/dlim/v1/inference/{view.name}"
        return Target(port=port_of(view.http_url), path=path, token=self.token, body=b'{"value": 1}')

    def gateways(self) -> tuple[int, ...]:
        """Return the processes that answer, and the one that keeps them if they are several."""
        first = int(json.loads((self._server.home / "gateway" / "gateway.json").read_text())["pid"])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return (first, *map(int, children))

    def write_script(self, text: str) -> Path:
        """Return a file that holds a training script."""
        path = self._place.folder / "training.py"
        path.write_text(text)
        return path


def port_of(address: str | None) -> int:
    """Return the port of an address that the server tells."""
    if address is None:
        raise RuntimeError("no gateway runs")
    return int(urlsplit(address if "//" in address else f"//{address}").port or 0)
