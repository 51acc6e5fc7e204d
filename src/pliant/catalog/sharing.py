"""Who sees and who may change what of the catalog: pages of a kind, and one of it by name.

What somebody does not see is not there for them: it is answered as a name that does not exist.
"""

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from types import MappingProxyType
from typing import Final, Protocol, TypeVar

from pliant.core.access import EVERYBODY, Principal, VisibleJobs
from pliant.core.dataset import Dataset
from pliant.core.errors import Forbidden, NotFound
from pliant.core.near_name import near_name
from pliant.core.registry import Kept, Noun, Registry, iterate_nouns

_MAX_COMPARED: Final = 1000
"""Names that one is compared with which does not exist."""
_IN_WORDS: Final = MappingProxyType({Dataset.KIND: "data set"})


class Shareable(Noun, Protocol):
    """A noun that its owner can let others see."""

    @property
    def shared_with(self) -> Collection[str]:
        """Users; `*` is everybody."""
        ...


N = TypeVar("N", bound=Noun)
S = TypeVar("S", bound=Shareable)


def take_page(
    found: Iterator[Kept[N]], is_shown: Callable[[N], bool], limit: int
) -> tuple[tuple[Kept[N], ...], str | None]:
    """Return the first `limit` that are to be shown, and the name of the last if there are more."""
    page: list[Kept[N]] = []
    for kept in found:
        if not is_shown(kept.noun):
            continue
        if len(page) == limit:
            return tuple(page), page[-1].noun.name
        page.append(kept)
    return tuple(page), None


def visible_page(
    registry: Registry, kind: type[S], caller: Principal, after: str, limit: int, part: str = ""
) -> tuple[tuple[Kept[S], ...], str | None]:
    """Return the first `limit` nouns after a name that somebody sees, and the name of the last if there are more.

    With `part` only those whose names hold it, whatever its capitals.
    """
    found = iterate_nouns(registry, kind, after=after, part=part)
    return take_page(found, lambda noun: _sees(caller, noun), limit)


def is_visible(noun: Shareable, visible: VisibleJobs | None) -> bool:
    """Tell whether somebody sees a noun; without a sight they see all."""
    shared = noun.shared_with
    return visible is None or visible.owner == noun.owner or visible.owner in shared or EVERYBODY in shared


def require_visible(registry: Registry, kind: type[S], caller: Principal, name: str) -> Kept[S]:
    """Return what the registry holds under this name.

    Raises:
        NotFound: there is nothing, or nothing that the caller sees.
    """

    kept = registry.get(kind, name)
    if kept is None or not _sees(caller, kept.noun):
        raise NotFound(no_such_name(registry, kind, name, lambda noun: _sees(caller, noun)))
    return kept


def _sees(caller: Principal, noun: Shareable) -> bool:
    return caller.sees(noun.owner, noun.shared_with) and caller.reaches(noun.KIND, noun.name)


def require_owner(caller: Principal, noun: Noun, what: str) -> None:
    """Refuse everybody but the owner, and those who run the server.

    Raises:
        Forbidden: it belongs to somebody else.
    """
    if not caller.owns(noun.owner):
        raise Forbidden(f"{what} belongs to {noun.owner!r}; ask them, or make one of your own")


def no_such_name(registry: Registry, kind: type[S], name: str, sees: Callable[[S], bool]) -> str:
    """Return in words that nothing somebody sees has this name, and which one they may have meant."""
    first = islice(iterate_nouns(registry, kind), _MAX_COMPARED)
    near = near_name(name, [kept.noun.name for kept in first if sees(kept.noun)])
    advice = "list them to see which you may use" if near is None else f"is {near!r} meant?"
    return f"there is no {_IN_WORDS.get(kind.KIND, kind.KIND)} {name!r:.80}; {advice}"
