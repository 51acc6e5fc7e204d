"""What one server is made of: which room is given what. Starts the agent and the keepers of catalogs, no loop."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pliant
from pliant.catalog.datasets.use_cases import DatasetCatalog
from pliant.catalog.models.services import ModelServices
from pliant.control.jobs.inputs import JobInputs
from pliant.control.loop.tick import Control
from pliant.control.requests.sharing import sharing_of
from pliant.control.settings import ControlSettings, Timeouts
from pliant.control.upkeep.backup import Backup
from pliant.control.upkeep.cleanup import Upkeep
from pliant.core.registry import Registry
from pliant.core.server_option import ServerFacts
from pliant.entry.clock import SystemClock
from pliant.entry.own_environment import base_environment
from pliant.entry.own_machine import homes
from pliant.entry.server.copies import Copies, open_copies
from pliant.entry.server.database import display_url, is_server
from pliant.entry.server.home import ADDRESS, SERVER_FILE, Home
from pliant.entry.server.isolation import check_walls, why_alone
from pliant.entry.server.listener import Listener
from pliant.entry.server.pool import id_of
from pliant.entry.server.rooms.children import ConfinedChildren
from pliant.entry.server.rooms.cluster import ClusterRoom
from pliant.entry.server.rooms.datasets import open_datasets
from pliant.entry.server.rooms.endpoints import ServingRoom, gateway_plan, open_serving
from pliant.entry.server.rooms.environments import index_options, open_environments
from pliant.entry.server.rooms.notices import open_notices
from pliant.entry.server.rooms.people import open_people
from pliant.entry.server.rooms.tuning import TuningRoom, open_tuning
from pliant.entry.server.settings import ServerSettings
from pliant.entry.server.shutdown import Shutdown
from pliant.isolation.variables import allowed
from pliant.notices.sender import NoticeSender
from pliant.people.system_ids import BUILDERS, SystemIds
from pliant.server.context import Context
from pliant.server.event_signal import EventSignal
from pliant.server.links import LinkHub
from pliant.server.model_jobs import make_models
from pliant.server.tunnels import TunnelHub
from pliant.store.sql import SqlStore

CLOSE_S = 5
_IBM_MODULES = Path(pliant.__file__).parent / "ibm" / "modules"


@dataclass(frozen=True, slots=True)
class Composition:
    """A server that is put together and not started yet."""

    context: Context
    shutdown: Shutdown
    data: DatasetCatalog
    notices: NoticeSender
    serving: ServingRoom
    tuning: TuningRoom
    cluster: ClusterRoom
    copies: Copies | None

    def start(self) -> None:
        """Take up what an earlier server left."""
        if self.copies is not None:
            self.copies.start(self.context.control, self.context.upkeep)
        self.data.start()
        self.notices.load()
        self.context.control.start()
        self.context.control.subscribe(self.notices.wake)
        self.notices.start()
        self.serving.start()
        self.tuning.start()
        self.cluster.start(self.context.control, self.context.gateways.drop)
        if self.copies is not None:
            self.copies.go_on(self.context.control)


def compose(
    settings: ServerSettings, home: Home, listener: Listener, store: SqlStore, cluster: ClusterRoom, stack: ExitStack
) -> Composition:
    """Open everything that a server needs; what is to be closed goes onto the stack."""
    clock, registry = SystemClock(), store.registry
    nodes = cluster.with_here()
    check_walls(settings.isolation, nodes)
    alone = why_alone(settings.host, trusted=settings.trust_everyone, nodes=nodes)
    links, tunnels, event_signal = LinkHub(), TunnelHub(), EventSignal()
    url, notify = listener.public_url, event_signal.notify
    copies = _open_copies(settings, home, store, clock, notify, stack)
    people = open_people(registry, store.audit, clock, home, url=url, login_fd=settings.login_fd, alone=alone)
    system_ids = _system_ids(registry, clock, settings, cluster)
    children = _children(settings, home, system_ids)
    environments = stack.enter_context(open_environments(registry, clock, home.path, os.environ, people, children))
    data = open_datasets(registry, home.path, settings, clock, lambda name: control.queries.users_of(name), children)
    stack.callback(data.close)
    notices = open_notices(store, clock, home.path, settings.notices, url=url, notify=notify)
    stack.callback(notices.sender.close)
    inputs = JobInputs(data=data, preparations=environments, notices=notices.keeper, user_of=system_ids.of)
    own = _control_settings(settings, home, listener, data.data_root)
    control = Control(store=store, cluster=cluster.nodes, links=links, clock=clock, inputs=inputs, settings=own)
    environments.watch(control.wake)
    control.inquiries.machines.joining = cluster.joining
    shutdown = Shutdown(control=control, event_signal=event_signal, links=links, tunnels=tunnels)
    sharing = sharing_of(registry, clock, people.authenticator.has_user)
    models = make_models(registry, clock, control, sharing, people.authenticator.has_user)
    plan = gateway_plan(settings, home, listener, cluster.joined)
    shutdown.serving = serving = open_serving(plan, registry, clock, control, people, sharing)
    shutdown.tuning = tuning = open_tuning(settings, store, clock, control, people, environments, children)
    context = Context(
        control=control,
        datasets=data,
        people=people,
        sharing=sharing,
        models=models,
        registry=registry,
        audit=store.audit,
        clock=clock,
        event_signal=event_signal,
        links=links,
        tunnels=tunnels,
        gateways=serving.hub,
        serving=serving.news,
        endpoints=serving.requests,
        searches=tuning.room.requests,
        algorithms=tuning.algorithms.requests,
        environments=environments,
        upkeep=_upkeep(store, clock, control, event_signal, models, tuning),
        backup=Backup(dumps=store.records, home=home.path, clock=clock),
        uploads=home.uploads,
        frameworks=home.path / "frameworks",
        children=children,
        shut_down=lambda: shutdown.begin_once("a request"),
        trouble=cluster.trouble,
        facts=_facts(settings, home, url, data.data_root, clock),
        copies=str if copies is None else copies.room.words,
    )
    sender = notices.sender
    return Composition(context, shutdown, data, sender, serving, tuning, cluster, copies)


def _open_copies(
    settings: ServerSettings,
    home: Home,
    store: SqlStore,
    clock: SystemClock,
    notify: Callable[[], None],
    stack: ExitStack,
) -> Copies | None:
    room = open_copies(settings.results_to, home.path, id_of(store.registry))
    if room is None:
        return None
    stack.callback(room.close)
    return Copies(room=room, store=store, clock=clock, home=home.path, notify=notify)


def _facts(settings: ServerSettings, home: Home, url: str, data_root: Path, clock: SystemClock) -> ServerFacts:
    return ServerFacts(
        version=pliant.__version__,
        started_at=clock.now(),
        url=url,
        store="postgresql" if is_server(settings.database) else "sqlite",
        database=display_url(settings.database),
        home=str(home.path),
        data_root=str(data_root),
        options=settings.options,
    )


def _upkeep(
    store: SqlStore,
    clock: SystemClock,
    control: Control,
    event_signal: EventSignal,
    models: ModelServices,
    tuning: TuningRoom,
) -> Upkeep:
    return Upkeep(
        store=store,
        records=store.records,
        clock=clock,
        settings=control.settings,
        notify=event_signal.notify,
        trainings=models.trainings.job_ids,
        trials=tuning.room.unfinished_jobs,
    )


def _system_ids(registry: Registry, clock: SystemClock, settings: ServerSettings, cluster: ClusterRoom) -> SystemIds:
    """Return whom processes run as; machines that build environments learn it of builders."""
    system_ids = SystemIds(registry, clock, settings.uids)
    if cluster.machines is not None:
        cluster.machines.keeper.index = lambda: index_options(os.environ, system_ids.of(BUILDERS))
    return system_ids


def _children(settings: ServerSettings, home: Home, system_ids: SystemIds) -> ConfinedChildren:
    return ConfinedChildren(
        home=home.path,
        env=allowed(os.environ, settings.pass_env),
        user_of=system_ids.of,
        reads=(*base_environment().site, *settings.may_read),
        hides=homes(),
        is_off=settings.isolation == "off",
        required=settings.isolation == "required",
    )


def _control_settings(settings: ServerSettings, home: Home, listener: Listener, data_root: Path) -> ControlSettings:
    return ControlSettings(
        home=home.path,
        url=listener.url,
        trust=listener.trust,
        server_file=home.path / ADDRESS / SERVER_FILE,
        secret=home.secret,
        challenge=home.challenge,
        policy=settings.policy,
        open_folders=(data_root, home.path / "trainings", *map(Path, (*settings.may_read, *settings.may_write))),
        ibm_modules=_IBM_MODULES,
        timeouts=Timeouts(lease_s=settings.lease_s),
        encrypt_state=settings.cluster is not None and settings.cluster.encrypt_state,
    )
