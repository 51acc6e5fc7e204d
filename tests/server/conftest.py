"""A real server on a free loopback port, over the real store and a simulated cluster, and real clients."""

import asyncio
import io
import json
import os
import secrets
import socket
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from tests.databases import new_sqlite
from tests.link_proofs import new_proof
from tests.plain_http import NO_TLS
from tests.tune.searches.world import InlineAsker

from pliant.api.link import MAX_FRAME_BYTES
from pliant.api.serving_link import gateway_key
from pliant.catalog.datasets.imports import ImportSettings
from pliant.catalog.datasets.uploads import UploadLimits
from pliant.catalog.datasets.use_cases import make_datasets
from pliant.control.jobs.inputs import JobInputs
from pliant.control.jobs.orders import job_token
from pliant.control.loop.tick import Control
from pliant.control.requests.sharing import sharing_of
from pliant.control.settings import ControlSettings
from pliant.control.upkeep.backup import Backup
from pliant.control.upkeep.cleanup import Upkeep
from pliant.core.access import Role
from pliant.core.endpoint import VersionState
from pliant.core.job import JobId, NodeId
from pliant.core.people import TokenSettings, UserSettings
from pliant.core.plan import NodeView, Policy
from pliant.core.ports import Cluster, Links
from pliant.core.serving import KernelReady
from pliant.entry.own_environment import base_environment
from pliant.entry.server.http.connections import ConnectionCounts
from pliant.entry.server.http.limits import HttpLimits
from pliant.entry.server.http.sockets import CountingSocket
from pliant.entry.server.listener import Listener
from pliant.entry.server.notices import NoticeRules
from pliant.entry.server.rooms.algorithms import open_algorithms
from pliant.entry.server.rooms.children import ConfinedChildren
from pliant.entry.server.rooms.datasets import IMPORTER
from pliant.entry.server.rooms.environments import open_environments
from pliant.entry.server.rooms.notices import open_notices
from pliant.ibm.rest.api import IBM
from pliant.isolation.variables import allowed
from pliant.notices.addresses import read_allowed
from pliant.people.attempts import FORGOTTEN_S
from pliant.people.passwords import Cost
from pliant.people.people import make_people
from pliant.people.user import User
from pliant.server.app import make_app
from pliant.server.context import Context
from pliant.server.endpoint_jobs import make_endpoints
from pliant.server.endpoint_requests import EndpointRequests
from pliant.server.endpoint_views import ShownEndpoints
from pliant.server.event_signal import EventSignal
from pliant.server.gateways import GatewayHub, KnownGateway, ServingListener
from pliant.server.links import LinkHub
from pliant.server.model_jobs import make_models
from pliant.server.search_jobs import make_searches
from pliant.server.site import Site
from pliant.server.tunnels import TunnelHub
from pliant.sim.clock import VirtualClock
from pliant.sim.cluster import SimCluster
from pliant.store.sql import SqlStore
from pliant.tune.advice import Adviser, AdviserInput
from pliant.tune.adviser.optuna_adviser import OptunaAdviser
from pliant.tune.searches.ports import AdviserSource

TOKEN = "the-token"
SECRET = b"s" * 32
KNOWN_GATEWAYS = {
    name: KnownGateway(number=number, key=gateway_key(SECRET))
    for number, name in ((0, "local"), (1, "local-1"), (4, "local-4"), (5, "local-5"))
}
KNOWN_ELSEWHERE = {
    f"{machine}-{number}": KnownGateway(number=number, machine=machine, key=gateway_key(SECRET, machine))
    for number, machine in ((2, "gpu3"), (3, "gpu4"), (6, "gpu3"))
}
CHEAP = Cost(num_passes=1, memory_kib=8, num_lanes=1)
"""Hashes of passwords that take no time."""
PATIENT = HttpLimits(idle_s=60.0, head_s=60.0, body_window_s=60.0)
"""A test that is held up for ten seconds still has its connection."""
PASSWORD = "correct horse"
NOTICES = NoticeRules(allowed=(read_allowed("127.0.0.0/8"),))


class Served:
    """A server, and what tests need to reach it and to move it on."""

    def __init__(
        self,
        home: Path,
        links_of: Callable[[], Links] | None = None,
        serving: ServingListener | None = None,
        site: Site | None = None,
    ) -> None:
        """Serve from this folder; `links_of` makes other ends of the control links, for tasks that are played.

        `serving` takes what gateways say; `site` says where browsers find the server, but for its port.
        """
        self.home = home
        (home / "uploads").mkdir()
        self.clock = VirtualClock(1000.0)
        self.cluster = SimCluster(self.clock, [NodeView(id=NodeId("local"), slots=(0, 1, 2, 3))])
        self.store = SqlStore(new_sqlite(home), now=self.clock.now)
        self.links, self.tunnels, self.event_signal = LinkHub(), TunnelHub(), EventSignal()
        self.gateways = GatewayHub(KNOWN_GATEWAYS, "", self.clock, KNOWN_ELSEWHERE.get)
        self.num_shutdowns = 0
        self.trouble = ""
        cluster: Cluster = self.cluster
        settings = ControlSettings(
            home=home,
            url="http://test",
            secret=SECRET,
            policy=Policy(cooldown_s=0.0),
            open_folders=(home / "data", home / "trainings"),
        )
        self.people = make_people(
            self.store.registry, self.clock, file_token=TOKEN, token_hex=secrets.token_hex, cost=CHEAP
        )
        self._rooms = ExitStack()
        children = ConfinedChildren(
            home=home, env=allowed(os.environ), reads=base_environment().site, user_of=lambda _: None
        )
        self.environments = self._rooms.enter_context(
            open_environments(self.store.registry, self.clock, home, os.environ, self.people, children)
        )
        self.datasets = make_datasets(
            self.store.registry,
            ImportSettings(folder=home / "datasets", data_root=home / "data", command=IMPORTER, isolation=children),
            uploads=home / "incoming",
            limits=UploadLimits(max_bytes=1 << 20, max_chunk_bytes=1 << 16, max_open=3),
            now=self.clock.now,
            users=lambda name: self.control.queries.users_of(name),
        )
        (home / "data").mkdir()
        self.datasets.start()
        self.notices = open_notices(
            self.store, self.clock, home, NOTICES, url="http://test", notify=self.event_signal.notify
        )
        self.control = Control(
            store=self.store,
            cluster=cluster,
            links=self.links if links_of is None else links_of(),
            clock=self.clock,
            settings=settings,
            inputs=JobInputs(preparations=self.environments, data=self.datasets, notices=self.notices.keeper),
        )
        self.control.subscribe(self.notices.sender.wake)
        self.notices.sender.start()
        self.environments.watch(self.control.wake)
        self.control.start()
        self.sharing = sharing_of(self.store.registry, self.clock, self.people.authenticator.has_user)
        self.room = make_endpoints(
            self.store.registry,
            self.clock,
            self.control,
            self.sharing,
            self.people.authenticator.has_user,
            show=self.gateways.send_serve,
            need_gateway=lambda: None,
        )
        self.algorithms = open_algorithms(
            self.store.registry,
            self.clock,
            home,
            self.environments,
            children,
            self.people.authenticator.has_user,
            lambda: self.searches.hold_unended(),
        )
        self.searches = make_searches(
            self.store.searches,
            self.clock,
            self.control,
            self.people.authenticator.has_user,
            advisers=AdviserSource(open=self._open_adviser, algorithms=self.algorithms.requests),
            new_name=lambda: f"search-{self.store.next_id('search')}",
            run_asker=InlineAsker,
        )
        self.algorithms.start([])
        self._listener = CountingSocket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._listener.counts = ConnectionCounts(PATIENT)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        context = Context(
            control=self.control,
            datasets=self.datasets,
            people=self.people,
            sharing=self.sharing,
            models=make_models(
                self.store.registry, self.clock, self.control, self.sharing, self.people.authenticator.has_user
            ),
            registry=self.store.registry,
            audit=self.store.audit,
            clock=self.clock,
            event_signal=self.event_signal,
            links=self.links,
            tunnels=self.tunnels,
            gateways=self.gateways,
            serving=serving,
            environments=self.environments,
            algorithms=self.algorithms.requests,
            upkeep=Upkeep(
                store=self.store,
                records=self.store.records,
                clock=self.clock,
                settings=settings,
                notify=self.event_signal.notify,
            ),
            backup=Backup(dumps=self.store.records, home=home, clock=self.clock),
            uploads=home / "uploads",
            frameworks=home / "frameworks",
            children=children,
            shut_down=self._shut_down,
            trouble=lambda: self.trouble,
            endpoints=self.shown_endpoints(),
            searches=self.searches.requests,
        )
        self.site = replace(site or Site(), port=self._listener.getsockname()[1])
        self.app = make_app(context, IBM, site=self.site)
        config = Listener(sock=self._listener, tls=None).config(
            self.app,
            ws_max_size=MAX_FRAME_BYTES,
            timeout_graceful_shutdown=5,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve(sockets=[self._listener])), daemon=True
        )
        self._thread.start()
        wait_for(lambda: self._server.started)
        self.http = httpx.Client(
            base_url=f"http://{self.address}/v1",
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=30,
            verify=NO_TLS,
        )

    def _open_adviser(self, opening: AdviserInput) -> Adviser:
        if opening.algorithm is None:
            return OptunaAdviser(opening)
        return self.algorithms.open_adviser(opening, opening.algorithm)

    def shown_endpoints(self) -> EndpointRequests:
        """Return the use cases of endpoints that the routes get."""
        return ShownEndpoints(self.room.catalog, self.control.kernels.statuses, tuple)

    def load_model(self, name: str, metadata: Mapping[str, object] | None = None) -> None:
        """Let the newest version of an endpoint start a kernel that loads its model."""
        self.room.keeper.look()
        for _ in range(3):  # those of other versions leave first
            self.tick()
        (kept,) = [one for one in self.room.catalog.all() if one.noun.name == name]
        newest = [one for one in kept.noun.versions if one.state is VersionState.STARTING][-1]
        assert newest.job_id is not None
        for task in self.control.kernels.statuses()[newest.job_id].kernels:
            self.control.kernels.kernel_ready(KernelReady(task_id=task.id, metadata=metadata or {}))
        self.room.keeper.look()

    def add_user(self, name: str, role: Role = Role.USER) -> None:
        """Make a user with the password `PASSWORD`."""
        self.people.accounts.add(UserSettings(name=name, role=role), PASSWORD)

    def client(self, headers: Mapping[str, str] | None = None) -> httpx.Client:
        """Return a client that shows what is in these headers only."""
        return httpx.Client(base_url=f"http://{self.address}/v1", headers=headers, timeout=30, verify=NO_TLS)

    def client_of(self, name: str, role: Role = Role.USER) -> httpx.Client:
        """Return a client of a user, who is made if need be, with a personal token of theirs."""
        if self.people.accounts.find(name) is None:
            self.add_user(name, role)
        token = self.people.credentials.make_token(name, TokenSettings(label="test")).text
        client = self.client({"Authorization": f"Bearer {token}"})
        if role in (Role.USER, Role.VIEWER):
            client.event_hooks = {"response": [self._see_that_no_place_is_told]}
        return client

    def _see_that_no_place_is_told(self, answer: httpx.Response) -> None:
        """See that an answer in JSON, whichever test asks, tells people nothing of where the server's files lie."""
        if "json" in answer.headers.get("content-type", ""):
            assert str(self.home) not in answer.read().decode(), f"{answer.request.url}: {answer.text}"

    def forget_people(self) -> None:
        """Remove all users with what they hold, and let failures to log on be forgotten."""
        for kept in self.people.accounts.page("", 1000):
            name = kept.noun.name
            self.store.registry.remove(User, name)
            self.people.credentials.end_sessions(name)
            self.people.credentials.revoke_tokens(name)
        self.clock.advance(FORGOTTEN_S)

    def _shut_down(self) -> None:
        self.num_shutdowns += 1

    def tick(self, seconds: float = 0.01) -> None:
        """Let time pass in small steps, as it does while the links are read: a jump is a server that was stopped."""
        self.control.tick()
        until = self.clock.now() + seconds
        while (left := until - self.clock.now()) > 0:
            self.clock.advance(min(left, 0.25))
            self.control.note_listening()
            self.control.tick()

    def submit(self, files: Mapping[str, str] | None = None, **job: object) -> httpx.Response:
        body = {"script": "train.py"} | job
        archive = packed(files if files is not None else {"train.py": "import pliant.train\n"})
        return self.http.post("/jobs", files={"job": (None, json.dumps(body)), "code": ("c.tar.gz", archive)})

    def link_url(self, task_id: str) -> str:
        return f"ws://{self.address}/v1/link?task={task_id}"

    def link_headers(self, job_id: str, task_id: str | None = None) -> dict[str, str]:
        """Return what a task sends that holds this job's token; it says to be the job's first one, or another."""
        proof = new_proof(task_id or f"{job_id}.1", "")
        return {"Authorization": proof.authorization(job_token(SECRET, JobId(job_id)))}

    def close(self) -> None:
        self._server.should_exit = True  # it looks every 0.1 s
        self.http.close()
        self.event_signal.close()
        self.tunnels.close_all()
        self.gateways.close_all()
        self.links.close_all()
        self.notices.sender.close(30.0)
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._listener.close()
        self.datasets.close()
        self._rooms.close()
        self.store.close()


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Return what the condition returns soon after that is true; fail after the deadline.

    What takes long is looked at more rarely: a look costs the server as much of the processor as what is waited for.
    """
    deadline = time.monotonic() + seconds
    pause_s = 0.005
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(pause_s)
        pause_s = min(1.3 * pause_s, 0.1)
    return found


def packed(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.close()


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for all tests of a file, which leave nothing behind that would disturb the next one."""
    home = tmp_path_factory.mktemp("served") / "home"  # what lies beside it is of this server, too
    home.mkdir()
    served = Served(home)
    yield served
    served.close()


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    return wait_for
