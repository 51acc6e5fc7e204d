"""How a server has its gateway started."""

import time
from contextlib import closing
from pathlib import Path

from pliant.core.plan import Policy
from pliant.entry.gateway.sockets import bind_http
from pliant.entry.server.home import open_home
from pliant.entry.server.listener import Listener
from pliant.entry.server.rooms.endpoints import gateway_plan
from pliant.entry.server.settings import ServerSettings
from pliant.entry.server.tls import TlsSettings, prepare


def arguments(home: Path, *, is_for_all: bool, has_tls: bool = True) -> list[str]:
    """Return what the gateway is told about kernels."""
    settings = ServerSettings(home=home, database="", policy=Policy())
    with closing(bind_http("127.0.0.1", 0, 1)) as sock:
        tls = prepare(TlsSettings(names=("pool.example.org",)), home, now=time.time()) if has_tls else None
        listener = Listener(sock=sock, tls=tls, is_for_all=is_for_all)
        plan = gateway_plan(settings, open_home(home), listener, lambda _name: None)
    return [one for one in plan.options.arguments() if one.startswith("--kernel")]


def test_kernels_of_other_machines_are_taken_where_machines_may_join_and_over_tls_alone(tmp_path: Path) -> None:
    assert arguments(tmp_path, is_for_all=False) == []
    assert arguments(tmp_path, is_for_all=True, has_tls=False) == []
    assert arguments(tmp_path, is_for_all=True) == ["--kernel-host=pool.example.org"]
