"""Environments when the server starts: what its own interpreter is and has, which all of them build upon."""

import importlib.util
import platform
import site
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import metadata
from pathlib import Path

from uv import find_uv_bin

from pliant import __version__
from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.environments.builder import BuildLimits, EnvironmentBuilder
from pliant.catalog.environments.builds import Builds
from pliant.catalog.environments.environment import BaseEnvironment
from pliant.catalog.environments.use_cases import EnvironmentCatalog
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.people.people import People

_FOLDER = "environments"


@contextmanager
def open_environments(
    registry: Registry, clock: Clock, home: Path, env: Mapping[str, str], people: People, children: ChildIsolation
) -> Iterator[EnvironmentCatalog]:
    """Yield the environments of a server's home; builders that a server before has begun with are begun again."""

    def unknown_users(names: Collection[str]) -> Collection[str]:
        return [name for name in names if not people.authenticator.has_user(name)]

    builder = EnvironmentBuilder(
        folder=home / _FOLDER,
        env=env,
        base=base_environment(),
        limits=BuildLimits(),
        uv=_find_uv(),
        isolation=children,
        closed=home,
    )
    builds = Builds(registry=registry, clock=clock, builder=builder)
    builds.start()
    catalog = EnvironmentCatalog(registry=registry, clock=clock, env=env, builds=builds, unknown_users=unknown_users)
    try:
        yield catalog
    finally:
        catalog.close()
        builds.close()


def _find_uv() -> str:
    """Return the uv that was installed with Pliant, or else whichever the server's PATH has."""
    try:
        return find_uv_bin()
    except FileNotFoundError:
        return "uv"


@cache
def base_environment() -> BaseEnvironment:
    """Return what this interpreter lends to every environment that the server builds."""
    folders = _folders()
    versions = {name: _version(name) for name in ("pliant", "torch")}
    return BaseEnvironment(
        site=folders,
        constraints=tuple(f"{name}=={version}" for name, version in versions.items() if version),
        facts=(
            f"python {platform.python_version()} {sysconfig.get_config_var('SOABI')} {sys.base_prefix}",
            sysconfig.get_platform(),
            f"pliant {__version__}",
            f"torch {versions['torch']}",
            *folders,
        ),
    )


def _folders() -> tuple[str, ...]:
    """Return the folders of packages that this interpreter sees, and those of Pliant and torch wherever they are."""
    found = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    for name in ("pliant", "torch"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found.append(str(Path(spec.submodule_search_locations[0]).parent))
    return tuple(folder for folder in dict.fromkeys(found) if Path(folder).is_dir())


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
