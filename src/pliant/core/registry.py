"""Named things that people make and change (users, data sets, queues, …), each kept as a value with a revision."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from pliant.core.event import EventKind
from pliant.core.input import Input, Pattern

MAX_NAME = 200
"""Characters of a name."""
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""Of what people keep in the catalog."""
CatalogName = Annotated[
    str, Input(Pattern(NAME, "letters, digits, '.', '_' and '-', 100 at most, a letter or digit first"))
]
NAMED_BY_PEOPLE: Final = frozenset(
    {
        "algorithm",
        "dataset",
        "endpoint",
        "environment",
        "model",
        "queue",
        "resource_group",
        "template",
        "training",
        "user",
    }
)
"""Kinds in which no two names differ only by capital letters: people would take one for the other."""
OF_JOBS: Final = frozenset({"job share", "notice", "wmla-exec"})
"""Kinds whose nouns are about a job, and called like it: `job-3`, `job-3.mail`. They go when it is deleted."""
_PAGE: Final = 200


class Noun(Protocol):
    """A frozen dataclass with the class variable `KIND` and at least a name and an owner.

    A field that is added later needs a default: what was written before lacks it.
    """

    KIND: ClassVar[str]
    """Under which it is kept; never changes, one per class."""

    @property
    def name(self) -> str:
        """Unique within the kind."""
        ...

    @property
    def owner(self) -> str:
        """The user whose it is; empty for what belongs to nobody."""
        ...


@dataclass(frozen=True, kw_only=True)
class Owned:
    """What every noun that belongs to somebody begins with."""

    name: str
    owner: str


N = TypeVar("N", bound=Noun)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Generic[N]):
    """A noun as the registry keeps it."""

    noun: N
    revision: int
    """1 when it was added; grows by one with every change. Its `ETag`."""
    created_at: float
    """Seconds since the epoch (UTC), as every `_at`."""
    changed_at: float


class Registry(Protocol):
    """Keeps nouns. Safe to call from any thread and from several processes; what a call has written, every later call
    sees. Every call is one transaction, and has in it the event of what it changes (`pliant.core.noun_event`)."""

    def get(self, kind: type[N], name: str) -> Kept[N] | None: ...

    def list(
        self, kind: type[N], *, owner: str | None = None, after: str = "", limit: int = 1000, part: str = ""
    ) -> Sequence[Kept[N]]:
        """Return nouns in the order of their names; `after` is the last name of the page before.

        With `part` only those whose names hold that text, whatever its capitals.
        """
        ...

    def newest(self, kind: type[N], *, before: tuple[float, str] | None, limit: int) -> Sequence[Kept[N]]:
        """Return nouns, the last added first; `before` is when the last of the page before was added, and its name."""
        ...

    def add(self, noun: N, *, at: float) -> Kept[N]:
        """Keep a new noun.

        Raises:
            Conflict: the name is taken, or differs from another one only by capital letters.
        """
        ...

    def replace(self, noun: N, *, at: float, revision: int | None = None) -> Kept[N]:
        """Replace the noun of this name.

        Raises:
            NotFound: there is none.
            Stale: it is not at `revision` any more; None replaces it whatever it is.
        """
        ...

    def remove(self, kind: type[N], name: str, *, revision: int | None = None) -> None:
        """Forget a noun.

        Raises:
            NotFound, Stale: as for `replace`.
        """
        ...

    def announce(self, kind: type[N], name: str, *, at: float) -> None:
        """Write the event of a change of a noun whose record stays as it is, such as how far its import is.

        Of a noun that is not there, nothing.
        """
        ...

    def announce_to(self, user: str, kind: EventKind, *, at: float) -> None:
        """Write an event that only this user reads, such as that their uploads have come further."""
        ...

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after events of nouns, or of searches, were stored; from any thread. Returns what ends it."""
        ...


def iterate_nouns(
    registry: Registry, kind: type[N], *, owner: str | None = None, after: str = "", prefix: str = "", part: str = ""
) -> Iterator[Kept[N]]:
    """Yield all nouns of a kind in the order of their names; reads page by page.

    Args:
        registry: where they are kept.
        kind: which nouns.
        owner: only those of this user.
        after: only those with a later name.
        prefix: only those whose name begins with this, and goes on.
        part: only those whose name holds this, whatever its capitals.
    """
    after = max(after, prefix)
    while page := registry.list(kind, owner=owner, after=after, limit=_PAGE, part=part):
        for kept in page:
            if not kept.noun.name.startswith(prefix):
                return
            yield kept
        if len(page) < _PAGE:
            return
        after = page[-1].noun.name


Outcome = Literal["done", "refused", "failed"]
"""Of what the audit log has: answered below 400; refused to the caller (400 to 499); failed by the server's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who did or tried what. Never changes; holds no secret."""

    at: float
    who: str
    """A user's name; empty for nobody."""
    action: str
    """Such as `POST /v1/jobs` or `log on`."""
    target: str = ""
    """What it was done to, if that is not in the action."""
    status: int
    """The HTTP status that it was answered with."""
    address: str = ""
    """Where the request came from."""
    seq: int = 0
    """Its number; given by the log."""


class AuditLog(Protocol):
    """Keeps what was done, in order."""

    def append(self, entry: AuditEntry) -> AuditEntry:
        """Write an entry; return it with its number."""
        ...

    def entries(
        self,
        *,
        before: int | None = None,
        who: str | None = None,
        text: str | None = None,
        outcome: Outcome | None = None,
        limit: int = 100,
    ) -> Sequence[AuditEntry]:
        """Return entries, newest first; `before` is the last number of the page before.

        `text` is a part of what was done, or of what it was done to, whatever its capitals.
        """
        ...

    def forget_refusals(self, *, before: float) -> None:
        """Remove entries of requests that were refused (400 and above) to callers without a name, and are older."""
        ...
