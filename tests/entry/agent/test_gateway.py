"""The gateways that an agent keeps on its machine: real agents over a real hub, and the server's end is played."""

import json
import os
import signal
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.cluster.joined.pool import AgentProcess, Pool
from tests.contracts.process_stage import DEADLINE_S, NODE, until
from tests.serve.gateway.played_server import KEY, PlayedServer, played
from tests.serve.other_machine import make_certificate

from pliant.cluster import process
from pliant.cluster.link.messages import GatewayRules
from pliant.core.errors import InvalidInput
from pliant.core.serving import GatewayHello, Retire
from pliant.entry.agent.gateway import GatewayMachine, GatewayWishes, gateway_options
from pliant.entry.gateway_process import STATE, retire_left
from pliant.files.certificates import names_of
from pliant.serve.gateway.gateway_files import RECORD

RULES = GatewayRules(key=KEY, first=1, of=2, num_processes=1, port=0, grpc_port=0)
NOW = datetime(2026, 11, 28, tzinfo=UTC)


class Machine:
    """A machine whose agent keeps a gateway, and what is around it."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        self.root = root
        self.server_file = root / "home" / "address" / "server.json"
        self.server_file.parent.mkdir(parents=True)
        self.stack = stack
        self.pool = Pool(root)
        stack.callback(self.pool.end)
        self.agent = AgentProcess(pool=self.pool, name=NODE, port=self.pool.port)
        self.pool.agents.append(self.agent)
        stack.callback(retire_left, self.agent.folder / STATE)

    def serve(self) -> PlayedServer:
        """Play a server to which gateways connect, until the end of the test."""
        return self.stack.enter_context(played(self.server_file))

    def begin(self, rules: GatewayRules | None = RULES) -> None:
        """Let the server begin, with these rules for the machine, and start an agent if none runs."""
        self.pool.stop()
        self.pool.rules = {"gateway": rules}
        self.pool.begin()
        if not self.agent.processes or self.agent.process.poll() is not None:
            self.agent.start()
        until(self.pool.is_here, "the machine is there")

    def record(self) -> dict[str, Any]:
        path = self.agent.folder / STATE / RECORD
        until(path.exists, "a gateway runs")
        found: dict[str, Any] = json.loads(path.read_text())
        return found


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(tmp_path, stack)


def hello(server: PlayedServer, num: int = 1) -> GatewayHello:
    """Return the hello of this number, once it was said."""
    until(lambda: len(server.of(GatewayHello)) >= num, f"hello was said {num} times")
    found: GatewayHello = server.of(GatewayHello)[num - 1]
    return found


def is_over(pid: int) -> bool:
    return process.stamp(pid) is None


def test_a_gateway_runs_where_the_server_wants_one_and_outlives_the_agent(machine: Machine) -> None:
    server = machine.serve()
    machine.begin()
    said = hello(server)
    assert (said.number, said.machine) == (1, NODE)
    assert said.http_url.startswith("https://127.0.0.1:")
    assert said.kernels is not None
    assert said.kernels.host == "127.0.0.1"
    assert "BEGIN CERTIFICATE" in said.kernels.certificate
    command = Path(f"/proc/{said.pid}/cmdline").read_bytes()
    assert b"--machine=" in command
    assert KEY.encode() not in command
    assert KEY not in machine.agent.log()

    machine.agent.kill()
    machine.begin()
    until(lambda: f"was started before serves on at {said.http_url}" in machine.agent.log(), "the next one adopts it")
    assert not is_over(said.pid)
    assert len(server.of(GatewayHello)) == 1


def test_other_rules_replace_the_gateway_and_none_retire_it(machine: Machine) -> None:
    machine.agent.is_cold = True  # it becomes another one
    server = machine.serve()
    machine.begin()
    first = hello(server)
    machine.begin(replace(RULES, of=3))
    second = hello(server, 2)
    assert second.pid != first.pid
    until(lambda: is_over(first.pid), "the first one has ended")
    machine.begin(None)
    until(lambda: is_over(second.pid), "it is retired")
    assert not (machine.agent.folder / STATE / RECORD).exists()


def test_a_gateway_that_dies_is_started_again(machine: Machine) -> None:
    server = machine.serve()
    machine.begin()
    os.kill(hello(server).pid, signal.SIGKILL)
    assert hello(server, 2).pid == machine.record()["pid"]


def test_a_gateway_whose_server_has_ended_runs_again_for_the_next_one(machine: Machine) -> None:
    first = machine.serve()
    machine.begin()
    pid = hello(first).pid
    first.send(Retire())
    until(lambda: is_over(pid), "it retires")
    first.close()
    second = machine.serve()
    machine.begin()
    assert hello(second).pid != pid


def test_a_machine_that_is_removed_has_no_gateway_any_more(machine: Machine) -> None:
    server = machine.serve()
    machine.begin()
    pid = hello(server).pid
    machine.pool.joining.remove(NODE)
    machine.pool.hub.hang_up(NODE)
    machine.pool.nodes.forget(NODE)
    assert machine.agent.process.wait(DEADLINE_S) == 2
    until(lambda: is_over(pid), "its gateway is retired")


def test_a_machine_that_was_removed_meanwhile_has_none_either(machine: Machine) -> None:
    server = machine.serve()
    machine.begin()
    pid = hello(server).pid
    machine.agent.kill()
    machine.pool.joining.remove(NODE)
    machine.agent.start()
    assert machine.agent.process.wait(DEADLINE_S) == 2
    assert is_over(pid)


def test_it_starts_once_this_machine_knows_where_the_server_is(machine: Machine) -> None:
    machine.begin()
    assert not machine.server_file.exists()
    assert not (machine.agent.folder / STATE / RECORD).exists()
    hello(machine.serve())


def at(machine: str = "gpu3", host: str = "10.0.0.7", *, state_dir: Path) -> GatewayMachine:
    return GatewayMachine(name=machine, host=host, state_dir=state_dir, server_file=Path("/server.json"), env={})


def test_a_certificate_is_made_for_all_names_and_again_when_they_are_others_or_it_ends(tmp_path: Path) -> None:
    options = gateway_options(RULES, GatewayWishes(name="models.example.org"), at(state_dir=tmp_path), NOW)
    assert options.certificate is not None
    assert options.key_file is not None
    assert stat.S_IMODE(options.key_file.stat().st_mode) == 0o600
    made = options.certificate.read_bytes()
    names = names_of(x509.load_pem_x509_certificate(made))
    assert set(names) == {"models.example.org", "10.0.0.7", "gpu3", "localhost"}
    assert (options.host, options.public_host) == ("10.0.0.7", "models.example.org")
    assert (options.kernel_host, options.kernel_name) == ("10.0.0.7", None)

    gateway_options(RULES, GatewayWishes(name="models.example.org"), at(state_dir=tmp_path), NOW)
    assert options.certificate.read_bytes() == made
    gateway_options(RULES, GatewayWishes(), at(host="10.0.0.8", state_dir=tmp_path), NOW)
    other = options.certificate.read_bytes()
    assert other != made
    gateway_options(RULES, GatewayWishes(), at(host="10.0.0.8", state_dir=tmp_path), NOW + timedelta(days=340))
    assert options.certificate.read_bytes() != other


def test_a_certificate_that_is_given_is_shown_and_checked_by_its_name(tmp_path: Path) -> None:
    tls = make_certificate(tmp_path)
    wishes = GatewayWishes(host="0.0.0.0", certificate=tls.certificate, key=tls.key)
    options = gateway_options(RULES, wishes, at(state_dir=tmp_path), datetime.now(UTC))
    assert (options.certificate, options.key_file) == (tls.certificate, tls.key)
    assert options.kernel_name == tls.name_for("10.0.0.7")
    assert (options.host, options.public_host) == ("0.0.0.0", "10.0.0.7")
    assert not (tmp_path / STATE).exists()


@pytest.mark.parametrize(
    ("wishes", "fields"),
    [
        ({"host": "a b"}, ["--serve-host"]),
        ({"name": "https://a"}, ["--serve-name"]),
        ({"name": "a:443", "host": ""}, ["--serve-host", "--serve-name"]),
        ({"name": "::"}, ["--serve-name"]),
        ({"certificate": Path("c")}, ["--serve-certificate"]),
        ({"key": Path("k")}, ["--serve-key"]),
        ({"certificate": Path("/no/c"), "key": Path("/no/k")}, ["--serve-certificate", "--serve-key"]),
    ],
)
def test_wishes_that_cannot_be_are_refused(wishes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        GatewayWishes(**wishes).check(NOW)
    assert [problem.field for problem in caught.value.problems] == fields


def test_the_agent_says_what_is_wrong_with_its_options(machine: Machine) -> None:
    machine.agent.options = ["--serve-key", "k"]
    machine.agent.start()
    assert machine.agent.process.wait(DEADLINE_S) == 2
    assert "give --serve-certificate and --serve-key, or none" in machine.agent.log()
