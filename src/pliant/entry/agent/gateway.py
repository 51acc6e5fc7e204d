"""The gateways of a machine that has joined: what its agent keeps running if the server wants some there.

They outlive the agent, as its tasks do: the next agent adopts them, or replaces them if they are to be others. They end
when their server ends, and are started again for the next one; and they end when the server does not want them, or this
machine, any more.
"""

import ipaddress
import logging
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pliant.cluster.link.messages import GatewayRules
from pliant.core.errors import InvalidInput, Problem, Unavailable
from pliant.entry.gateway_process import STATE, GatewayOptions, GatewayProcess, retire_left
from pliant.entry.own_certificate import CertificatePaths, check_given, find_or_make, made_in, name_for
from pliant.files.certificates import names_of

_log = logging.getLogger("pliant")

_TLS: Final = "tls"
"""In the folder of the gateway: the certificate, if it was made here."""
_LOOK_S: Final = 0.25
_HOST: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_.])?")
_FIELDS: Final = ("--serve-certificate", "--serve-key")


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayWishes:
    """What the agent of a machine was told about its gateways."""

    host: str | None = None
    """Address where people reach them; None: where others reach the tasks."""
    name: str | None = None
    """How people name this machine; None: by that address."""
    certificate: Path | None = None
    """That they show (PEM), with `key`; None: one is made."""
    key: Path | None = None

    def check(self, at: datetime) -> None:
        """Look whether that can be.

        Args:
            at: the time.

        Raises:
            InvalidInput: with everything that is wrong.
        """
        problems = [
            Problem(field=field, message=f"{said!r:.80} is no name of a host and no address; give one, without a port")
            for field, said in (("--serve-host", self.host), ("--serve-name", self.name))
            if said is not None and not _is_host(said)
        ]
        if self.name is not None and _is_everywhere(self.name):
            problems.append(Problem(field="--serve-name", message=f"nobody can connect to {self.name}; give a name"))
        if (self.certificate is None) != (self.key is None):
            message = "a certificate and its key belong together; give --serve-certificate and --serve-key, or none"
            problems.append(Problem(field=_FIELDS[self.certificate is None], message=message))
        if problems:
            raise InvalidInput(*problems)
        if self.certificate is not None and self.key is not None:
            check_given(CertificatePaths(certificate=self.certificate, key=self.key), at, _FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayMachine:
    """The machine on which they run, as its agent knows it."""

    name: str
    """In the pool."""
    host: str
    """Where other machines reach it."""
    state_dir: Path
    """The agent's own folder."""
    server_file: Path
    """Says where the server is."""
    env: Mapping[str, str]
    """What of the agent's variables they get."""


def gateway_options(
    rules: GatewayRules, wishes: GatewayWishes, machine: GatewayMachine, at: datetime
) -> GatewayOptions:
    """Return how the gateways of a machine are started; their certificate is made, or renewed, if none was given.

    Raises:
        InvalidInput: the certificate that was given is of no use.
        Unavailable: none can be made.
    """
    state = machine.state_dir / STATE
    public = wishes.name or (wishes.host if wishes.host and not _is_everywhere(wishes.host) else machine.host)
    if wishes.certificate is not None and wishes.key is not None:
        paths = CertificatePaths(certificate=wishes.certificate, key=wishes.key)
        own = check_given(paths, at, _FIELDS)
    else:
        paths = made_in(state / _TLS)
        names = tuple(dict.fromkeys((public, machine.host, machine.name, "localhost")))
        try:
            (state / _TLS).mkdir(mode=0o700, parents=True, exist_ok=True)
            own = find_or_make(paths, names, at)
        except OSError as error:
            raise Unavailable(f"no certificate can be kept in {state / _TLS}: {error.strerror}; see to that") from error
    return GatewayOptions(
        state=state,
        server_file=machine.server_file,
        key=rules.key,
        env=machine.env,
        host=wishes.host or machine.host,
        port=rules.port,
        grpc_port=rules.grpc_port,
        num_processes=rules.num_processes,
        first=rules.first,
        of=rules.of,
        machine=machine.name,
        public_host=public,
        kernel_host=machine.host,
        kernel_name=name_for(names_of(own), machine.host),
        certificate=paths.certificate,
        key_file=paths.key,
        restarts_after_end=False,
    )


class AgentGateway:
    """Keeps the gateways of a machine. Safe to use from any thread.

    Args:
        state_dir: the agent's own folder.
        options: how they are started; None: the server wants none here, and those of before end.
    """

    def __init__(self, state_dir: Path, options: GatewayOptions | None) -> None:
        self._server_file = None if options is None else options.server_file
        self._process = None if options is None else GatewayProcess(options)
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._waiting: threading.Thread | None = None
        if options is None:
            self._waiting = _in_thread(lambda: retire_left(state_dir / STATE))

    def ensure(self) -> None:
        """See to it that they run, as soon as this machine knows where the server is; returns at once."""
        if self._process is None or self._is_over.is_set():
            return
        if self._knows_server():
            self._process.ensure()
        else:
            self._wait_for_server(self._process)

    def retire(self) -> None:
        """Have them finish what they have, and wait until they have ended; they run no more."""
        self._is_over.set()
        if self._process is not None:
            self._process.close(retire=True)
        elif self._waiting is not None:
            self._waiting.join()

    def _knows_server(self) -> bool:
        return self._server_file is not None and self._server_file.exists()

    def _wait_for_server(self, process: GatewayProcess) -> None:
        """Start them once the server's file is there: on a machine with copies it comes first."""

        def wait() -> None:
            while not self._is_over.wait(_LOOK_S):
                if self._knows_server():
                    process.ensure()
                    return

        with self._lock:
            if self._waiting is None or not self._waiting.is_alive():
                self._waiting = _in_thread(wait)


def _is_host(text: str) -> bool:
    return _is_address(text) or _HOST.fullmatch(text) is not None


def _is_everywhere(host: str) -> bool:
    """Tell whether it stands for all addresses of a machine."""
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _in_thread(act: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=act, name="pliant-agent-gateway", daemon=True)
    thread.start()
    return thread
