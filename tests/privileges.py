"""What the process that tests run in may do on this machine; a test that needs more is skipped, with the reason."""

import functools
import subprocess

import pytest


def needs_mounts() -> None:
    """End the test unless this process may mount (CAP_SYS_ADMIN)."""
    if not may_mount():
        pytest.skip("this process may not mount, or has no unshare(1) to try it with: modes alone keep data")


@functools.cache
def may_mount() -> bool:
    """Tell whether this process may mount; util-linux's own programs try it, in a namespace of theirs."""
    try:
        tried = subprocess.run(["unshare", "--mount", "mount", "--bind", "/", "/"], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    return tried.returncode == 0
