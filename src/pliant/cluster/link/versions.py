"""Which versions run here of what must be the same on all machines of a pool."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

import pliant
from pliant.cluster.link.messages import Versions


def versions() -> Versions:
    """Return them; of torch without what says how it was built."""
    torch = ""
    with suppress(PackageNotFoundError):
        torch = version("torch").partition("+")[0]
    major, minor, _ = platform.python_version_tuple()
    return Versions(pliant=pliant.__version__, python=f"{major}.{minor}", torch=torch)
