"""Environments for tests: the real uv builds them, and knows of no packages but the wheels that tests make."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.catalog.environments.wheels import offline, tiny_wheel
from tests.databases import new_sqlite
from uv import find_uv_bin

from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.environments.builder import BuildLimits, EnvironmentBuilder
from pliant.catalog.environments.builds import Builds
from pliant.catalog.environments.package_index import read_index
from pliant.catalog.environments.use_cases import EnvironmentCatalog
from pliant.core.access import Principal, Role
from pliant.core.confinement import RunAs
from pliant.core.job import Job, JobId, JobSpec
from pliant.core.lifecycle import JobState
from pliant.core.ports import Clock
from pliant.core.preparation import Preparation, Prepared, Preparing, Unpreparable
from pliant.entry.clock import SystemClock
from pliant.entry.own_environment import base_environment
from pliant.entry.server.rooms.children import ConfinedChildren
from pliant.isolation.variables import allowed
from pliant.store.sql import SqlStore

ADA, BOB = (Principal(name=name, role=Role.USER) for name in ("ada", "bob"))
UserOf = Callable[[str], RunAs | None]
PATIENCE_S = 120.0
"""For a busy machine; a build takes a few seconds."""


class World:
    """EnvironmentCatalog in a folder, with a store of their own; may be opened again after an end."""

    def __init__(
        self,
        folder: Path,
        user_of: UserOf = lambda _: None,
        *,
        walls: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self.user_of = user_of
        self.walls = walls
        self.home = folder / "home"
        self.wheels = folder / "wheels"
        self.code = folder / "code"
        self.clock = clock or SystemClock()
        self.store = SqlStore(new_sqlite(folder))
        self.num_jobs = 0
        tiny_wheel(self.wheels)
        self.code.mkdir(exist_ok=True)
        self.env = {**os.environ, **offline(self.wheels), "SOME_URL": "https://bob:hunter2@example.org/simple"}
        self.env["PIP_FIND_LINKS"] += f" {self.wheels / 'more'}"
        tiny_wheel(self.wheels / "more", name="otherthing")
        for version in ("1.0", "2.0rc1"):
            tiny_wheel(self.wheels / "more", name="prething", version=version)
        self.env |= {"UV_NO_CONFIG": "1"}
        self.open()

    def open(self) -> None:
        self.done = threading.Event()
        builder = a_builder(self.folder, self.env, user_of=self.user_of, walls=self.walls)
        self.builds = Builds(registry=self.store.registry, clock=self.clock, builder=builder)
        self.environments = EnvironmentCatalog(
            registry=self.store.registry,
            clock=self.clock,
            env=self.env,
            builds=self.builds,
            unknown_users=lambda names: [name for name in names if name not in ("ada", "bob")],
        )
        self.environments.watch(self.done.set)
        self.builds.start()

    def close(self) -> None:
        self.environments.close()
        self.builds.close()
        self.store.close()

    def job(self, environment: str, owner: str = "ada") -> Job:
        self.num_jobs += 1
        spec = JobSpec(name="x", script="train.py", virtual_workers=1, environment=environment)
        return Job(
            id=JobId(f"job-{self.num_jobs}"),
            spec=spec,
            owner=owner,
            state=JobState.PENDING,
            priority=1,
            min_tasks=1,
            max_tasks=1,
            submitted_at=self.clock.now(),
        )

    def requirements(self, text: str, name: str = "requirements.txt") -> str:
        (self.code / name).write_text(text)
        return f"requirements:{name}"

    def status(self, job: Job) -> Preparation:
        return self.environments.status(job, str(self.code))

    def until_begun(self, job: Job) -> Preparation:
        """Ask until the requirements of a job were read."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.status(job)) == Preparing(why="its requirements are being read"):
            assert time.monotonic() < deadline, found
            self.done.wait(0.2)
            self.done.clear()
        return found

    def until_known(self, job: Job) -> Prepared | Unpreparable:
        """Ask whenever something is done, as control does."""
        deadline = time.monotonic() + PATIENCE_S
        while isinstance(found := self.status(job), Preparing):
            assert time.monotonic() < deadline, found
            self.done.wait(0.2)
            self.done.clear()
        return found

    def folders(self) -> list[Path]:
        return sorted(path for path in self.home.joinpath("environments").iterdir() if not path.name.startswith("."))


def a_builder(
    folder: Path,
    env: Mapping[str, str],
    uv: str | None = None,
    user_of: UserOf = lambda _: None,
    walls: bool = True,
    isolation: ChildIsolation | None = None,
    **limits: float,
) -> EnvironmentBuilder:
    """Return a builder that builds in a folder of the home in this one."""
    home = folder / "home"
    (home / "environments").mkdir(parents=True, exist_ok=True)
    return EnvironmentBuilder(
        folder=home / "environments",
        index=lambda: read_index(env),
        base=base_environment(),
        limits=BuildLimits(**limits),  # type: ignore[arg-type]
        uv=find_uv_bin() if uv is None else uv,
        isolation=isolation or ConfinedChildren(home=home, env=allowed(env), user_of=user_of, is_off=not walls),
        closed=home,
    )
