"""What of a kind somebody sees: pages of it, and one of it. What they do not see is not there for them."""

from collections.abc import Callable, Collection, Iterator
from typing import Protocol, TypeVar

from pliant.core.access import Principal
from pliant.core.errors import Forbidden, NotFound
from pliant.core.registry import Kept, Noun, Registry


class Shareable(Noun, Protocol):
    """A noun that its owner can let others see."""

    @property
    def shared_with(self) -> Collection[str]:
        """Users; `*` is everybody."""
        ...


N = TypeVar("N", bound=Noun)
S = TypeVar("S", bound=Shareable)

_PAGE = 200


def every(registry: Registry, kind: type[N], *, after: str = "", prefix: str = "") -> Iterator[Kept[N]]:
    """Yield all nouns of a kind in the order of their names, those after a name, whose name begins with `prefix`."""
    after = max(after, prefix)
    while page := registry.list(kind, after=after, limit=_PAGE):
        for kept in page:
            if not kept.noun.name.startswith(prefix):
                return
            yield kept
        after = page[-1].noun.name


def page_of(found: Iterator[Kept[N]], seen: Callable[[N], bool], limit: int) -> tuple[tuple[Kept[N], ...], str | None]:
    """Return the first `limit` that are seen, and the name of the last if there are more."""
    page: list[Kept[N]] = []
    for kept in found:
        if not seen(kept.noun):
            continue
        if len(page) == limit:
            return tuple(page), page[-1].noun.name
        page.append(kept)
    return tuple(page), None


def seen(caller: Principal, kept: Kept[S] | None, kind: str, name: str) -> Kept[S]:
    """Return what was found of this name.

    Raises:
        NotFound: nothing was, or nothing that they see.
    """
    if kept is None or not caller.sees(kept.noun.owner, kept.noun.shared_with):
        raise missing(kind, name)
    return kept


def owned(caller: Principal, noun: Noun, what: str) -> None:
    """Let only the owner, and who runs the server, go on.

    Raises:
        Forbidden: it belongs to somebody else.
    """
    if not caller.owns(noun.owner):
        raise Forbidden(f"{what} belongs to {noun.owner!r}; ask them, or make one of your own")


def missing(kind: str, name: str) -> NotFound:
    """Return the error for a name that is nobody's, or hidden."""
    return NotFound(f"there is no {kind} {name!r:.80}; list them to see which there are")
