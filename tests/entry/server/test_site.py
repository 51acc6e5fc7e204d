"""What the server is told of paths and proxies."""

import ipaddress

import pytest

from pliant.core.errors import InvalidInput
from pliant.entry.server.settings import read_settings


@pytest.mark.parametrize(
    ("given", "path"), [("/pliant", "/pliant"), ("/pliant/", "/pliant"), ("/a/b-1/c.d", "/a/b-1/c.d"), ("/", "")]
)
def test_a_path_is_taken_without_its_last_slash(given: str, path: str) -> None:
    assert read_settings([f"--root-path={given}"], {}).root_path == path
    assert read_settings([], {"PLIANT_ROOT_PATH": given}).root_path == path
    assert read_settings([f"--root-path={given}"], {"PLIANT_ROOT_PATH": "/other"}).root_path == path


@pytest.mark.parametrize(
    "path",
    [
        "pliant",
        "//evil",
        "//",
        "/a//b",
        "/..",
        "/a/../b",
        "/a b",
        "/%2e",
        '/"><script>',
        "/a\n",
        "http://evil.example/",
        "/x" * 101,
        "/v1",
        "/assets/x",
        "/platform",
    ],
)
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="--root-path"):
        read_settings([f"--root-path={path}"], {})


def test_proxies_are_addresses_and_networks() -> None:
    found = read_settings(["--trusted-proxy=10.0.0.5", "--trusted-proxy", "fd00::/64"], {})
    assert found.proxies == (ipaddress.ip_network("10.0.0.5/32"), ipaddress.ip_network("fd00::/64"))
    assert read_settings([], {}).proxies == ()
    assert len(read_settings(["--trusted-proxy=::1"], {"PLIANT_TRUSTED_PROXIES": "10.0.0.5, 10.1.0.0/16"}).proxies) == 3


@pytest.mark.parametrize("proxy", ["proxy.example.org", "10.0.0.5/24", "", "0.0.0.0/0", "::/0", "10.0.0.5:80"])
def test_what_is_no_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(InvalidInput, match="--trusted-proxy"):
        read_settings([f"--trusted-proxy={proxy}"], {})
