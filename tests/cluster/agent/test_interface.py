"""Which address of this machine others reach its tasks at."""

import pytest

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
