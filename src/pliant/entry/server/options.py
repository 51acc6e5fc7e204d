"""Which options a server was started with, as its operators may see them: from where each came, and no secret."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pliant.core.secret_names import HIDDEN, hide_password, names_secret
from pliant.core.server_option import OptionSource, ServerOption
from pliant.entry.server.database import VARIABLE, display_url

_OF_ONE_START: Final = frozenset({"login_fd", "reset_admin"})
"""They say how a server begins, not how it is."""


def read_options(
    parser: argparse.ArgumentParser, argv: Sequence[str], env: Mapping[str, str], database: str
) -> tuple[ServerOption, ...]:
    """Return all options in the order of their names. Values that only repeat a default count as the default."""
    values = vars(parser.parse_args(argv))
    unset = argparse.Namespace(**dict.fromkeys(values))
    given = {name for name, value in vars(parser.parse_args(argv, unset)).items() if value is not None}
    shown = {**values, "database": database}
    return tuple(_options(shown, {name for name in given if values[name] != parser.get_default(name)}, env))


def _options(values: Mapping[str, object], given: set[str], env: Mapping[str, str]) -> Iterator[ServerOption]:
    for name in sorted(values.keys() - _OF_ONE_START):
        source: OptionSource = "option" if name in given else "default"
        if source == "default" and _is_of_environment(name, env):
            source = "environment"
        option = f"--{name.replace('_', '-')}"
        yield ServerOption(name=option, value=_shown(name, values[name]), source=source)


def _is_of_environment(name: str, env: Mapping[str, str]) -> bool:
    return bool(env.get({"home": "PLIANT_HOME", "database": VARIABLE}.get(name, "")))


def _shown(name: str, value: object) -> str:
    match value:
        case None | False:
            return ""
        case True:
            return "yes"
        case list() | tuple():
            return ",".join(hide_password(str(one)) for one in value)
    if name == "database":
        return display_url(str(value))
    return HIDDEN if names_secret(name) else hide_password(str(value))
