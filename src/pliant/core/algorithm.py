"""An algorithm of somebody's own, which chooses the values of searches: code that they have installed under a name.

What is made of it, and how it is run, is known to `pliant.catalog` and `pliant.entry` alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from annotated_types import Ge, Le, Len

from pliant.core.access import SharedWith
from pliant.core.input import FINITE, NO_NUL, NUMBER, Input
from pliant.core.parameter import Text

AlgorithmKind = Literal["ibm", "optuna"]
"""`ibm`: a class `PluginOptimizer`, as IBM's searches take it; `optuna`: a sampler of Optuna's kind."""
LogLevel = Literal["debug", "info", "warning", "error"]

ENTRY_FILES: Final[Mapping[AlgorithmKind, str]] = MappingProxyType({"ibm": "optimizer.py", "optuna": "sampler.py"})
"""Which file at the top of its code says of which kind it is."""


@dataclass(frozen=True, kw_only=True)
class AlgorithmSettings:
    """What people say of an algorithm, besides its name and its code. A field that is added here is one of REST and of
    the command line, too."""

    environment: Annotated[str, Input(Len(1, 100), NO_NUL)] | None = None
    """The name of an environment to run in; if left out, the server's own Python."""
    log_level: LogLevel = "info"
    """What its logger writes."""
    deadline_s: Annotated[float, Input(Ge(1), Le(86_400), FINITE, NUMBER)] = 300.0
    """So many seconds it may take for an answer; a search whose algorithm takes longer fails."""
    description: Text = ""
    shared_with: Annotated[SharedWith, Input(doc="Names of users; `*` is everybody.")] = ()
    """Who else may use it for searches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmCode:
    """One version of an algorithm: a search keeps to the one that it began with."""

    owner: str
    """Who has installed it, and as whom it runs."""
    kind: AlgorithmKind
    checksum: str
    """SHA-256 of the archive of its code, in hex; under it the archive is kept."""
    environment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm(AlgorithmSettings):
    """An installed algorithm."""

    KIND: ClassVar[str] = "algorithm"

    name: str
    owner: str
    """Who has installed it, and as whom it runs."""
    kind: AlgorithmKind
    checksum: str
    """SHA-256 of the archive of its code, in hex."""
    class_name: str = ""
    """What in its code chooses the values."""
    has_state: bool = False
    """It says itself what it continues from; else it is told again what it was told."""
    created_at: float = 0.0
    """When this version of it was installed."""

    @property
    def code(self) -> AlgorithmCode:
        """What a search keeps to that begins now."""
        return AlgorithmCode(owner=self.owner, kind=self.kind, checksum=self.checksum, environment=self.environment)
