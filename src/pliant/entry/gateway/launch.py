"""The start of a gateway: one process, or a group of them; it outlives the server that has started it.

    PLIANT_GATEWAY_KEY=… python -P -m pliant.entry.gateway --server-file HOME/address/server.json \\
        --state HOME/gateway --host 127.0.0.1 --port 7312 --grpc-port 7313 --processes 2

Exit codes: 0 when it was told to end, or no server was there for very long; 1 after a fault; 2 if it could not start;
3 if another one runs with this state folder. Not for people.
"""

import asyncio
import fcntl
import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from pliant.cluster.process import stamp
from pliant.entry.gateway.arguments import GatewayArguments, read_arguments
from pliant.entry.gateway.group import GatewayGroup
from pliant.entry.gateway.program import GatewayMaker, GatewayPlaces, GatewayProgram
from pliant.entry.gateway.sockets import bind_http, reserve_grpc, shares_grpc
from pliant.entry.server.http.sockets import CountingSocket
from pliant.files.folder import write_whole
from pliant.serve.gateway.elsewhere import Elsewhere
from pliant.serve.gateway.gateway import Gateway
from pliant.serve.gateway.gateway_files import KEY_VARIABLE, LOCK, RECORD, SECOND, log_name
from pliant.serve.gateway.gateway_share import ALONE, GatewayShare
from pliant.serve.gateway.grpc.server import GrpcPlace
from pliant.serve.gateway.kernel_socket import remove_kernel_sockets
from pliant.serve.gateway.shared_counts import SharedCounts, SharedTable
from pliant.serve.gateway.siblings import Siblings

log = logging.getLogger("pliant.gateway")

_MAX_LOG_BYTES: Final = 8 << 20
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def main(argv: Sequence[str], make: GatewayMaker | None = None) -> int:
    """Run the gateway until it is told to end; return the exit code.

    Args:
        argv: the arguments.
        make: makes what answers requests; None: Pliant's own.
    """
    arguments = read_arguments(argv, os.environ.pop(KEY_VARIABLE, ""))
    os.umask(0o077)
    try:
        with ExitStack() as stack:
            arguments.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _take_lock(arguments.state, stack):
                print(f"pliant: another gateway runs with the state folder {arguments.state}", file=sys.stderr)
                return SECOND
            _log_to(arguments.state / log_name())
            sockets_folder = arguments.server_file.parent
            remove = partial(
                remove_kernel_sockets, sockets_folder, arguments.numbers, with_places=not arguments.machine
            )
            remove()
            stack.callback(remove)
            places = _open_places(arguments, stack)
            stack.callback((arguments.state / RECORD).unlink, missing_ok=True)
            write_whole(arguments.state / RECORD, json.dumps(_record(arguments, places)).encode())
            return _serve(arguments, places, make or Gateway, stack)
    except OSError as error:
        print(f"pliant: the gateway cannot start: {error}", file=sys.stderr)
        return 2


def _serve(arguments: GatewayArguments, places: GatewayPlaces, make: GatewayMaker, stack: ExitStack) -> int:
    if arguments.of == 1:
        return asyncio.run(GatewayProgram(arguments, places, ALONE, make).run())
    table = stack.enter_context(closing(SharedTable()))
    if arguments.num_processes == 1:
        share = _share(arguments, table, arguments.first)
        return asyncio.run(GatewayProgram(arguments, places, share, make).run())
    group = GatewayGroup(arguments.numbers, partial(_be_one_of, arguments, places, make, table), table.clear)
    return group.run()


def _share(arguments: GatewayArguments, table: SharedTable, number: int) -> GatewayShare:
    """Return which of several gateways one is."""
    num = arguments.num_processes
    counts = SharedCounts(table, number, time.monotonic)
    return GatewayShare(
        number=number,
        of=arguments.of,
        num_here=num,
        counts=counts,
        siblings=Siblings(arguments.state, number, arguments.numbers) if num > 1 else None,
        elsewhere=Elsewhere(counts, num, time.monotonic) if arguments.of > num else None,
    )


def _be_one_of(
    arguments: GatewayArguments, places: GatewayPlaces, make: GatewayMaker, table: SharedTable, number: int
) -> int:
    """Be one process of a group; return the exit code."""
    _log_to(arguments.state / log_name(number - arguments.first))
    share = _share(arguments, table, number)
    own = replace(places, speaks_grpc=number == arguments.first or places.grpc.is_shared)
    try:
        return asyncio.run(GatewayProgram(arguments, own, share, make).run())
    except OSError as error:
        log.error("the process cannot start: %s", error)  # noqa: TRY400 (nothing of the trace helps)
        return 2


def _open_places(arguments: GatewayArguments, stack: ExitStack) -> GatewayPlaces:
    """Take the ports, until the process ends.

    Raises:
        OSError: there is no such address here.
    """
    http = stack.enter_context(closing(bind_http(arguments.host, arguments.port, arguments.num_processes)))
    grpc_port = arguments.grpc_port
    if arguments.num_processes > 1:
        grpc_port = stack.enter_context(closing(reserve_grpc(arguments.host, grpc_port))).getsockname()[1]
    grpc = GrpcPlace(
        host=arguments.host,
        port=grpc_port,
        certificate=arguments.certificate,
        key_file=arguments.key_file,
        is_shared=arguments.num_processes > 1 and shares_grpc(),
    )
    host = _host(arguments, http)
    scheme = "http" if arguments.certificate is None else "https"
    return GatewayPlaces(http=http, http_url=f"{scheme}://{host}:{http.getsockname()[1]}", host=host, grpc=grpc)


def _host(arguments: GatewayArguments, http: CountingSocket) -> str:
    bound = http.getsockname()[0]
    host = arguments.public_host or _LOOPBACK.get(bound, bound)
    return f"[{host}]" if ":" in host else host


def _record(arguments: GatewayArguments, places: GatewayPlaces) -> dict[str, object]:
    """Return what the next keeper knows this process by."""
    return {
        "pid": os.getpid(),
        "stamp": stamp(os.getpid()),
        "url": places.http_url,
        "arguments": list(arguments.given),
    }


def _take_lock(state: Path, stack: ExitStack) -> bool:
    """Take the lock of the state folder until the process ends, unless another process has it."""
    file = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _log_to(path: Path) -> None:
    handler = RotatingFileHandler(path, maxBytes=_MAX_LOG_BYTES, backupCount=1, encoding="utf-8")
    line = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(handlers=[handler], level=logging.INFO, format=line, force=True)
    for chatty in ("uvicorn", "websockets"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # it warns of every broken request of a stranger
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # it shows a stack for every client that has gone
