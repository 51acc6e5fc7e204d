"""Which addresses are one person's, and which this machine's."""

import pytest

from pliant.core.address import is_loopback, network_of


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8::1", "2001:db8::ffff:1:2:3", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "somewhere", False),
    ],
)
def test_addresses_that_one_person_can_have_count_as_one(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) is same


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("x", False),
    ],
)
def test_loopback_is_this_machine(address: str, is_own: bool) -> None:
    assert is_loopback(address) is is_own
