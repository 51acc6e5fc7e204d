"""The REST bodies and answers of algorithms that people have installed."""

from dataclasses import dataclass

from pliant.api.derive import settable
from pliant.api.request import Patch, Request
from pliant.api.view import fill, view
from pliant.core.algorithm import Algorithm, AlgorithmKind, AlgorithmSettings
from pliant.core.registry import CatalogName, Kept, Owned


class AlgorithmRequest(Request, AlgorithmSettings):
    """An algorithm to install; travels beside its packed code."""

    name: CatalogName

    def settings(self) -> AlgorithmSettings:
        """Return what is said of it besides its name."""
        return AlgorithmSettings(**{one.name: getattr(self, one.name) for one in settable(AlgorithmSettings)})


class AlgorithmPatch(Patch, of=AlgorithmSettings):
    """What of an algorithm to change; what is left out stays. The environment changes with the code alone."""

    described_by = "doc"
    can_be_none = frozenset({"environment"})


@view
class AlgorithmView(AlgorithmSettings, Owned):
    """An installed algorithm."""

    kind: AlgorithmKind
    """`ibm`: IBM's form (`optimizer.py`); `optuna`: a sampler of Optuna's kind (`sampler.py`)."""
    class_name: str
    """What in its code chooses the values."""
    has_state: bool
    """It says itself what it continues from; else it is told again what it was told."""
    checksum: str
    """SHA-256 of the archive of its code, in hex."""
    installed_at: float
    """When this version of it was."""
    changed_at: float
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmPage:
    """Algorithms in the order of their names; ask again with `after=next` for more."""

    algorithms: tuple[AlgorithmView, ...]
    next: str | None


def algorithm_view(kept: Kept[Algorithm]) -> AlgorithmView:
    """Return an algorithm as it is shown."""
    return fill(AlgorithmView, kept.noun, kept, installed_at=kept.noun.created_at)
