"""The agent of a machine that joins a server: `pliant agent`, or `python -P -m pliant.entry.agent`.

A signal may end it at any moment: its tasks go on, and the next agent on the same folder adopts them, if it comes
before they have gone without a server for too long. Exit codes: 2 if it could not begin, or if the server does not want
this machine any more and its tasks have ended.
"""

import argparse
import asyncio
import getpass
import logging
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pliant.cluster import process
from pliant.cluster.agent.agent import Agent
from pliant.cluster.agent.channel import Mailbox
from pliant.cluster.agent.interface import AUTO, address_of
from pliant.cluster.agent.settings import ENTRY, AgentSettings
from pliant.cluster.link.dial import RefusedByServerError, ServerConnection, ServerHost, join, read_server_host
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import Join, JoinRefused, NodeRules
from pliant.cluster.link.node_link import NodeLink, NodeLinkSettings
from pliant.cluster.link.versions import versions
from pliant.cluster.mirror.grants import ENVIRONMENTS
from pliant.cluster.mirror.mirror import Mirror
from pliant.cluster.zygote.deadline import OrphanDeadline
from pliant.core.errors import Conflict, InvalidInput, PliantError, Unavailable
from pliant.core.job import NodeId
from pliant.core.joining import machine_name_fault, parse_join_token
from pliant.entry.agent.environments import MachineBuilder, strangeness
from pliant.entry.agent.files import open_files, read_announced
from pliant.entry.agent.gateway import AgentGateway, GatewayMachine, GatewayWishes, gateway_options
from pliant.entry.clock import SystemClock
from pliant.entry.gateway_process import STATE, retire_left
from pliant.entry.labels import label_problems, read_labels
from pliant.entry.own_machine import AGENTS_FILE, FOR_TORCH, SERVER_FILE, SHARED_MEMORY, homes
from pliant.files.lock import take_lock
from pliant.isolation.variables import allowed

_log = logging.getLogger("pliant")

_MAX_TOKEN_TEXT: Final = 4096


def main(argv: Sequence[str] | None = None) -> int:
    """Serve a server of the pool until a signal comes; return the exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    options = _parser().parse_args(argv)
    try:
        return _serve(options)
    except (PliantError, RefusedByServerError) as error:
        print(f"pliant: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pliant: the agent has ended; its tasks go on for a while, for the next one", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pliant.entry.agent", description=__doc__)
    parser.add_argument("--join", metavar="HOST[:PORT]", help="where the server listens for agents")
    parser.add_argument("--token-file", type=Path, help="holds a join token; not needed again once this has joined")
    parser.add_argument("--name", help="of this machine in the pool (its host name)")
    parser.add_argument("--state-dir", type=Path, required=True, help="folder of this machine alone")
    parser.add_argument("--slots", type=int, help="shares of the CPU; left out: the GPUs, or else the CPUs")
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="for resource groups")
    parser.add_argument("--interface", default=AUTO, help="where others reach its tasks: a name, an address, a network")
    patience_help = "end if no server was reached for so long, and the tasks have ended; left out: wait for one"
    parser.add_argument("--patience-s", type=float, metavar="SECONDS", help=patience_help)
    parser.add_argument("--serve-host", metavar="ADDRESS", help="of this machine's gateways (--interface)")
    parser.add_argument("--serve-name", metavar="NAME", help="of this machine to people who ask models (the address)")
    parser.add_argument("--serve-certificate", type=Path, metavar="FILE", help="that the gateways show (one is made)")
    parser.add_argument("--serve-key", type=Path, metavar="FILE", help="the private key of the certificate")
    parser.add_argument("--entry", default=ENTRY, help="module:function of the tasks' program")
    parser.add_argument("--no-preload", action="store_true", help="tasks import by themselves")
    return parser


def _serve(options: argparse.Namespace) -> int:
    state_dir = _own_folder(options.state_dir)
    if problems := tuple(label_problems(options.label)):
        raise InvalidInput(*problems)
    wishes = _wishes(options)
    wishes.check(_now())
    identity = NodeIdentity(state_dir / "identity")
    given = None if options.join is None else read_server_host(options.join)
    _join(options, identity, given)
    servers = _Servers(given, identity)
    incarnation = f"{process.stamp(os.getpid())}/{secrets.token_hex(4)}"
    link = NodeLink(
        NodeLinkSettings(
            identity=identity, incarnation=incarnation, versions=versions(), servers=servers.all, now=SystemClock().now
        )
    )
    connection = _connect(link, options.patience_s, state_dir)
    servers.learn(connection)
    host = address_of(options.interface, connection.address.host)
    rules = connection.welcome.rules
    base_env = allowed({**FOR_TORCH, **os.environ}, rules.pass_env)
    why = strangeness(rules)
    maker = MachineBuilder(rules, why, env=base_env, own=os.environ) if why else None
    files = open_files(rules, servers.all, identity, state_dir, host=host, maker=maker)
    settings = _settings(options, state_dir, identity.name, connection, has_copies=files is not None)
    if why:
        _log.info("environments of the server do not work on this machine: %s", why)
    if why and files is None:
        settings = replace(settings, strange_environments={str(Path(rules.home) / ENVIRONMENTS): why})
    deadline = OrphanDeadline(state_dir, connection.welcome.orphan_s)
    mailbox = Mailbox(link.send)
    gateway = _open_gateway(rules, wishes, settings, base_env)
    agent = Agent(settings, mailbox, clock=SystemClock(), base_env=base_env, deadline=deadline, files=files)
    _hear(link, mailbox, deadline, gateway, files)
    link.serve(mailbox.put, deadline)
    _log.info(
        "%s serves the server at %s; its tasks are reached at %s", identity.name, connection.address, settings.host
    )
    try:
        agent.run()
        link.close()
        if not agent.is_superseded:
            gateway.retire()
    finally:
        if files is not None:
            files.close()
    return 2


def _connect(link: NodeLink, patience_s: float | None, state_dir: Path) -> ServerConnection:
    """Return the first connection; if the server does not want this machine, its gateways end."""
    try:
        return link.connect(_log.warning, patience_s)
    except RefusedByServerError as error:
        if error.refused.is_removed:
            retire_left(state_dir / STATE)
        raise


def _hear(
    link: NodeLink, mailbox: Mailbox, deadline: OrphanDeadline, gateway: AgentGateway, files: Mirror | None
) -> None:
    """Have done what follows from news of the link, from now on; the connection that there is, is news."""

    def refused(refusal: JoinRefused) -> None:
        if mailbox.hang_up():
            _log.error("the server does not want this machine any more: %s", refusal.reason)
        if refusal.is_removed:
            deadline.end()
            threading.Thread(target=gateway.retire, name="pliant-agent-gateway", daemon=True).start()

    def linked() -> None:
        if files is not None:
            files.refresh()
        gateway.ensure()

    link.renewed, link.refused, link.linked = _begin_again, refused, linked
    gateway.ensure()


def _open_gateway(
    rules: NodeRules, wishes: GatewayWishes, settings: AgentSettings, env: Mapping[str, str]
) -> AgentGateway:
    """Return who keeps the gateways that the server wants here.

    Raises:
        InvalidInput: their certificate is of no use.
        Unavailable: there is none.
    """
    machine = GatewayMachine(
        name=settings.node_id,
        host=settings.host,
        state_dir=settings.state_dir,
        server_file=Path(rules.home) / SERVER_FILE,
        env=env,
    )
    wanted = None if rules.gateway is None else gateway_options(rules.gateway, wishes, machine, _now())
    return AgentGateway(settings.state_dir, wanted)


def _wishes(options: argparse.Namespace) -> GatewayWishes:
    return GatewayWishes(
        host=options.serve_host, name=options.serve_name, certificate=options.serve_certificate, key=options.serve_key
    )


def _now() -> datetime:
    return datetime.fromtimestamp(SystemClock().now(), UTC)


def _own_folder(path: Path) -> Path:
    """Return the folder of this agent alone, made if there is none.

    Raises:
        Conflict: another agent has it.
        Unavailable: it cannot be used.
    """
    folder = path.expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_ours = take_lock(folder / "agent.lock") is not None
    except OSError as error:
        raise Unavailable(f"the folder {folder} cannot be used: {error.strerror}; give another --state-dir") from error
    if not is_ours:
        raise Conflict(f"an agent runs already with the folder {folder}; end it, or give another --state-dir")
    return folder


def _settings(
    options: argparse.Namespace, state_dir: Path, name: str, connection: ServerConnection, *, has_copies: bool
) -> AgentSettings:
    rules = connection.welcome.rules
    return AgentSettings(
        node_id=NodeId(name),
        state_dir=state_dir,
        num_slots=options.slots,
        labels=read_labels(options.label),
        host=address_of(options.interface, connection.address.host),
        memory_root=SHARED_MEMORY / f"pliant-{os.getuid()}-{name}",
        isolation=rules.isolation,
        uid=rules.uid,
        may_read=rules.may_read,
        may_write=rules.may_write,
        hides=homes(),
        max_disk_bytes=rules.max_disk_bytes,
        max_log_bytes=rules.max_log_bytes,
        preload=() if options.no_preload else rules.preload,
        entry=options.entry,
        has_copies=has_copies,
        waits_for_a_server=options.patience_s is None,
    )


class _Servers:
    """Where the server may be: as it says itself in the state folder, as was given, as it was before."""

    def __init__(self, given: ServerHost | None, identity: NodeIdentity) -> None:
        self._given = given
        self._identity = identity
        self._file: Path | None = None

    def learn(self, connection: ServerConnection) -> None:
        """Remember where the server was reached, and read from now on where it says that it is."""
        self._file = Path(connection.welcome.rules.home) / AGENTS_FILE
        self._identity.remember_servers([str(server) for server in self.all()])

    def all(self) -> Sequence[ServerHost]:
        """Return them, the likeliest first."""
        said = None if self._file is None else read_announced(self._file).get("servers")
        given = [] if self._given is None else [str(self._given)]
        texts = [*(said if isinstance(said, list) else []), *given, *self._identity.servers]
        return tuple(dict.fromkeys(read_server_host(str(text)) for text in texts))


def _join(options: argparse.Namespace, identity: NodeIdentity, server: ServerHost | None) -> None:
    """Get a certificate of the pool's, if this machine has none."""
    if identity.name:
        return
    if server is None:
        raise InvalidInput.at(
            "--join", "this machine has not joined a pool: give the server's address, HOST or HOST:PORT"
        )
    token_id, secret, pin = parse_join_token(_read_token(options.token_file))
    name = options.name or socket.gethostname().partition(".")[0]
    if fault := machine_name_fault(name):
        raise InvalidInput.at("--name", fault)
    request = Join(token_id=token_id, secret=secret, name=name, request=identity.make_request(name))
    asyncio.run(join(server, identity, request, pin))
    _log.info("this machine has joined the pool as %s", name)


def _read_token(path: Path | None) -> str:
    """Return the text of the join token: of a file, of who sits at the terminal, or of what is piped in."""
    try:
        if path is not None:
            return path.read_text()
        if sys.stdin.isatty():
            return getpass.getpass("Join token (of `pliant machines token`): ")
        return sys.stdin.read(_MAX_TOKEN_TEXT)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.at("--token-file", f"the join token cannot be read: {error}") from error


def _begin_again(_rules: NodeRules) -> None:
    """Become another agent: a server has other rules than those that this one was started with. Its tasks go on."""
    _log.info("the server has other rules than before; the agent begins again with those")
    logging.shutdown()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execv(sys.executable, sys.orig_argv)
