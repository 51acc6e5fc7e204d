"""What was made of environments that people register under names (`Build`).

Several names may stand for one build: a build is known by the digest of all that decides what comes out of it. Knows
no process and no folder.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from pliant.core.environment import EnvironmentKind

NUM_LINES: Final = 100
"""Lines of the builder's output that are kept with a build."""


class BuildState(StrEnum):
    """How far a build is."""

    BUILDING = "building"
    """Waits for a builder, is being built, or, made by somebody else, is being tried."""
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What was made, or found, for all environments of one key."""

    KIND: ClassVar[str] = "environment-build"

    name: str
    """The key: a digest of all that decides what comes out."""
    owner: str = ""
    """Who asked for it first, and as whom it is tried; also whose it is alone, if it holds wheels of theirs."""
    kind: EnvironmentKind
    source: str
    """For requirements: every line in its normal form; wheels of the code folder by name."""
    made_with: tuple[str, ...] = ()
    """What else decided what came out: versions, platform and places of the server that made it."""
    state: BuildState = BuildState.BUILDING
    python: str = ""
    """The whole path of its interpreter; empty before it is ready."""
    builder: str = ""
    """What built it, with its version, such as `pip 25.3`."""
    reason: str = ""
    """Why it failed: what happened and what to do."""
    output: tuple[str, ...] = ()
    """The last lines of what the builder printed, if it failed; secrets are masked."""
    fingerprint: str = ""
    """What somebody else made: how its files looked when it was tried."""
    num_bytes: int = 0
    """On the disk; 0 for what somebody else made."""
    began_at: float
    ended_at: float | None = None
    last_used_at: float | None = None
    """When a job was let through with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOutcome:
    """What came of a build or a try; `reason` is empty if it is good."""

    python: str = ""
    builder: str = ""
    fingerprint: str = ""
    num_bytes: int = 0
    reason: str = ""
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseEnvironment:
    """What all environments of this server have in common."""

    site: tuple[str, ...]
    """Folders of packages that they see after their own: those of the server's interpreter."""
    constraints: tuple[str, ...]
    """What no requirement may change: the versions of Pliant and of torch."""
    facts: tuple[str, ...]
    """All that decides what comes out besides the requirements: versions, platform, places."""


def last_lines(text: str, how_many: int = NUM_LINES) -> tuple[str, ...]:
    """Return the last lines of a text that say anything."""
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())[-how_many:]
