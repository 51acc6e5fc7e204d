"""What the server's user has besides files in its home: elsewhere, in the kernel, and behind a socket.

Made before the server is started, as a logon would: the server inherits the keyring of the session.
"""

import ctypes
import os
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from pliant.isolation.call_filter import architecture
from pliant.isolation.system_calls import system_call

PLACES: Final = "ATTACK_PLACES"
"""A variable: two folders of the user's, one that everybody may read, and one in /run. Only root can make them."""
_JOIN_SESSION, _LINK = 1, 8
_USER_KEYRING, _SESSION_KEYRING = -4, -3
_REMOVE: Final = 0


@contextmanager
def places(uid: int) -> Iterator[str]:
    """Make the two folders for a user; needs root."""
    folders = [Path(tempfile.mkdtemp(prefix="pliant-attack-", dir=parent)) for parent in ("/opt", "/run")]
    try:
        for folder in folders:
            folder.chmod(0o755)
            os.chown(folder, uid, -1)
        yield ":".join(map(str, folders))
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


class Belongings:
    """All of it; `close` takes it away again. Where this user may make nothing it lies in its temporary folder."""

    def __init__(self) -> None:
        given = os.environ.get(PLACES) or tempfile.gettempdir()
        outside, _, run = given.partition(":")
        self._folder = Path(tempfile.mkdtemp(prefix="belongings-", dir=outside))
        self._folder.chmod(0o755)
        (self._folder / "notes").write_text("of the server's user")
        self._socket = Path(tempfile.mkdtemp(prefix="belongings-", dir=run or outside)) / "bus"
        self._service = socket.socket(socket.AF_UNIX)
        self._service.bind(str(self._socket))
        self._service.listen()
        self._terminal = os.openpty()
        threading.Thread(target=self._serve, daemon=True).start()
        self._key = f"attack-{secrets.token_hex(8)}"
        self._in_kernel: dict[str, tuple[int, str]] = {}
        self._plant_keys()
        self._plant_shared()

    def facts(self) -> dict[str, Any]:
        """Return where all of it is."""
        return {
            "file": str(self._folder / "notes"),
            "folder": str(self._folder),
            "socket": str(self._socket),
            "terminal": os.ttyname(self._terminal[1]),
            "key": self._key,
            **{name: number for name, (number, _) in self._in_kernel.items()},
        }

    def close(self) -> None:
        self._service.close()
        for descriptor in self._terminal:
            os.close(descriptor)
        for number, control in self._in_kernel.values():
            with suppress(OSError):  # an attack may have removed it
                _call(control, number, 0, _REMOVE) if control == "semctl" else _call(control, number, _REMOVE, 0)
        for folder in (self._folder, self._socket.parent):
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                visitor, _ = self._service.accept()
                with visitor:
                    visitor.sendall(b"the service")

    def _plant_keys(self) -> None:
        with suppress(OSError):  # a kernel without keys has none to take
            _call("keyctl", _JOIN_SESSION, 0)
            _call("keyctl", _LINK, _USER_KEYRING, _SESSION_KEYRING)
            for keyring in (_USER_KEYRING, _SESSION_KEYRING):
                _call("add_key", b"user", self._key.encode(), b"ticket", 6, keyring)

    def _plant_shared(self) -> None:
        with suppress(OSError):  # a kernel without it
            self._in_kernel["shared_memory"] = (_call("shmget", 0, 4096, 0o600), "shmctl")
            self._in_kernel["semaphores"] = (_call("semget", 0, 1, 0o600), "semctl")
            self._in_kernel["messages"] = (_call("msgget", 0, 0o600), "msgctl")


def _call(name: str, *arguments: int | bytes) -> int:
    here = architecture()
    if here is None:
        raise OSError("no numbers of system calls for this processor")
    given = [ctypes.c_char_p(one) if isinstance(one, bytes) else ctypes.c_long(one) for one in arguments]
    return system_call(here.number(name), name, *given)
