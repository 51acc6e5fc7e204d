"""A state folder with a gateway's process, and a server that is played, for tests of the process."""

import json
import os
import socket
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx
from tests.plain_http import NO_TLS
from tests.serve.gateway.played_server import KEY, PlayedServer, played, wait_until

from pliant.cluster import process
from pliant.core.serving import Answer, Serve, ServedEndpoint
from pliant.core.serving_profile import ServingProfile
from pliant.entry.gateway_process import STATE, GatewayOptions, GatewayProcess
from pliant.isolation.variables import allowed
from pliant.serve.gateway.gateway_files import LOG, RECORD
from pliant.serve.gateway.kernel_socket import kernel_socket_name

PROGRAM = (sys.executable, "-P", str(Path(__file__).with_name("gateway_program.py")))
ADA = Answer(number=0, name="ada", may_infer=True, valid_s=30.0)
SERVE = Serve(endpoints=(ServedEndpoint(name="digits", owner="ada", profile=ServingProfile()),))


class World:
    """A state folder of a server, and what is around it."""

    def __init__(self, home: Path, stack: ExitStack) -> None:
        self.home = home
        self.server_file = home / "address" / "server.json"
        self.server_file.parent.mkdir(mode=0o700)
        self._stack = stack

    def serve(self, **more: Any) -> PlayedServer:
        """Play a server until the end of the test."""
        given = {"answers": {"s3cr3t": ADA}, "greeting": (SERVE,)} | more
        return self._stack.enter_context(played(self.server_file, **given))

    def options(self, **more: Any) -> GatewayOptions:
        given = GatewayOptions(
            state=self.home / STATE,
            server_file=self.server_file,
            key=KEY,
            env=allowed(os.environ),
            host="127.0.0.1",
            port=0,
            program=PROGRAM,
        )
        return replace(given, **more)

    def gateway(self, **more: Any) -> GatewayProcess:
        """Return the server's end of a gateway, which retires at the end of the test."""
        made = GatewayProcess(self.options(**more))
        self._stack.callback(made.close)
        return made

    def record(self) -> dict[str, Any]:
        path = self.home / "gateway" / RECORD
        wait_until(path.exists, "a gateway runs")
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def log(self, name: str = LOG) -> str:
        return (self.home / "gateway" / name).read_text()

    def is_over(self, pid: int) -> bool:
        return process.stamp(pid) is None

    def connect_kernel(self, number: int = 0) -> bytes:
        """Connect as a kernel does; return what the gateway says first."""
        folder = os.open(self.server_file.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                sock.settimeout(30)
                sock.connect(f"/proc/self/fd/{folder}/{kernel_socket_name(number)}")
                return sock.recv(100)
        finally:
            os.close(folder)


def ask(url: str, path: str = "/who", token: str = "s3cr3t", verify: Any = NO_TLS) -> httpx.Response:
    return httpx.get(url + path, headers={"Authorization": f"Bearer {token}"}, timeout=30, verify=verify)


def call(address: str, name: str = "Who", certificate: Path | None = None) -> Any:
    """Ask over gRPC."""
    secure = None if certificate is None else grpc.ssl_channel_credentials(certificate.read_bytes())
    channel = grpc.insecure_channel(address) if secure is None else grpc.secure_channel(address, secure)
    with channel:
        who = channel.unary_unary(f"/small.Gateway/{name}")
        return json.loads(who(b"", metadata=(("authorization", "Bearer s3cr3t"),), timeout=30))
