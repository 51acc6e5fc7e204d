"""Control groups (version 2): all processes of a task together, whatever they do to get away, ended and limited as one.

A process cannot leave its group, nor can what it starts. `cgroup.kill` ends all of them at once and needs no
controller; limits need theirs. Groups are made below the one that this process is in, or below the root of the tree if
that is the root's and we may: `pliant-OWNER/TASK`. Where that is refused there are none.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html. Knows no task.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

_CONTROLLERS: Final = ("memory", "pids", "cpu")


class ControlGroups:
    """The groups of one owner."""

    def __init__(self, owner: str, *, parent: Path | None = None) -> None:
        """Make the folder of the groups; there are none if that is refused.

        Args:
            owner: names the folder; two owners on one machine have different names.
            parent: in a tree of groups; None: where this process may make some.
        """
        self._root: Path | None = None
        parent = parent or find_parent()
        if parent is None:
            return
        try:
            root = parent / f"pliant-{owner}"
            root.mkdir(exist_ok=True)
            if not (root / "cgroup.kill").exists():  # Linux 5.14
                raise OSError("this kernel cannot end a control group")
        except OSError as error:
            _log.info("tasks get no control groups: %s", error)
            return
        self._root = root
        self._enable(parent, root)

    def make(self, name: str, limits: Mapping[str, str]) -> str | None:
        """Make a group; return its folder, None if there are no groups.

        Args:
            name: a file name.
            limits: by file, such as `memory.max`; one whose controller is missing is left out.
        """
        if self._root is None:
            return None
        group = self._root / name
        try:
            group.mkdir(exist_ok=True)
        except OSError as error:
            _log.warning("task %s gets no control group: %s", name, error)
            return None
        for file, value in limits.items():
            with suppress(OSError):
                (group / file).write_text(value)
        return str(group)

    def close(self) -> None:
        """Remove the folder of the groups if it is empty."""
        if self._root is not None:
            with suppress(OSError):
                self._root.rmdir()

    @staticmethod
    def _enable(parent: Path, root: Path) -> None:
        for folder in (parent, root):
            for controller in _CONTROLLERS:
                with suppress(OSError):  # it is version 1's here, or not delegated
                    (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def join(group: str, pid: int) -> None:
    """Move a process into a group; do nothing if it or the group is gone. It has to be a child of this one.

    Else its number could be somebody else's by now. The kernel waits 10 ms or more if nothing was moved lately.
    """
    with suppress(OSError):
        Path(group, "cgroup.procs").write_text(str(pid))


def kill(group: str) -> None:
    """Send SIGKILL to all that is in a group."""
    with suppress(OSError):
        Path(group, "cgroup.kill").write_text("1")


def members(group: str) -> tuple[int, ...]:
    """Return the processes in a group; none if it is not there."""
    try:
        return tuple(map(int, Path(group, "cgroup.procs").read_text().split()))
    except OSError:
        return ()


def num_out_of_memory(group: str) -> int:
    """Return how many processes of a group the kernel has ended since it used too much memory."""
    try:
        events = Path(group, "memory.events").read_text().split()
    except OSError:  # the controller is missing
        return 0
    return int(dict(zip(events[::2], events[1::2], strict=False)).get("oom_kill", "0"))


def is_empty(group: str | None) -> bool:
    """Tell whether nothing lives in a group; one that is not there is empty."""
    if group is None:
        return True
    try:
        events = Path(group, "cgroup.events").read_text()
    except OSError:
        return True
    return "populated 0" in events


def remove(group: str) -> None:
    """Remove a group in which nothing lives, with those that its processes made in it."""
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)


def find_parent() -> Path | None:
    """Return a folder of the tree of version 2 in which this process may make groups; None if there is none."""
    return next((folder for folder in _candidates() if os.access(folder, os.W_OK | os.X_OK)), None)


def _candidates() -> Iterator[Path]:
    with suppress(OSError, StopIteration):
        tree = next(
            Path(line.split(b" ")[4].decode())
            for line in Path("/proc/self/mountinfo").read_bytes().splitlines()
            if line.partition(b" - ")[2].startswith(b"cgroup2 ")
        )
        own = next(line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
        yield tree / own.removeprefix("0::").lstrip("/")
