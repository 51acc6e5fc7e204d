"""`python -m tests.attack.as_user USER MODULE [ARGS…]`: run a module as another user, wherever Python lies.

Root only. The module sees the machine as it is, but that the way to this Python and to what it imports is open.
"""

import os
import sys

from pliant.core.confinement import RunAs
from pliant.isolation import system_paths
from pliant.isolation.mounts import MountView, own_namespace, show
from pliant.isolation.users import account_of, closed_folders


def main(user: str, *arguments: str) -> None:
    """Become the user, and run the module."""
    account = account_of(RunAs(name=user))
    shown = (*system_paths.readable(hidden=()), os.getcwd())
    closed = tuple(closed_folders(shown, account))
    if closed:
        own_namespace(as_user=False)
        show(MountView(shown=shown, covered=closed))
    os.setgroups([])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    os.execv(sys.executable, [sys.executable, "-m", *arguments])


if __name__ == "__main__":
    main(*sys.argv[1:])
