"""What the server is told on its command line, checked; the one place that reads its environment."""

import argparse
import ipaddress
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pliant.core.confinement import IsolationMode
from pliant.core.errors import InvalidInput, Problem
from pliant.core.plan import Policy, PolicyName
from pliant.core.server_option import ServerOption
from pliant.entry.labels import label_problems, read_labels
from pliant.entry.server.cluster import ClusterSettings, add_cluster, cluster_problems, cluster_settings
from pliant.entry.server.database import database_url
from pliant.entry.server.isolation import (
    MaxDisk,
    add_isolation,
    is_address,
    is_loopback,
    isolation_problems,
    isolation_settings,
)
from pliant.entry.server.notices import NoticeRules, add_notices, notice_rules
from pliant.entry.server.options import read_options
from pliant.entry.server.site import add_site, site_problems, site_settings
from pliant.entry.server.tls import TlsSettings
from pliant.objects.location import problem_of
from pliant.serve.protocol.frames import MAX_GATEWAYS
from pliant.server.site import IpNetwork

DEFAULT_PORT = 7311
DEFAULT_HOST = "127.0.0.1"
DEFAULT_LEASE_S = 2.0
DEFAULT_MAX_UPLOAD_GIB = 64
_HOST_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})?)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What the server is told at its start."""

    home: Path
    database: str = field(repr=False)
    """Its URL, which may hold a password."""
    standby: bool = False
    """Wait while another server leads, and take its place when it is gone; a database server's second always does."""
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 takes any free one."""
    serve_port: int = DEFAULT_PORT + 1
    """Where the gateway of endpoints listens; 0 takes any free one, and so does one that is taken."""
    serve_grpc_port: int = DEFAULT_PORT + 2
    """The same for gRPC."""
    serve_processes: int = 1
    """So many take requests to endpoints side by side."""
    tls: TlsSettings | None = None
    """None: plain HTTP, on a loopback address only."""
    root_path: str = ""
    """A proxy shows the server below this path, such as `/pliant`."""
    proxies: tuple[IpNetwork, ...] = ()
    """Who is believed what they say of a request that they pass on."""
    cluster: ClusterSettings | None = None
    """How other machines join; None: they do not."""
    num_slots: int | None = None
    """None: one slot per GPU, or per CPU where there is none."""
    policy: Policy
    labels: Mapping[str, str] = field(default_factory=dict)
    """What resource groups choose this machine by."""
    lease_s: float = DEFAULT_LEASE_S
    """A task that shows no sign of life for this long is killed and replaced."""
    login_fd: int | None = None
    """Where a new server tells its administrator's password; None: on stderr."""
    reset_admin: bool = False
    """Give the administrator a new password, tell it, and end."""
    data_root: Path | None = None
    """What data sets may be named by path lies below it; None: the folder `data` of the state folder."""
    results_to: str | None = None
    """URL of an object store that what jobs write is copied to; None: it is not."""
    max_upload_bytes: int = DEFAULT_MAX_UPLOAD_GIB << 30
    preload: tuple[str, ...] = ()
    """Modules that scripts import; they are imported once, before the first task, instead of in every task."""
    isolation: IsolationMode = "auto"
    """What is done where this machine lacks a wall around people's code."""
    uids: range | None = None
    """Ids of the operating system for people, one each; None: their code runs as the server's own user."""
    may_read: tuple[str, ...] = ()
    """Folders that everybody's code may read, as far as their modes let it."""
    may_write: tuple[str, ...] = ()
    max_disk: MaxDisk = "tenth"
    """What the tasks of a job together may have on this machine's disk."""
    max_log_bytes: int | None = 256 << 20
    """What a task may have in its stdout, or in its stderr, on it; None: as much as fits."""
    trust_everyone: bool = False
    """Serve several people beyond this machine though a wall is missing."""
    pass_env: tuple[str, ...] = ()
    """Variables of the server's environment that everybody's code gets."""
    notices: NoticeRules = field(default_factory=NoticeRules)
    """What is sent when jobs are over."""
    options: tuple[ServerOption, ...] = ()
    """All of this as it may be shown."""


def read_settings(argv: Sequence[str], env: Mapping[str, str]) -> ServerSettings:
    """Read the command line; ends the process with a usage message if it cannot be read.

    Raises:
        InvalidInput: a value is out of its range; all of them at once.
    """
    parser = _parser(env)
    given = parser.parse_args(argv)
    problems = [
        *_host_problems(given),
        *_tls_problems(given),
        *_range_problem("--port", given.port, 0, 65535),
        *_range_problem("--serve-port", given.serve_port or 0, 0, 65535),
        *_range_problem("--serve-grpc-port", given.serve_grpc_port or 0, 0, 65535),
        *_range_problem("--serve-processes", given.serve_processes, 1, MAX_GATEWAYS),
        *label_problems(given.label),
        *(_slots_problem(given) if given.slots is not None else ()),
        *_range_problem("--cooldown-s", given.cooldown_s, 0, 86400),
        *_range_problem("--lease-s", given.lease_s, 0.2, 86400),
        *_range_problem("--max-upload-gib", given.max_upload_gib, 1, 1 << 20),
        *_problems_of_parts(given),
    ]
    home = Path(os.path.realpath(Path(given.home).expanduser()))
    try:
        database = database_url(home, given.database, env)
    except InvalidInput as error:
        problems += error.problems
    try:
        notices = notice_rules(given, env)
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(*problems)
    serve_port = _next_port(given.port) if given.serve_port is None else given.serve_port
    return ServerSettings(
        home=home,
        database=database,
        standby=given.standby,
        host=given.host,
        port=given.port,
        serve_port=serve_port,
        serve_grpc_port=_next_port(serve_port) if given.serve_grpc_port is None else given.serve_grpc_port,
        serve_processes=given.serve_processes,
        tls=_tls(given),
        num_slots=given.slots,
        labels=read_labels(given.label),
        lease_s=given.lease_s,
        login_fd=given.login_fd,
        reset_admin=given.reset_admin,
        data_root=given.data_root and Path(given.data_root).expanduser().absolute(),
        results_to=given.results_to,
        max_upload_bytes=given.max_upload_gib << 30,
        preload=tuple(given.preload),
        policy=Policy(name=PolicyName(given.policy), cooldown_s=given.cooldown_s),
        notices=notices,
        **(site_settings(given) | cluster_settings(given)),
        options=read_options(parser, argv, env, database),
        **isolation_settings(given),
    )


def _parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pliant.entry.server", description="The Pliant server.")
    parser.add_argument("--home", default=env.get("PLIANT_HOME") or "~/.pliant", help="state folder (%(default)s)")
    database_help = (
        "URL of a PostgreSQL database, without a password; default: $PLIANT_DATABASE, HOME/database, or SQLite"
    )
    parser.add_argument("--database", metavar="URL", help=database_help)
    standby_help = "if another server leads, wait and take its place when it is gone"
    parser.add_argument("--standby", action="store_true", help=standby_help)
    host_help = "address to listen on; with TLS any (%(default)s)"
    parser.add_argument("--host", type=_without_brackets, default=DEFAULT_HOST, help=host_help)
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes any free one (%(default)s)")
    serve_help = "where the gateway of endpoints listens; default: the port after --port, or any free one"
    parser.add_argument("--serve-port", type=int, metavar="N", help=serve_help)
    grpc_help = "where it speaks gRPC; default: the port after that, or any free one"
    parser.add_argument("--serve-grpc-port", type=int, metavar="N", help=grpc_help)
    processes_help = "so many processes answer requests to endpoints side by side (%(default)s)"
    parser.add_argument("--serve-processes", type=int, default=1, metavar="N", help=processes_help)
    _add_tls(parser)
    add_site(parser, env)
    add_cluster(parser)
    slots_help = "share the CPU in so many slots; default: one per GPU or CPU; 0 if other machines have all of them"
    parser.add_argument("--slots", type=int, help=slots_help)
    label_help = "what resource groups choose this machine by; may be repeated"
    parser.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help=label_help)
    policies = [str(name) for name in PolicyName]
    parser.add_argument("--policy", choices=policies, default=str(PolicyName.FAIRSHARE), help="(%(default)s)")
    parser.add_argument("--cooldown-s", type=float, default=Policy().cooldown_s, help="(%(default)s)")
    lease_help = "a task that is silent for so many seconds is taken as hung (%(default)s)"
    parser.add_argument("--lease-s", type=float, default=DEFAULT_LEASE_S, help=lease_help)
    root_help = "data sets may be named by paths below this folder; default: the folder data of the state folder"
    parser.add_argument("--data-root", metavar="FOLDER", help=root_help)
    copies_help = "copy what jobs write there as well: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or file:///FOLDER"
    parser.add_argument("--results-to", metavar="URL", help=copies_help)
    size_help = "an upload of data may have so many GiB (%(default)s)"
    parser.add_argument("--max-upload-gib", type=int, default=DEFAULT_MAX_UPLOAD_GIB, metavar="N", help=size_help)
    preload_help = "import this module once, so that tasks need not; may be repeated"
    login_help = "descriptor that a new server tells its administrator's password on; default: stderr"
    parser.add_argument("--login-fd", type=int, metavar="N", help=login_help)
    reset_help = "give the administrator a new password, print it, and end; a running server goes on"
    parser.add_argument("--reset-admin", action="store_true", help=reset_help)
    parser.add_argument("--preload", action="append", default=[], metavar="MODULE", help=preload_help)
    add_isolation(parser)
    add_notices(parser)
    return parser


def _next_port(port: int) -> int:
    """Return the port after another one; any free one if that is any, or the last."""
    return port + 1 if 0 < port < 65535 else 0


def _add_tls(parser: argparse.ArgumentParser) -> None:
    tls_help = "serve HTTPS with a certificate that is made once, and renewed in time"
    parser.add_argument("--tls", action="store_true", help=tls_help)
    parser.add_argument("--tls-cert", metavar="FILE", help="serve HTTPS with this certificate (PEM, with its chain)")
    parser.add_argument("--tls-key", metavar="FILE", help="the private key of --tls-cert (PEM)")
    name_help = "a name or address that the made certificate is for, besides this machine's own; may be repeated"
    parser.add_argument(
        "--tls-name", type=_without_brackets, action="append", default=[], metavar="NAME", help=name_help
    )


def _tls(given: argparse.Namespace) -> TlsSettings | None:
    if given.tls_cert is not None and given.tls_key is not None:
        certificate, key = (Path(path).expanduser().absolute() for path in (given.tls_cert, given.tls_key))
        return TlsSettings(certificate=certificate, key=key)
    if not given.tls:
        return None
    bound = [] if is_everywhere(given.host) else [given.host]
    return TlsSettings(names=tuple(dict.fromkeys([*given.tls_name, *bound])))


def _tls_problems(given: argparse.Namespace) -> Iterator[Problem]:
    if (given.tls_cert is None) != (given.tls_key is None):
        one, other = ("--tls-cert", "--tls-key") if given.tls_key is None else ("--tls-key", "--tls-cert")
        yield Problem(field=one, message=f"a certificate and its key belong together; give {other} as well")
    elif given.tls and given.tls_cert is not None:
        yield Problem(field="--tls", message="it makes a certificate, and --tls-cert gives one; leave one of them out")
    if given.tls_name and not given.tls:
        yield Problem(field="--tls-name", message="it is for the certificate that --tls makes; give --tls as well")
    for name in given.tls_name:
        if not (is_address(name) or _HOST_NAME.fullmatch(name)):
            yield Problem(field="--tls-name", message=f"{name!r} is neither a host name nor an address")


def _without_brackets(host: str) -> str:
    """Return a host; an address of IPv6 may be given as it stands in a URL."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _host_problems(given: argparse.Namespace) -> list[Problem]:
    if is_address(given.host) and (address := ipaddress.ip_address(given.host)).version == 6 and address.is_link_local:
        message = f"{given.host!r} holds on one link only, and no certificate names it; give another address, or ::"
        return [Problem(field="--host", message=message)]
    if is_loopback(given.host) or given.tls or given.tls_cert is not None:
        return []
    message = (
        f"{given.host!r} is no loopback address, and what passes over a network in the clear can be read there: give "
        f"--tls (or --tls-cert and --tls-key) as well, or 127.0.0.1"
    )
    return [Problem(field="--host", message=message)]


def is_everywhere(host: str) -> bool:
    """Tell whether it stands for all addresses of a machine."""
    return is_address(host) and ipaddress.ip_address(host).is_unspecified


def _slots_problem(given: argparse.Namespace) -> list[Problem]:
    if given.slots == 0 and given.cluster is None:
        return [Problem(field="--slots", message="0 is for a server with other machines; give --cluster as well")]
    return _range_problem("--slots", given.slots, 0 if given.cluster else 1, 4096)


def _problems_of_parts(given: argparse.Namespace) -> Iterator[Problem]:
    yield from site_problems(given)
    yield from cluster_problems(given)
    yield from isolation_problems(given)
    yield from _gateways_problem(given)
    yield from _copies_problem(given)


def _gateways_problem(given: argparse.Namespace) -> list[Problem]:
    num = given.serve_processes * (1 + len(given.serve_on))
    if not given.serve_on or num <= MAX_GATEWAYS:
        return []
    message = (
        f"with {given.serve_processes} processes each (--serve-processes), {len(given.serve_on)} machines and the "
        f"server's own have {num}; at most {MAX_GATEWAYS} answer side by side: name fewer"
    )
    return [Problem(field="--serve-on", message=message)]


def _copies_problem(given: argparse.Namespace) -> list[Problem]:
    message = "" if given.results_to is None else problem_of(given.results_to)
    home = os.path.realpath(Path(given.home).expanduser())
    if not message and f"{given.results_to}/".startswith(f"file://{home}/"):
        message = "it lies in the state folder and would be lost with it; give a folder on another disk, or machine"
    return [Problem(field="--results-to", message=message)] if message else []


def _range_problem(field: str, value: float, low: float, high: float) -> list[Problem]:
    if low <= value <= high:
        return []
    return [Problem(field=field, message=f"{value:g} is out of range; give {low:g} to {high:g}")]
