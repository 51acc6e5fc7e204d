"""Where a webhook may lead: what strangers reach, and what the administrator allowed; by whatever notation."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.core.notice import read_mail, read_webhook
from pliant.notices.addresses import WebhookRules, read_allowed
from pliant.notices.webhook import is_own_address, resolve

URL = read_webhook("https://hooks.slack.com/services/T0/SECRET")
STRICT = WebhookRules()


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
        *("100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.0.8"),
        *("::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1"),
        *("fe80::1", "fe80::1%lo", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2002:7f00:1::"),
        *("2002:a9fe:a9fe::", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2001:0:1:2:3:4:5:6"),
    ],
)
def test_what_strangers_do_not_reach_is_refused_and_not_shown(address: str) -> None:
    refusal = STRICT.refusal(URL, address)

    assert "does not call for people" in refusal
    assert address not in refusal


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_called_by_https_on_its_port_alone(address: str) -> None:
    assert STRICT.refusal(URL, address) == ""
    assert "not encrypted" in STRICT.refusal(read_webhook("http://hooks.slack.com/x"), address)
    assert "on port 6379" in STRICT.refusal(read_webhook("https://hooks.slack.com:6379/x"), address)
    assert "the server's own machine" in STRICT.refusal(URL, address, is_own=True)


@given(st.ip_addresses(v=4))
def test_an_address_is_judged_alike_in_every_way_to_write_it(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    written = [f"::ffff:{address}", str(ipaddress.IPv6Address(0x2002 << 112 | number << 80))]
    written.append(str(ipaddress.IPv6Address((0x64FF9B << 96) | number)))

    assert {bool(STRICT.refusal(URL, one)) for one in written} == {bool(STRICT.refusal(URL, str(address)))}


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0x7f.1", "127.1", "localhost", "0177.0.0.1"])
def test_other_ways_to_write_loopback_lead_there_and_are_refused(host: str) -> None:
    url = read_webhook(f"https://{host}/x")

    found = resolve(url.host, url.port)

    assert found
    assert all("own machine" in STRICT.refusal(url, address) for address in found)


def test_an_administrator_allows_hosts_ports_and_networks() -> None:
    inside = read_webhook("http://chat.corp:8065/hooks/1")

    def allows(*texts: str, address: str = "10.1.2.3", url: str = "") -> bool:
        rules = WebhookRules(allowed=tuple(map(read_allowed, texts)))
        return not rules.refusal(read_webhook(url) if url else inside, address, is_own=True)

    assert allows("chat.corp")
    assert allows("CHAT.corp.:8065")
    assert allows("10.0.0.0/8")
    assert allows("10.1.2.3:8065")
    assert allows("10.0.0.0/8:8065")
    assert allows("0.0.0.0/0", address="::ffff:10.1.2.3")
    assert allows("[fd00::/8]:8065", address="fd00::1")
    assert allows("fd00::1", address="fd00::1")
    assert not allows("chat.corp:443")
    assert not allows("other.corp", "corp", "10.0.0.0/16", "::/0")
    assert not allows("chat.corp", url="http://evil.chat.corp:8065/")


@pytest.mark.parametrize(
    "text", ["", "10.0.0.0/99", "a b", "http://chat.corp", "chat.corp:x", "1.2.3.4.5", "10.0.0.1/8"]
)
def test_what_allows_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no host and no network"):
        read_allowed(text)


@pytest.mark.parametrize(
    "text",
    [
        *("ftp://h/x", "file:///etc/passwd", "gopher://127.0.0.1:25/x", "https://", "//h/x", "h/x", "https://h:0/"),
        *(
            "https://h:99999/",
            "https://u:p@h/",
            "https://u@h/",
            "https://h/a b",
            "https://h/\r\nX: y",
            "https://h\\@e/",
        ),
        *(
            "https://h/\t",
            "https://höst/",
            "https://[::1",
            "https://h%00/",
            "https://[fe80::1%25lo]/",
            "https://h?\x00",
        ),
    ],
)
def test_what_is_no_webhook_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_webhook(text)
    assert text == "https://" or text not in str(caught.value)


def test_a_webhook_shows_its_scheme_and_host_alone() -> None:
    assert URL.shown == "https://hooks.slack.com"
    assert read_webhook("https://[2606:4700::1]:8443?token=SECRET").shown == "https://[2606:4700::1]:8443"
    assert "SECRET" not in repr(URL)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "ada",
            "ada@",
            "@x.org",
            "a@b@c.org",
            "a b@c.org",
            "a@c.org,b@c.org",
            "a@c.org\nBcc: b@c.org",
            "-a@c.org",
        ),
        *("<a@c.org>", "a@c..org", "a@-c.org", "ä@c.org", "a@c.org\r\n", f"{'a' * 65}@c.org", "a@c.org>", ".a@c.org"),
    ],
)
def test_what_is_no_address_of_one_person_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no address of e-mail"):
        read_mail(text)


def test_usual_addresses_are_taken() -> None:
    for text in ("ada@example.org", "a.b+c_d@x-y.example", "a@localhost", "a@[c]".replace("[c]", "c")):
        assert read_mail(text) == text


def test_the_machines_own_addresses_are_known_also_public_ones() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", 9))
        assert is_own_address(sock.getsockname()[0])
    assert not is_own_address("192.0.2.7")
