"""Environments that a machine builds itself since those of its server do not work on it (`MachineBuilder`).

The same builder as the server's, behind the same walls, from what the server has written down: the requirements, the
wheels that came with a job, and the exact versions that came out there.
"""

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from pliant.catalog.children.child import Child, ChildStopped
from pliant.catalog.children.work_folder import PREFIX, remove_strange
from pliant.catalog.environments.builder import BuildLimits, EnvironmentBuilder
from pliant.catalog.environments.environment import BuildOutcome
from pliant.catalog.environments.lock import LOCK_FILE
from pliant.catalog.environments.package_index import PackageIndex, index_variables
from pliant.cluster.link.messages import NodeRules
from pliant.cluster.mirror.grants import ENVIRONMENTS
from pliant.cluster.mirror.messages import IndexOptions
from pliant.core.confinement import RunAs
from pliant.core.errors import Unavailable
from pliant.entry.own_environment import base_environment, find_uv, own_platform
from pliant.entry.own_machine import homes
from pliant.entry.server.rooms.children import ConfinedChildren
from pliant.people.system_ids import BUILDERS

_log = logging.getLogger(__name__)

_PERSON: Final = "whoever runs it"
_NUM_SHOWN: Final = 12
_NUM_LINES: Final = 8
"""So many of the builder's last lines are told."""


def strangeness(rules: NodeRules) -> str:
    """Return why environments that the server has built do not work on this machine, in words; empty: they do."""
    if rules.platform is None:
        return ""
    return rules.platform.difference(own_platform(), os.path.realpath, os.path.isdir)


class MachineBuilder:
    """Builds environments on this machine; implements `pliant.cluster.mirror.building.EnvironmentMaker`.

    Args:
        rules: of the server.
        why: those of the server do not work here.
        env: what children get of the agent's environment.
        own: the agent's whole environment: what it says of indexes comes before what the server says.
    """

    def __init__(self, rules: NodeRules, why: str, *, env: Mapping[str, str], own: Mapping[str, str]) -> None:
        self._rules = rules
        self._why = why
        self._env = env
        self._own = index_variables(own)
        self._limits = BuildLimits()
        self._turns = threading.Semaphore(self._limits.num_builders)
        self._lock = threading.Lock()
        self._children: set[Child] = set()
        self._is_closed = self._is_cleared = False

    @property
    def key(self) -> str:
        """What of this machine decides what comes out of a build."""
        return sha256("\0".join(base_environment().facts).encode()).hexdigest()[:_NUM_SHOWN]

    def make(self, folder: Path, options: IndexOptions, user: RunAs | None) -> str:
        """Build an environment; return why it cannot be done, in words; empty: it is done."""
        what = f"the environment {folder.name:.{_NUM_SHOWN}} has to be built on this machine ({self._why}), and"
        try:
            lock = (folder / LOCK_FILE).read_text().splitlines()
        except OSError:
            return f"{what} the server has not written down its versions; build it anew with `pliant env rebuild`"
        child = Child()
        with self._lock:
            self._clear(folder.parent)
            if self._is_closed:
                child.stop("")
            self._children.add(child)
        try:
            with self._turns:
                outcome = self._builder(options, user, lock).build(child, folder.name, _PERSON)
        except ChildStopped as error:
            raise Unavailable("the agent ends, and builds no environment any more") from error
        except OSError as error:
            outcome = BuildOutcome(reason=f"it could not be built: {error.strerror or error}")
        finally:
            with self._lock:
                self._children.discard(child)
        if not outcome.reason:
            _log.info("the environment %.12s was built on this machine (%s)", folder.name, self._why)
            return ""
        hint = "see that this machine reaches the server's index of packages, or set PIP_INDEX_URL for its agent"
        return "\n".join((f"{what} {outcome.reason}; {hint}", *outcome.output[-_NUM_LINES:]))

    def close(self) -> None:
        """End what is being built, and build nothing more."""
        with self._lock:
            self._is_closed = True
            for child in self._children:
                child.stop("")

    def _clear(self, folder: Path) -> None:
        """Remove what builds of an earlier agent have left, which ended with it; under the lock."""
        if not self._is_cleared:
            for left in folder.glob(f"{PREFIX}*"):
                remove_strange(left)
        self._is_cleared = True

    def _builder(self, options: IndexOptions, user: RunAs | None, lock: list[str]) -> EnvironmentBuilder:
        base, home = base_environment(), Path(self._rules.home)
        builders = None if options.uid is None else RunAs(uid=options.uid)
        index = PackageIndex(
            variables={**options.variables, **self._own},
            files={name: content.encode() for name, content in options.files.items()},
        )
        isolation = ConfinedChildren(
            home=home,
            env=self._env,
            user_of=lambda name: builders if name == BUILDERS else user,
            reads=(*base.site, *self._rules.may_read),
            hides=homes(),
            is_off=self._rules.isolation == "off",
            required=self._rules.isolation == "required",
        )
        return EnvironmentBuilder(
            folder=home / ENVIRONMENTS,
            index=lambda: index,
            base=replace(base, constraints=(*base.constraints, *lock)),
            limits=self._limits,
            uv=find_uv(),
            isolation=isolation,
            closed=home,
        )
