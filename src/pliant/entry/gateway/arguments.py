"""What the process of a gateway is told at its start."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pliant.core.joining import machine_name_fault
from pliant.serve.gateway.gateway_files import KEY_VARIABLE
from pliant.serve.gateway.server_link import ORPHAN_S
from pliant.serve.protocol.frames import MAX_GATEWAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayArguments:
    """What the process is told at its start."""

    server_file: Path
    state: Path
    host: str
    port: int
    """0 takes any free one."""
    grpc_port: int = 0
    """The same for gRPC."""
    num_processes: int = 1
    """That answer requests side by side."""
    first: int = 0
    """The number of the first of them among all gateways of the server."""
    of: int = 1
    """So many gateways the server has, on whichever machine."""
    machine: str = ""
    """On which these run; empty: on the server's own."""
    public_host: str | None = None
    """How others name this machine; None: `host`."""
    kernel_host: str | None = None
    """Where kernels of other machines reach this gateway; None: there are none."""
    kernel_port: int = 0
    """The first process takes them there, the next one at the port after it; 0 takes any free one."""
    kernel_name: str | None = None
    """The name that the certificate is checked by there; None: `kernel_host`."""
    certificate: Path | None = None
    key_file: Path | None = None
    key: str = field(repr=False)
    """What opens the link to the server."""
    orphan_s: float = ORPHAN_S
    given: tuple[str, ...] = ()
    """All of this as it was written, for a keeper that wants another gateway than this one."""

    @property
    def numbers(self) -> range:
        """Return which of the server's gateways these are."""
        return range(self.first, self.first + self.num_processes)


def read_arguments(argv: Sequence[str], key: str) -> GatewayArguments:
    """Read the command line; ends the process with a usage message if it cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m pliant.entry.gateway", description="The gateway of endpoints.")
    parser.add_argument("--server-file", type=Path, required=True, help="says where the server is")
    parser.add_argument("--state", type=Path, required=True, help="folder of the gateway's own files")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one (%(default)s)")
    parser.add_argument("--grpc-port", type=int, default=0, help="of gRPC; 0 takes any free one (%(default)s)")
    parser.add_argument("--processes", type=int, default=1, help="that answer side by side (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first of them (%(default)s)")
    parser.add_argument("--of", type=int, help="all gateways of the server, on whichever machine; default: these")
    parser.add_argument("--machine", default="", help="on which they run; default: the server's own")
    parser.add_argument("--public-host", help="how others name this machine; default: the address")
    parser.add_argument("--kernel-host", help="where kernels of other machines reach it, over TLS; default: none may")
    parser.add_argument(
        "--kernel-port", type=int, default=0, help="of the first process; 0: any free one (%(default)s)"
    )
    parser.add_argument("--kernel-name", help="name in the certificate that they check; default: --kernel-host")
    parser.add_argument("--certificate", type=Path, help="serve HTTPS with it (PEM)")
    parser.add_argument("--key", type=Path, help="the private key of the certificate (PEM)")
    parser.add_argument("--orphan-s", type=float, default=ORPHAN_S, help="end when no server was there for so long")
    given = parser.parse_args(argv)
    if (given.certificate is None) != (given.key is None):
        parser.error("--certificate and --key belong together; give both or none")
    if given.kernel_host is not None and given.certificate is None:
        parser.error("--kernel-host: kernels of other machines come over TLS; give --certificate and --key as well")
    if given.kernel_host in ("0.0.0.0", "::"):
        parser.error(f"--kernel-host={given.kernel_host}: no machine can connect to that; give a name or an address")
    if not 0 <= given.kernel_port <= 65535 - MAX_GATEWAYS:
        parser.error(f"--kernel-port={given.kernel_port}: give 0 to {65535 - MAX_GATEWAYS}; each process has its own")
    if not 1 <= given.processes <= MAX_GATEWAYS:
        parser.error(f"--processes={given.processes}: from 1 to {MAX_GATEWAYS} can answer side by side")
    of = given.processes if given.of is None else given.of
    if fault := _number_fault(given, of):
        parser.error(fault)
    if not key:
        parser.error(f"the variable {KEY_VARIABLE} is missing; the server sets it when it starts the gateway")
    return GatewayArguments(
        server_file=given.server_file.absolute(),
        state=given.state.absolute(),
        host=given.host,
        port=given.port,
        grpc_port=given.grpc_port,
        num_processes=given.processes,
        first=given.first,
        of=of,
        machine=given.machine,
        public_host=given.public_host,
        kernel_host=given.kernel_host,
        kernel_port=given.kernel_port,
        kernel_name=given.kernel_name,
        certificate=given.certificate,
        key_file=given.key,
        key=key,
        orphan_s=given.orphan_s,
        given=tuple(argv),
    )


def _number_fault(given: argparse.Namespace, of: int) -> str:
    """Return why no gateways can have these numbers; empty: they can."""
    if not 0 <= given.first <= of - given.processes or of > MAX_GATEWAYS:
        return (
            f"--first={given.first} --of={of}: {given.processes} from there on are to be among those; a server has "
            f"{MAX_GATEWAYS} at most"
        )
    if given.machine and (machine_name_fault(given.machine) or not given.first):
        return f"--machine={given.machine}: give the name of a machine, and --first; the server's own has 0"
    return ""
