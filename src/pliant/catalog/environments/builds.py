"""One build for every key: begun when it is first asked for, kept in the registry, and resumed after a restart.

A virtual environment cannot be moved, so it is built where it stays. It counts from the moment in which its record in
the registry says `ready`: that is written after all of it is on the disk and its interpreter was tried. This module
knows no job and no environment by name.
"""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from pliant.catalog.children.child import Child
from pliant.catalog.children.queue import ChildQueue
from pliant.catalog.children.reach import AsBuilder, AsPerson
from pliant.catalog.children.work_folder import remove_strange
from pliant.catalog.environments.builder import CACHE, EnvironmentBuilder
from pliant.catalog.environments.environment import Build, BuildOutcome, BuildState
from pliant.catalog.environments.lock import write_lock
from pliant.catalog.environments.look_program import Place
from pliant.catalog.environments.requirements import WHEELS, Requirements
from pliant.core.environment import Environment, EnvironmentKind
from pliant.core.errors import PliantError
from pliant.core.ports import Clock
from pliant.core.registry import Registry, iterate_nouns
from pliant.files.space import cause_of
from pliant.files.untrusted.removal import empty_trash

log = logging.getLogger(__name__)

_STALE_S: Final = 60.0
"""What somebody else made is good for so long after it was tried, or was looked at and had not changed."""
_OPEN_FOLDER: Final = 0o755
_OPEN_FILE: Final = 0o644
_LINE_S: Final = 2.0
"""The newest line of a log is read again after this time: it is stored with every job that waits for the build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """A build that is wanted."""

    key: str
    kind: EnvironmentKind
    source: str
    person: str
    """Who asks for it; it is tried as them, and what holds files of theirs is built as them."""
    path: str = ""
    """Where it lies, if somebody else made the environment."""
    is_offered: bool = False
    """The operator's own environment names that place."""
    requirements: Requirements | None = None
    """None if they lie in the folder of the build already."""


class Builds:
    """Safe to call from any thread; no call waits for a build."""

    def __init__(self, *, registry: Registry, clock: Clock, builder: EnvironmentBuilder) -> None:
        self._registry = registry
        self._clock = clock
        self._builder = builder
        self._folder = builder.folder
        self.base = builder.base
        self.closed = builder.prober.closed
        self._lock = threading.RLock()
        self._known: dict[str, Build] = {}
        """What the registry holds of builds that were asked for; only this process changes them."""
        self._looks: dict[tuple[EnvironmentKind, str], tuple[float, str]] = {}
        """When what somebody else made was looked at last, and its fingerprint then; by what it is and where."""
        self._lines: dict[str, tuple[float, str]] = {}
        self._listeners: list[Callable[[], None]] = []
        self._lookers = threading.BoundedSemaphore(builder.limits.num_probes)
        self._builders = ChildQueue(builder.limits.num_builders, "pliant-build")
        self._probers = ChildQueue(builder.limits.num_probes, "pliant-probe")

    def start(self) -> None:
        """Go on with what a server before had begun, and remove what belongs to no build."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(OSError):
            empty_trash(self._folder)
        known = set()
        for kept in tuple(iterate_nouns(self._registry, Build)):
            build = kept.noun
            if build.state is not BuildState.BUILDING:
                known.add(build.name)
            elif self.is_laid_out(build.name) and build.owner:
                known.add(build.name)
                self._build(build.name, build.owner)
            else:
                self._registry.remove(Build, build.name)
        for folder in self._folder.iterdir():
            if folder.name not in known and folder.name != CACHE:
                log.info("removes %s: it belongs to no environment", folder)
                remove_strange(folder)

    def close(self) -> None:
        """End all builders; the next server begins again what they were at."""
        self._builders.close()
        self._probers.close()

    def watch(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a build is done, from any thread."""
        self._listeners.append(listener)

    def notify(self) -> None:
        """Tell all listeners that something is done."""
        for listener in self._listeners:
            listener()

    def is_active(self, key: str) -> bool:
        """Tell whether a build waits, is built or is tried."""
        return self._builders.is_active(key) or self._probers.is_active(key)

    def is_laid_out(self, key: str) -> bool:
        """Tell whether the folder of a build holds what it is made from."""
        return (self._folder / key / "requirements.txt").is_file()

    def get(self, key: str) -> Build | None:
        """Return a build as it stands."""
        with self._lock:
            if key not in self._known and (kept := self._registry.get(Build, key)) is not None:
                self._known[key] = kept.noun
            return self._known.get(key)

    def _put(self, build: Build) -> Build:
        """Write a build down; under the lock."""
        now = self._clock.now()
        if self.get(build.name) is None:
            self._registry.add(build, at=now)
        else:
            self._registry.replace(build, at=now)
        self._known[build.name] = build
        return build

    def ask(self, work: BuildRequest, *, first: bool) -> Build:
        """Return the build of this key, begun now if there is none or it does not count any more.

        Args:
            work: what to do.
            first: it is asked for the first time for this job: one that failed for another job is begun again.

        Raises:
            OSError: there is no room for it.
        """
        with self._lock:
            build = self.get(work.key)
            if build is None or self._is_outdated(build, work, first):
                return self._begin(work)
            return build

    def again(self, work: BuildRequest) -> Build:
        """Begin a build anew, whether it failed or is ready; one that is being built goes on.

        Raises:
            OSError: there is no room for it.
        """
        with self._lock:
            build = self.get(work.key)
            return build if build is not None and self.is_active(work.key) else self._begin(work)

    def _announce(self, key: str) -> None:
        """Say of all environments that a build makes that they have changed."""
        with suppress(PliantError):
            for kept in iterate_nouns(self._registry, Environment):
                if kept.noun.key == key:
                    self._registry.announce(Environment, kept.noun.name, at=self._clock.now())

    def note_used(self, key: str) -> None:
        """Note that a job was let through with a build."""
        with self._lock:
            if (build := self.get(key)) is not None:
                self._put(replace(build, last_used_at=self._clock.now()))

    def forget(self, key: str) -> None:
        """Remove a build and its folder; one that is being built is not."""
        with self._lock:
            if self.get(key) is not None and not self.is_active(key):
                self._registry.remove(Build, key)
                self._known.pop(key, None)
                remove_strange(self._folder / key)

    def log(self, key: str) -> str:
        """Return the log of a build, the last megabyte at most; of what was only tried, what it said."""
        build = self.get(key)
        said = "\n".join(build.output) if build is not None else ""
        return self._builder.read_log(key, 1 << 20) or (f"{said}\n" if said else "")

    def progress(self, build: Build) -> str:
        """Return how far a build is, in words."""
        if build.kind is not EnvironmentKind.REQUIREMENTS:
            return f"tries whether {build.source} can run tasks"
        at = datetime.fromtimestamp(build.began_at, UTC).strftime("%H:%M:%S")
        if ahead := self._builders.num_ahead(build.name):
            return f"ordered at {at} UTC, {ahead} other{'s are' if ahead > 1 else ' is'} being built before it"
        line = self._line(build.name)
        return f"building since {at} UTC" + (f", uv says: {line}" if line else "")

    def _line(self, key: str) -> str:
        now = self._clock.now()
        at, line = self._lines.get(key, (0.0, ""))
        if not at <= now < at + _LINE_S:
            said = [line for line in self._builder.read_log(key).splitlines() if line.strip()]
            line = " ".join(said[-1].removeprefix("pliant: ").split())[:200] if said else ""
            self._lines[key] = (now, line)
        return line

    def _is_outdated(self, build: Build, work: BuildRequest, first: bool) -> bool:
        """Tell whether a build cannot be used any more and has to be begun anew; under the lock."""
        if build.state is BuildState.BUILDING:
            return not self.is_active(build.name)
        if build.state is BuildState.FAILED:
            return first
        if build.kind is EnvironmentKind.REQUIREMENTS:
            return build.made_with != self.base.facts or not os.path.lexists(build.python)
        return first and not (self._is_new(build.ended_at or 0.0) or self._is_unchanged(build, work))

    def _is_unchanged(self, build: Build, work: BuildRequest) -> bool:
        """Tell whether what somebody else made was seen a moment ago to be as it was when it was tried."""
        looked_at, fingerprint = self._looks.get((work.kind, work.path), (0.0, ""))
        same = fingerprint == build.fingerprint and build.made_with == self.base.facts
        return bool(fingerprint) and same and self._is_new(looked_at)

    def _is_new(self, at: float) -> bool:
        return 0.0 <= self._clock.now() - at <= _STALE_S

    def _begin(self, work: BuildRequest) -> Build:
        if work.kind is EnvironmentKind.REQUIREMENTS:
            self._lay_out(work)
        before = self.get(work.key)
        build = self._put(
            Build(
                name=work.key,
                owner=work.person,
                kind=work.kind,
                source=work.source,
                made_with=self.base.facts,
                began_at=self._clock.now(),
                last_used_at=None if before is None else before.last_used_at,
            )
        )
        self._announce(work.key)
        self._lines.pop(work.key, None)
        if work.kind is EnvironmentKind.REQUIREMENTS:
            self._build(work.key, work.person)
        else:
            self._probe(work)
        return build

    def _lay_out(self, work: BuildRequest) -> None:
        """Put what the builder needs into the folder of the build."""
        if work.requirements is None:
            return
        folder = self._folder / work.key
        remove_strange(folder)
        for each in (folder, folder / WHEELS):
            each.mkdir()
            each.chmod(_OPEN_FOLDER)  # builders and those who use it read it, and have other users than the server's
        for wheel in work.requirements.wheels:
            wheel.copy(folder / WHEELS / wheel.path.name)
            (folder / WHEELS / wheel.path.name).chmod(_OPEN_FILE)
        for name, lines in (("constraints", work.requirements.constraints), ("requirements", work.requirements.lines)):
            (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
            (folder / f"{name}.txt").chmod(_OPEN_FILE)

    def _build(self, key: str, person: str) -> None:
        def build(child: Child) -> BuildOutcome:
            outcome = self._builder.build(child, key, person)
            if not outcome.reason:
                write_lock(self._folder / key, self.base.site)
            return outcome

        self._builders.submit(key, lambda child: self._carry_out(key, child, lambda: build(child)))

    def _probe(self, work: BuildRequest) -> None:
        def probe(child: Child) -> BuildOutcome:
            prober, place = self._builder.prober, Place(kind=work.kind.value, path=work.path)
            return prober.probe_place(child, place, work.person, is_offered=work.is_offered)

        self._probers.submit(work.key, lambda child: self._carry_out(work.key, child, lambda: probe(child)))

    def look(self, work: BuildRequest) -> None:
        """Look whether what somebody names can be used, and wait for the answer; what is built needs no look.

        It is looked as the person who asks. If that is not known yet, whoever builds looks: they can reach no more than
        any person.

        Raises:
            EnvironmentNotFound: it cannot be used.
            OSError: nobody can look.
        """
        if work.kind is EnvironmentKind.REQUIREMENTS:
            return
        user = AsPerson(work.person) if work.person else AsBuilder()
        with self._lookers:
            place = Place(kind=work.kind.value, path=work.path)
            sight = self._builder.prober.look(Child(), place, user, is_offered=work.is_offered)
        with self._lock:
            now = self._clock.now()
            self._looks = {one: look for one, look in self._looks.items() if self._is_new(look[0])}
            self._looks[work.kind, work.path] = now, sight["fingerprint"]

    def _carry_out(self, key: str, child: Child, make: Callable[[], BuildOutcome]) -> None:
        try:
            outcome = make()
        except (OSError, PliantError, ValueError) as error:
            log.exception("the environment %s could not be made", key)
            outcome = BuildOutcome(reason=f"it could not be made ({cause_of(error)}); see the log of the server")
        if not child.is_stopped:
            self._finish(key, outcome)

    def _finish(self, key: str, outcome: BuildOutcome) -> None:
        with self._lock:
            build = self.get(key)
            if build is None:
                return
            state = BuildState.FAILED if outcome.reason else BuildState.READY
            found = {
                name: getattr(outcome, name)
                for name in ("python", "builder", "fingerprint", "num_bytes", "reason", "output")
            }
            self._put(replace(build, state=state, ended_at=self._clock.now(), **found))
            self._lines.pop(key, None)
            for queue in (self._builders, self._probers):
                queue.release(key)  # from here on a listener can ask for it anew
        log.info("environment %.12s is %s%s", key, state.value, f": {outcome.reason}" if outcome.reason else "")
        self._announce(key)
        self.notify()
