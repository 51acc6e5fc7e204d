"""What a search asks its adviser: values for the next trial, and whether a trial should go on (`Adviser`).

An adviser may be lost at any moment. What it needs to continue as if nothing had happened is in the trials and in the
state that its last answer came with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pliant.core.algorithm import AlgorithmCode
from pliant.core.errors import PliantError
from pliant.core.search import SearchSettings, Trial
from pliant.core.space import Values


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviserInput:
    """What an adviser is made from."""

    name: str
    """The search's."""
    settings: SearchSettings
    trials: tuple[Trial, ...] = ()
    """All that there are, by number."""
    state: str = ""
    """As the newest answer had it; empty for a new search."""
    algorithm: AlgorithmCode | None = None
    """What chooses the values; None: a sampler that is built in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Values for a trial."""

    values: Values
    state: str
    """JSON; what another adviser continues from."""
    attributes: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """What the sampler has noted with trials, by number, of those where it changed; also of the new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """There is nothing more to try."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether a trial should end here."""

    prune: bool
    reason: str = ""


class AdviserFailure(PliantError):
    """What chooses values raised, or answered with nonsense: the search cannot go on as it is."""


class AdviserLost(PliantError):
    """The adviser is gone or does not answer; another one may."""


class Adviser(Protocol):
    """Chooses values. `changed` are the trials that have changed since the last call, in the order of their numbers.

    Law: the answer is a function of the opening and of the calls before; and an adviser that is made anew, from the
    trials as they are now and from the newest state, answers the same.
    """

    def ask(self, number: int, changed: Sequence[Trial], given: Values | None = None) -> Asked | Exhausted:
        """Return values for the trial of this number, which is the number of trials so far.

        Args:
            given: what somebody wants to be tried; what is missing in it is chosen.

        Raises:
            AdviserFailure, AdviserLost: there is no answer.
        """
        ...

    def judge(self, number: int, changed: Sequence[Trial]) -> Judgement:
        """Return whether a trial should end after its newest report; of a search with a pruner.

        Raises:
            AdviserFailure, AdviserLost: there is no answer.
        """
        ...

    def importances(self) -> Mapping[str, float]:
        """Return how much of the differences in the first objective comes from each parameter; together 1.

        Parameters that only some trials have are not there.

        Raises:
            AdviserFailure, AdviserLost: there is no answer.
        """
        ...

    def close(self) -> None:
        """End it."""
        ...
