"""Finds by a text whatever a caller sees: jobs, and everything that has a name.

Each kind is asked for the best that it has, so no kind keeps the others out. What a caller may not read, by role, token
or owner, is not looked at.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from pliant.api.found import FoundKind, FoundNoun, FoundNouns
from pliant.catalog.models.model import Model, Template
from pliant.catalog.sharing import visible_page
from pliant.core.access import Permission, Principal, VisibleJobs
from pliant.core.dataset import Dataset
from pliant.core.endpoint import Endpoint
from pliant.core.environment import Environment
from pliant.core.name_match import HOLDS, rank
from pliant.server.context import Context

_MAX_COMPARED: Final = 200
"""Of each kind whose names hold the text."""
_KINDS: Final[tuple[tuple[FoundKind, type[Any], Permission, Callable[[Any], str | None]], ...]] = (
    ("endpoint", Endpoint, Permission.ENDPOINTS_READ, lambda noun: "started" if noun.started else "stopped"),
    ("model", Model, Permission.MODELS_READ, lambda _: None),
    ("template", Template, Permission.MODELS_READ, lambda _: None),
    ("dataset", Dataset, Permission.DATA_READ, lambda noun: noun.state.value),
    ("environment", Environment, Permission.MODELS_READ, lambda _: None),
)
"""What the registry keeps with an owner: what it is called, who may read it, and its state."""


def find_nouns(context: Context, caller: Principal, visible: VisibleJobs | None, text: str, limit: int) -> FoundNouns:
    """Return what somebody sees whose name holds a text, the best first; of equal ones jobs first, the newest."""
    jobs = context.control.queries.find(text, limit, visible) if caller.may(Permission.JOBS_READ) else ()
    shown = [
        FoundNoun(kind="job", id=job.id, name=job.spec.name, state=job.state, detail=f"{job.owner}, {job.queue}")
        for job in jobs
    ]
    found = [*shown, *_kept(context, caller, text), *_searches(context, caller, text), *_pool(context, caller, text)]
    best = sorted(found, key=lambda one: _fit(text, one))
    return FoundNouns(found=tuple(best[:limit]))


def _fit(text: str, one: FoundNoun) -> int:
    fit = rank(text, one.id, one.name)
    return HOLDS if fit is None else fit  # a database may know more capital letters than we do


def _kept(context: Context, caller: Principal, text: str) -> Iterator[FoundNoun]:
    for kind, noun_type, permission, state_of in _KINDS:
        if caller.may(permission):
            page, _ = visible_page(context.registry, noun_type, caller, "", _MAX_COMPARED, text)
            for noun in (kept.noun for kept in page):
                yield FoundNoun(kind=kind, id=noun.name, name=noun.name, state=state_of(noun), detail=noun.owner)


def _searches(context: Context, caller: Principal, text: str) -> Iterator[FoundNoun]:
    if context.searches is not None and caller.may(Permission.JOBS_READ):
        page, _ = context.searches.page(caller, "", _MAX_COMPARED, part=text)
        for one in page:
            yield FoundNoun(kind="search", id=one.name, name=one.name, state=one.state, detail=one.owner)


def _pool(context: Context, caller: Principal, text: str) -> Iterator[FoundNoun]:
    """Yield queues and machines, which everybody sees, and users, whom only those see who manage them."""
    if caller.may(Permission.POOL_READ):
        queues = [(kept.noun.name, kept.noun.resource_group) for kept in context.control.queues.queues()]
        yield from _named("queue", text, queues)
        nodes = ((node.id, f"{len(node.slots)} slots") for node in context.control.queries.nodes())
        yield from _named("machine", text, nodes)
    if caller.may(Permission.USERS_WRITE):
        users = [kept.noun for kept in context.people.accounts.page("", _MAX_COMPARED, part=text)]
        yield from _named("user", text, ((user.name, user.role.value) for user in users))


def _named(kind: FoundKind, text: str, named: Iterable[tuple[str, str]]) -> Iterator[FoundNoun]:
    for name, detail in named:
        if rank(text, name) is not None:
            yield FoundNoun(kind=kind, id=name, name=name, detail=detail)
