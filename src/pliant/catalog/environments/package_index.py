"""Where packages come from: what the server's environment and its user's files say of it, in pip's words and in uv's.

Only the process that installs gets this: it may hold passwords, and nobody's code runs in that process.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_PREFIXES: Final = ("PIP_", "UV_", "SSL_CERT_")
_PASSED: Final = frozenset(
    {"SSL_CLIENT_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
    | {each for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY") for each in (name, name.lower())}
)
_NOT_PASSED: Final = frozenset(
    {f"PIP_{name}" for name in ("TARGET", "USER", "PREFIX", "ROOT", "PYTHON", "REQUIREMENT", "EDITABLE", "REPORT")}
    | {f"UV_{name}" for name in ("SYSTEM_PYTHON", "PYTHON", "PROJECT", "WORKING_DIR", "COMPILE_BYTECODE", "CACHE_DIR")}
)
"""Would make the builder install somewhere else, or something else, or run what it has installed."""
_FOR_UV: Final = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_TRUSTED_HOST": "UV_INSECURE_HOST",
    "PIP_CERT": "SSL_CERT_FILE",
}
"""PIP_NO_INDEX is the build program's to pass on."""
_NETRC: Final = ".netrc"
_CONFIG: Final = ".config/uv/uv.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageIndex:
    """Where packages come from, as it stands now."""

    variables: Mapping[str, str] = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)
    """By the names that they have in a home folder."""

    @property
    def places(self) -> tuple[str, ...]:
        """The files and folders of this machine that variables name, so that the process that installs may read."""
        return tuple(dict.fromkeys(path for value in self.variables.values() for path in _paths_in(value)))


def read_index(env: Mapping[str, str]) -> PackageIndex:
    """Return what an environment, and the files of its user, say.

    Raises:
        OSError: one of the files is there and cannot be read.
    """
    return PackageIndex(variables=index_variables(env), files=_index_files(env))


def index_variables(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the server's environment that say where packages come from, and how to get there."""
    passed = {
        name: value
        for name, value in env.items()
        if (name in _PASSED or name.startswith(_PREFIXES)) and name not in _NOT_PASSED
    }
    theirs = {uv: passed[pip] for pip, uv in _FOR_UV.items() if pip in passed}
    if "UV_FIND_LINKS" in theirs:
        theirs["UV_FIND_LINKS"] = ",".join(theirs["UV_FIND_LINKS"].split())
    return {**passed, **theirs}


def _index_files(env: Mapping[str, str]) -> dict[str, bytes]:
    """Return what the server's user keeps for uv in files, under the names that they have in a home folder."""
    home = Path(env.get("HOME", "/nonexistent"))
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"
    found = {_NETRC: Path(env.get("NETRC") or home / _NETRC), _CONFIG: config}
    return {name: path.read_bytes() for name, path in found.items() if path.is_file()}


def _paths_in(value: str) -> Iterator[str]:
    for word in value.replace(",", " ").split():
        place = word.rpartition("=")[2] if "=file:" in word or "=/" in word else word  # uv's `name=where`
        path = unquote(urlsplit(place).path) if place.startswith("file:") else place
        if path.startswith("/") and not path.startswith("//") and os.path.normpath(path) != "/":
            yield os.path.normpath(path)
