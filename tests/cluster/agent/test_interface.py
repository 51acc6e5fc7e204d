"""Which address of this machine others reach its tasks at."""

import json
import sys
from collections.abc import Iterator

import pytest
from tests.hosts import Host, Network, require_hosts

from pliant.cluster.agent.interface import AUTO, address_of
from pliant.core.errors import InvalidInput


def test_auto_is_where_packets_to_the_server_leave_from() -> None:
    assert address_of(AUTO, "127.0.0.1") == "127.0.0.1"


@pytest.mark.parametrize("interface", ["lo", "127.0.0.1", "127.0.0.0/8"])
def test_an_interface_is_named_by_its_name_an_address_or_a_network(interface: str) -> None:
    assert address_of(interface, "192.0.2.1") == "127.0.0.1"


@pytest.mark.parametrize("interface", ["nope0", "203.0.113.7", "203.0.113.0/24", "2001:db8::/32", "", "lo/4", "\n"])
def test_what_is_no_interface_is_refused_and_those_that_are_there_named(interface: str) -> None:
    with pytest.raises(InvalidInput, match=r"is no interface of this machine; there are .*lo \(127\.0\.0\.1\)"):
        address_of(interface, "127.0.0.1")


def test_a_server_that_there_is_no_way_to_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"no way from this machine to no-such-host\.invalid"):
        address_of(AUTO, "no-such-host.invalid")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """A host with addresses of both families, two of them of IPv6, and one that holds on its link only."""
    require_hosts()
    with Network() as network:
        made = network.add("a")
        made.run(["ip", "addr", "add", "2001:db8::7/64", "dev", "eth0", "nodad"])
        yield made


_ASK = """
import json, sys
from pliant.cluster.agent.interface import address_of
from pliant.core.errors import InvalidInput
try:
    print(json.dumps(address_of(*sys.argv[1:])))
except InvalidInput as error:
    print(json.dumps(str(error)))
"""


def ask(host: Host, interface: str, towards: str) -> str:
    return str(json.loads(host.run([sys.executable, "-c", _ASK, interface, towards]).stdout))


@pytest.mark.parametrize(
    ("interface", "towards", "found"),
    [
        ("auto", "10.213.0.9", "10.213.0.1"),
        ("auto", "fd00:d5::9", "fd00:d5::1"),
        ("eth0", "10.213.0.9", "10.213.0.1"),
        ("eth0", "2001:db8::9", "fd00:d5::1|2001:db8::7"),
        ("eth0", "no-such-host.invalid", "10.213.0.1"),
        ("2001:db8::/32", "10.213.0.9", "2001:db8::7"),
        ("2001:0DB8:0::7", "10.213.0.9", "2001:db8::7"),
        ("fd00:d5::1", "10.213.0.9", "fd00:d5::1"),
    ],
)
def test_an_address_is_of_the_servers_family_unless_another_one_is_named(
    host: Host, interface: str, towards: str, found: str
) -> None:
    assert ask(host, interface, towards) in found.split("|")


@pytest.mark.parametrize("interface", ["auto", "fe80::/10"])
def test_an_address_that_holds_on_one_link_only_is_told_to_nobody(host: Host, interface: str) -> None:
    said = ask(host, interface, "fe80::1%eth0")

    assert "holds on one link only" in said or "is no interface of this machine" in said
