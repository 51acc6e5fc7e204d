"""Whether hosts can be had on this machine; a test that needs them is skipped where they cannot, and fails in CI."""

import functools
import os
import shutil

import pytest
from tests.hosts.network import Network


@functools.cache
def available() -> str:
    """Return why no hosts can be had here, "" if they can: one is made, and cut off."""
    if missing := [program for program in ("ip", "tc", "unshare") if shutil.which(program) is None]:
        return f"no {', '.join(missing)} here; on Debian: sudo apt-get install iproute2 util-linux"
    try:
        with Network() as network:
            network.cut(network.add("one"))
    except (OSError, RuntimeError) as error:
        own = "" if os.geteuid() == 0 else "only root can make hosts; "
        return f"{own}no host can be made here: {' '.join(str(error).split())}"
    return ""


def require_hosts() -> None:
    """End the test if no hosts can be had here."""
    if why := available():
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
