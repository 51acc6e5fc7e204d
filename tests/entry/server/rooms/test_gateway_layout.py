"""Which gateways a server has, by machine."""

import socket
from pathlib import Path

import pytest

from pliant.core.errors import InvalidInput
from pliant.core.joining import JoinedMachine
from pliant.entry.server.rooms.gateway_layout import GatewayLayout, gateway_layout
from pliant.entry.server.settings import read_settings
from pliant.serve.protocol.frames import MAX_GATEWAYS
from pliant.server.gateways import KnownGateway

SECRET = b"secret"
CLUSTER = ("--cluster", "agents", "--tls", "--machine-name", "head")


def machine(name: str, fingerprint: str = "ab" * 32) -> JoinedMachine:
    return JoinedMachine(name=name, owner="ada", fingerprint=fingerprint, joined_at=0.0)


def others(made: GatewayLayout) -> dict[str, KnownGateway]:
    """Return the gateways that agents keep, by name, of machines that have all joined."""
    names = [f"{one}-{number}" for one in (*made.machines, "gpu3") for number in range(MAX_GATEWAYS)]
    found = ((name, made.find_other(name, SECRET, machine)) for name in names)
    return {name: one for name, one in found if one is not None}


def layout(home: Path, *words: str) -> GatewayLayout:
    return gateway_layout(read_settings(["--home", str(home), *words], {}))


def test_numbers_go_on_over_machines_and_each_machine_has_a_key_of_its_own(tmp_path: Path) -> None:
    made = layout(tmp_path, *CLUSTER, "--serve-processes", "2", "--serve-on", "gpu1", "--serve-on", "gpu2")

    assert {name: one.number for name, one in made.own(SECRET).items()} == {"local": 0, "local-1": 1}
    assert {name: (one.number, one.machine) for name, one in others(made).items()} == {
        "gpu1-2": (2, "gpu1"),
        "gpu1-3": (3, "gpu1"),
        "gpu2-4": (4, "gpu2"),
        "gpu2-5": (5, "gpu2"),
    }
    assert len({one.key for one in (*made.own(SECRET).values(), *others(made).values())}) == 3
    rules = made.rules(machine("gpu2"), SECRET)
    assert (rules.first, rules.of, rules.num_processes, rules.key) == (4, 6, 2, others(made)["gpu2-4"].key)
    assert rules.key not in repr(rules)


def test_who_does_not_belong_to_the_pool_and_who_took_another_ones_name_have_none(tmp_path: Path) -> None:
    made = layout(tmp_path, *CLUSTER, "--serve-on", "gpu1")
    before = made.rules(machine("gpu1"), SECRET)
    found = made.find_other("gpu1-1", SECRET, lambda name: machine(name, "cd" * 32))

    assert made.find_other("gpu1-1", SECRET, lambda _name: None) is None
    assert found is not None
    assert found.key != before.key, "the key of a machine that was removed opens nothing for a later one of its name"


def test_without_machines_there_are_those_of_the_server_alone(tmp_path: Path) -> None:
    made = layout(tmp_path)

    assert (made.num, made.serves_here, list(made.own(SECRET)), others(made)) == (1, True, ["local"], {})


def test_where_the_servers_own_machine_is_named_its_agent_has_them_and_no_other_number_moves(tmp_path: Path) -> None:
    made = layout(tmp_path, *CLUSTER, "--serve-on", "head", "--serve-on", "gpu1")
    other = layout(tmp_path, "--cluster", "agents", "--tls", "--serve-on", "head", "--serve-on", "gpu1")

    assert not made.serves_here
    assert (set(made.own(SECRET)), set(others(made))) == (set(), {"head-1", "gpu1-2"})
    assert (set(other.own(SECRET)), set(others(other))) == ({"local"}, {"head-1", "gpu1-2"}), "as on a third machine"


def test_a_machine_without_an_agent_cannot_be_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no agent is started with --slots 0"):
        layout(tmp_path, *CLUSTER, "--slots", "0", "--serve-on", "head")
    own = socket.gethostname().partition(".")[0]
    with pytest.raises(InvalidInput, match="no agent is started with --slots 0"):
        layout(tmp_path, "--cluster", "agents", "--tls", "--slots", "0", "--serve-on", own)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--serve-on", "gpu1"), "no other machine may join; give --cluster"),
        ((*CLUSTER, "--serve-on", "local"), "'local' is no name for a machine"),
        ((*CLUSTER, "--serve-on", "a b"), "'a b' is no name of a machine"),
        ((*CLUSTER, "--serve-on", "gpu1", "--serve-on", "gpu1"), "it names a machine twice: gpu1, gpu1"),
        ((*CLUSTER, "--serve-on", "gpu1", "--serve-processes", "9"), "have 18; at most 16 answer side by side"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        layout(tmp_path, *words)
    assert [problem.field for problem in refused.value.problems] == ["--serve-on"]
    assert said in str(refused.value)
