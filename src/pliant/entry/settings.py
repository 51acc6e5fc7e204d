"""What the server is told on its command line, checked; the one place that reads its environment."""

import argparse
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pliant.core.errors import InvalidInput, Problem
from pliant.core.plan import Policy, PolicyName

DEFAULT_PORT = 7311
DEFAULT_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What the server is told at its start."""

    home: Path
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0 takes any free one."""
    num_slots: int | None = None
    """None: one slot per GPU, or per CPU where there is none."""
    policy: Policy
    preload: tuple[str, ...] = ()
    """Modules that scripts import; they are imported once, before the first task, instead of in every task."""


def read_settings(argv: Sequence[str], env: Mapping[str, str]) -> ServerSettings:
    """Read the command line; ends the process with a usage message if it cannot be read.

    Raises:
        InvalidInput: a value is out of its range; all of them at once.
    """
    given = _parser(env).parse_args(argv)
    problems = [
        *_host_problems(given.host),
        *_range_problem("--port", given.port, 0, 65535),
        *(_range_problem("--slots", given.slots, 1, 4096) if given.slots is not None else ()),
        *_range_problem("--cooldown-s", given.cooldown_s, 0, 86400),
    ]
    if problems:
        raise InvalidInput(*problems)
    return ServerSettings(
        home=Path(given.home).expanduser().absolute(),
        host=given.host,
        port=given.port,
        num_slots=given.slots,
        preload=tuple(given.preload),
        policy=Policy(name=PolicyName(given.policy), cooldown_s=given.cooldown_s),
    )


def _parser(env: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pliant.entry.server", description="The Pliant server.")
    parser.add_argument("--home", default=env.get("PLIANT_HOME") or "~/.pliant", help="state folder (%(default)s)")
    parser.add_argument("--host", default=DEFAULT_HOST, help="loopback address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0 takes any free one (%(default)s)")
    parser.add_argument("--slots", type=int, help="share the CPU in so many slots; default: one per GPU or CPU")
    policies = [str(name) for name in PolicyName]
    parser.add_argument("--policy", choices=policies, default=str(PolicyName.FAIRSHARE), help="(%(default)s)")
    parser.add_argument("--cooldown-s", type=float, default=Policy().cooldown_s, help="(%(default)s)")
    preload_help = "import this module once, so that tasks need not; may be repeated"
    parser.add_argument("--preload", action="append", default=[], metavar="MODULE", help=preload_help)
    return parser


def _host_problems(host: str) -> list[Problem]:
    if host == "localhost" or _is_loopback(host):
        return []
    message = (
        f"{host!r} is no loopback address; until Pliant knows users it listens on this machine only: give 127.0.0.1 "
        f"and reach it from elsewhere through `ssh -L`"
    )
    return [Problem(field="--host", message=message)]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _range_problem(field: str, value: float, low: float, high: float) -> list[Problem]:
    if low <= value <= high:
        return []
    return [Problem(field=field, message=f"{value:g} is out of range; give {low:g} to {high:g}")]
