"""What the server is told about the walls around people's code: options, checked."""

import argparse
import ipaddress
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

from pliant.core.confinement import IsolationMode
from pliant.core.errors import InvalidInput, Problem, Unavailable
from pliant.core.plan import NodeView
from pliant.core.size import num_bytes_of, size
from pliant.isolation.users import FIRST_UID, LAST_UID
from pliant.isolation.variables import refusal

_log = logging.getLogger(__name__)

MODES: Final[tuple[IsolationMode, ...]] = ("auto", "required", "off")
MaxDisk = int | Literal["tenth", "off"]
"""What a job may have on the disk: bytes, a tenth of it, or as much as fits."""
SMALLEST_DISK: Final = 1 << 20
MIN_LOG_BYTES: Final = 1 << 20
_LARGEST_DISK: Final = 1 << 60
_LARGEST_UID: Final = (1 << 32) - 2
_OFF: Final = "off"
_WRITE: Final = ":rw"


def add_isolation(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    mode_help = "required: start no task where a wall around people's code is missing; off: build none (%(default)s)"
    parser.add_argument("--isolation", choices=MODES, default="auto", help=mode_help)
    uid_help = "ids of the operating system for people, one each, if the server is root's; `off`: none (%(default)s)"
    parser.add_argument("--uids", default=f"{FIRST_UID}-{LAST_UID}", metavar="FIRST-LAST", help=uid_help)
    allow_help = "a folder that everybody's code may read, with :rw also write, as its modes let it; may be repeated"
    parser.add_argument("--allow", action="append", default=[], metavar="PATH[:rw]", help=allow_help)
    disk_help = "what a job may have on this machine's disk, such as 500GiB, or off; default: a tenth of the disk"
    parser.add_argument("--max-disk", default=None, metavar="SIZE", help=disk_help)
    log_help = "what a task may have in its stdout, and in its stderr: beginning and end are kept; or off (%(default)s)"
    parser.add_argument("--max-log", default="256MiB", metavar="SIZE", help=log_help)
    trust_help = "serve several people beyond this machine though a wall around their code is missing"
    parser.add_argument("--trust-everyone", action="store_true", help=trust_help)
    pass_help = "a variable of the server's environment that everybody's code gets; may be repeated"
    parser.add_argument("--pass-env", action="append", default=[], metavar="NAME", help=pass_help)


def isolation_settings(given: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say, for `ServerSettings`."""
    return {
        "isolation": given.isolation,
        "uids": _uids(given.uids) if os.geteuid() == 0 and given.isolation != _OFF else None,
        "max_disk": _disk(given.max_disk),
        "max_log_bytes": _log_bytes(given.max_log),
        "may_read": tuple(_folder(path) for path in given.allow if not path.endswith(_WRITE)),
        "may_write": tuple(_folder(path) for path in given.allow if path.endswith(_WRITE)),
        "pass_env": tuple(given.pass_env),
        "trust_everyone": given.trust_everyone,
    }


def isolation_problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is wrong with the options."""
    if given.uids != _OFF and not _uids(given.uids):
        message = f"{given.uids!r:.80} is no range of ids; give FIRST-LAST, such as {FIRST_UID}-{LAST_UID}, or off"
        yield Problem(field="--uids", message=message)
    for path in given.allow:
        folder = os.path.expanduser(path.removesuffix(_WRITE))
        if not os.path.isabs(folder) or not os.path.exists(folder):
            yield Problem(field="--allow", message=f"{folder!r} is not there; give the whole path of one that is")
    yield from _disk_problems(given.max_disk)
    yield from _log_problems(given.max_log)
    for name in given.pass_env:
        if why := refusal(name):
            yield Problem(field="--pass-env", message=why)


def max_disk_bytes(given: MaxDisk, home: Path) -> int | None:
    """Return what a job may have on the disk that the state folder is on; None: as much as fits."""
    if given == "off":
        return None
    if given == "tenth":
        disk = os.statvfs(home)
        return disk.f_blocks * disk.f_frsize // 10
    return given


def is_address(text: str) -> bool:
    """Tell whether it is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Tell whether nobody beyond this machine reaches it."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def _folder(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path.removesuffix(_WRITE)))


def _disk(text: str | None) -> MaxDisk:
    if text is None:
        return "tenth"
    return "off" if text == _OFF else num_bytes_of(text, "--max-disk")


def _log_bytes(text: str) -> int | None:
    return None if text == _OFF else num_bytes_of(text, "--max-log")


def _log_problems(text: str) -> Iterator[Problem]:
    try:
        found = _log_bytes(text)
    except InvalidInput as error:
        yield from error.problems
        return
    if found is not None and found < MIN_LOG_BYTES:
        message = f"{text!r} is too little; give {size(MIN_LOG_BYTES)} or more, such as 256MiB, or off"
        yield Problem(field="--max-log", message=message)


def _disk_problems(text: str | None) -> Iterator[Problem]:
    try:
        found = _disk(text)
    except InvalidInput as error:
        yield from error.problems
    else:
        if isinstance(found, int) and not SMALLEST_DISK <= found <= _LARGEST_DISK:
            message = f"{text!r:.80} is out of range; give {size(SMALLEST_DISK)} or more, such as 500GiB, or off"
            yield Problem(field="--max-disk", message=message)


def _uids(text: str) -> range | None:
    first, _, last = text.partition("-")
    if text == _OFF or not (first.isdecimal() and last.isdecimal()):
        return None
    uids = range(int(first), int(last) + 1)
    return uids if uids and uids.start > 0 and uids.stop <= _LARGEST_UID else None


def check_walls(mode: IsolationMode, nodes: Iterable[NodeView]) -> None:
    """Do nothing if a server may start tasks on these nodes; say in the log which walls they lack.

    Raises:
        Unavailable: isolation is required, and a node lacks a wall.
    """
    for node in nodes:
        lacks = "; ".join(node.missing_walls)
        if lacks and mode == "required":
            raise Unavailable(
                f"isolation is required, and node {node.id} lacks a wall: {lacks}; mend that, or leave out "
                f"--isolation required"
            )
        if lacks:
            _log.warning("people's code is not kept apart on node %s: %s", node.id, lacks)
        else:
            _log.info("people's code is kept apart on node %s: %s", node.id, "; ".join(node.walls))


def why_alone(host: str, *, trusted: bool, nodes: Iterable[NodeView]) -> str:
    """Return why only one person may use a server, in words; empty if others may.

    Args:
        host: where it listens.
        trusted: its operator says that all people may harm each other.
        nodes: where tasks run.
    """
    lacks = [f"{node.id} ({'; '.join(node.missing_walls)})" for node in nodes if node.missing_walls]
    if trusted or not lacks or is_loopback(host):
        return ""
    return (
        f"this server listens on {host}, beyond this machine, and a script of one person could harm another's, since "
        f"walls are missing on {', '.join(lacks)}; mend that, or start it with --trust-everyone"
    )
