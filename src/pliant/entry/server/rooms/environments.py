"""Environments when the server starts: builders that an earlier one has begun with are begun again."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.environments.builder import BuildLimits, EnvironmentBuilder
from pliant.catalog.environments.builds import Builds
from pliant.catalog.environments.package_index import read_index
from pliant.catalog.environments.use_cases import EnvironmentCatalog
from pliant.cluster.mirror.grants import ENVIRONMENTS
from pliant.cluster.mirror.messages import IndexOptions
from pliant.core.confinement import RunAs
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.entry.own_environment import base_environment, find_uv
from pliant.people.people import People


@contextmanager
def open_environments(
    registry: Registry, clock: Clock, home: Path, env: Mapping[str, str], people: People, children: ChildIsolation
) -> Iterator[EnvironmentCatalog]:
    """Yield the environments of a server's home; builders that a server before has begun with are begun again."""

    def unknown_users(names: Collection[str]) -> Collection[str]:
        return [name for name in names if not people.authenticator.has_user(name)]

    builder = EnvironmentBuilder(
        folder=home / ENVIRONMENTS,
        index=lambda: read_index(env),
        base=base_environment(),
        limits=BuildLimits(),
        uv=find_uv(),
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


def index_options(env: Mapping[str, str], builders: RunAs | None) -> IndexOptions:
    """Return how environments are built here, for machines that have to build some of them themselves.

    Raises:
        OSError, ValueError: a file that says where packages come from cannot be read, or is no text.
    """
    index = read_index(env)
    files = {name: content.decode() for name, content in index.files.items()}
    return IndexOptions(variables=index.variables, files=files, uid=None if builders is None else builders.uid)
