"""How a server has its gateway started."""

import time
from contextlib import closing
from pathlib import Path

from pliant.core.plan import Policy
from pliant.entry.gateway.sockets import bind_http
from pliant.entry.server.home import open_home
from pliant.entry.server.listener import Listener
from pliant.entry.server.rooms.endpoints import gateway_options
from pliant.entry.server.settings import ServerSettings
from pliant.entry.server.tls import TlsSettings, prepare


def arguments(home: Path, *, cluster_host: str | None, has_tls: bool = True) -> list[str]:
    """Return what the gateway is told about kernels."""
    settings = ServerSettings(home=home, database="", policy=Policy(), cluster_host=cluster_host)
    with closing(bind_http("127.0.0.1", 0, 1)) as sock:
        tls = prepare(TlsSettings(names=("pool.example.org",)), home, now=time.time()) if has_tls else None
        options = gateway_options(settings, open_home(home), Listener(sock=sock, tls=tls))
    return [one for one in options.arguments() if one.startswith("--kernel")]


def test_kernels_of_other_machines_are_taken_where_machines_may_join_and_over_tls_alone(tmp_path: Path) -> None:
    assert arguments(tmp_path, cluster_host=None) == []
    assert arguments(tmp_path, cluster_host="pool.example.org", has_tls=False) == []
    assert arguments(tmp_path, cluster_host="pool.example.org") == ["--kernel-host=pool.example.org"]


def test_a_host_that_the_certificate_is_not_for_is_checked_by_a_name_that_it_is_for(tmp_path: Path) -> None:
    assert arguments(tmp_path, cluster_host="10.0.0.5") == ["--kernel-host=10.0.0.5", "--kernel-name=localhost"]
