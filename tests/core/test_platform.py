"""Whether an environment works on another machine as it is."""

from dataclasses import replace
from typing import Any

import pytest

from pliant.core.platform import EnvironmentPlatform

SERVER = EnvironmentPlatform(
    machine="x86_64",
    libc="glibc",
    libc_version="2.36",
    abi="cpython-311-x86_64-linux-gnu",
    python="/opt/python/bin/python3.11",
    real_python="/usr/bin/python3.11",
    site=("/opt/pliant/lib/python3.11/site-packages", "/opt/more"),
)
LINKS = {SERVER.python: SERVER.real_python}


def difference(here: EnvironmentPlatform, *, links: dict[str, str] = LINKS, folders: tuple[str, ...] = ()) -> str:
    return SERVER.difference(here, lambda path: links.get(path, path), (folders or SERVER.site).__contains__)


def test_what_was_built_works_where_all_is_alike_whatever_else_is_installed_there() -> None:
    assert difference(SERVER) == ""
    assert difference(replace(SERVER, site=(), python="/venv/bin/python3")) == ""


@pytest.mark.parametrize("version", ["2.36", "2.41", "3.0", "2.100"])
def test_a_newer_c_library_runs_what_was_built_for_an_older_one(version: str) -> None:
    assert difference(replace(SERVER, libc_version=version)) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"machine": "aarch64"}, "it was built for x86_64, and this machine is aarch64"),
        ({"libc_version": "2.9"}, "it was built for glibc 2.36, and this machine has glibc 2.9"),
        ({"libc": "", "libc_version": ""}, "it was built for glibc 2.36, and this machine has another C library"),
        (
            {"abi": "cpython-311-x86_64-linux-musl"},
            "it was built for cpython-311-x86_64-linux-gnu, and Pliant runs here with cpython-311-x86_64-linux-musl",
        ),
        (
            {"real_python": "/usr/local/bin/python3.11"},
            "it was built for /opt/python/bin/python3.11, and Pliant runs here with /usr/local/bin/python3.11",
        ),
    ],
)
def test_what_differs_is_said(change: dict[str, Any], said: str) -> None:
    assert difference(replace(SERVER, **change)) == said


def test_an_interpreter_must_be_where_environments_lead_to() -> None:
    assert "/opt/python/bin/python3.11" in difference(SERVER, links={})


def test_the_packages_below_environments_must_be_there() -> None:
    assert difference(SERVER, folders=SERVER.site[:1]) == (
        "it sees the packages in /opt/more, which is not on this machine"
    )
