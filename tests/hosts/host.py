"""One host: a set of namespaces with an address, which can be killed, frozen, and come back."""

import ctypes
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess
from typing import Final

from tests.hosts.namespaces import PATIENCE_S, HostProcess, Namespaces
from tests.hosts.port import Port

PREFIX: Final = "10.213.0."
PREFIX6: Final = "fd00:d5::"
_CLONE_NEWNET: Final = 0x40000000


class Host:
    """A host on a network; `Network.add` makes it.

    It sees the files that are seen outside, but for `/proc`, `/dev/shm`, `/etc/hosts` (which names all hosts of the
    network) and the folders that were asked for: those are empty file systems in memory, and are emptied by a restart.
    """

    def __init__(
        self,
        hub: Namespaces,
        number: int,
        name: str,
        tmpfs: Mapping[str, str],
        *,
        frame_bytes: int,
        only_six: bool = False,
    ) -> None:
        self.name = name
        self.address4, self.address6 = f"{PREFIX}{number}", f"{PREFIX6}{number:x}"
        self.address: Final = self.address6 if only_six else self.address4
        self._only_six = only_six
        self.port: Final = Port(hub, number, frame_bytes)
        self._hub, self._number, self._tmpfs = hub, number, dict(tmpfs)
        self._inside: Namespaces | None = None
        self._killed: list[Namespaces] = []
        self._boot()

    def __repr__(self) -> str:
        return f"<host {self.name} at {self.address}, {'up' if self.is_up else 'killed'}>"

    @property
    def is_up(self) -> bool:
        """Tell whether it is there, perhaps frozen or cut off; it is not between `kill` and `restart`."""
        return self._inside is not None

    def popen(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        output: Path | None = None,
    ) -> HostProcess:
        """Start a process, as the user of this process (root), in a session of its own.

        Args:
            argv: program and arguments; the program is looked for on the PATH of `env`.
            env: its whole environment; that of this process if nothing is given.
            cwd: the folder it starts in; that of this process if nothing is given.
            output: the file to whose end it writes, output and errors; if nothing is given, where this process does.
        """
        inside = self._there()
        if output is None:
            return inside.popen(argv, env=env, cwd=cwd)
        with output.open("ab") as file:
            return inside.popen(argv, env=env, cwd=cwd, streams=(None, file.fileno(), file.fileno()))

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float = PATIENCE_S,
        check: bool = True,
    ) -> CompletedProcess[str]:
        """Run a process to its end.

        Raises:
            RuntimeError: it failed, and `check` is true; the message has what it wrote.
            TimeoutError: it has not ended in time; it is killed (its children are not).
        """
        return self._there().run(argv, stdin=stdin, env=env, cwd=cwd, timeout_s=timeout_s, check=check)

    def number_outside(self, pid: int) -> int:
        """Return by which number this process knows the one that the host knows as `pid`.

        Raises:
            ProcessLookupError: it is not there.
        """
        numbers = self._there().numbers
        network = os.stat(f"/proc/{numbers[0]}/ns/net").st_ino
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                lines = (folder / "status").read_text().splitlines()
                its = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
                depth = len(numbers) - 1
                if its[depth : depth + 1] == [str(pid)] and os.stat(folder / "ns" / "net").st_ino == network:
                    return int(folder.name)
        raise ProcessLookupError(f"host {self.name} has no process {pid}")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let this thread speak from this host: sockets that it opens meanwhile are the host's, also after that.

        So do threads and processes that it starts meanwhile. Nothing else of the thread is on the host: it knows the
        other hosts by their addresses only.
        """
        with _namespace("thread-self") as before, _namespace(str(self._there().pid)) as there:
            _enter(there)
            try:
                yield
            finally:
                _enter(before)

    def kill(self, *, silently: bool = False) -> None:
        """Kill all its processes at once, whatever session they are in; returns when they are gone.

        Args:
            silently: whether the others hear nothing of it, as when a machine loses its power. If not, the kernel
                closes the connections of the processes that it kills, and the other ends notice at once.
        """
        inside, self._inside = self._there(), None
        self._killed.append(inside)
        if silently:
            self.port.fall_silent()
        inside.kill()
        self.port.remove()

    def freeze(self) -> None:
        """Stop all its processes; its kernel still answers pings and accepts connections. Returns when none runs."""
        self._there().freeze()

    def thaw(self) -> None:
        """Let the processes that `freeze` has stopped go on."""
        self._there().thaw()

    def restart(self) -> None:
        """Come back with the same name and address and no process; it is killed first, if it is up.

        What was wrong with its port still is.
        """
        if self.is_up:
            self.kill()
        self._boot()

    def close(self) -> None:
        """Kill it for good, and forget its processes; for when the network is gone."""
        if self._inside is not None:
            self._killed.append(self._inside)
            self._inside = None
        while self._killed:
            self._killed.pop().close()

    def _boot(self) -> None:
        sysctls = {f"net/ipv6/conf/{where}/accept_dad": "0" for where in ("all", "default")}
        inside = self._hub.inner({"name": self.name, "tmpfs": self._tmpfs, "sysctls": sysctls})
        try:
            self.port.plug(inside.numbers[1], f"02:00:00:00:00:{self._number:02x}")
            commands = ["link set lo up", "link set eth0 up", f"addr add {self.address6}/64 dev eth0 nodad"]
            if not self._only_six:
                commands.append(f"addr add {self.address4}/24 dev eth0")
            inside.run(["ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
        except BaseException:
            inside.close()
            raise
        self._inside = inside

    def _there(self) -> Namespaces:
        if self._inside is None:
            raise RuntimeError(f"host {self.name} was killed; restart it first")
        return self._inside


@contextmanager
def _namespace(process: str) -> Iterator[int]:
    fd = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns is there from Python 3.12 on
    if libc.setns(namespace, _CLONE_NEWNET) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"setns: {os.strerror(code)}")
