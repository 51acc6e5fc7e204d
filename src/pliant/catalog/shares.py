"""Whether something can be shared with these people."""

from collections.abc import Callable, Collection, Sequence

from pliant.core.access import EVERYBODY
from pliant.core.errors import Problem


def check_shares(
    shared_with: Sequence[str], owner: str, unknown: Callable[[Collection[str]], Collection[str]]
) -> tuple[Problem, ...]:
    """Return what is wrong with a list of people.

    Args:
        unknown: returns those of some names that no user has.
    """
    strangers = set(unknown([name for name in shared_with if name != EVERYBODY]))
    problems = []
    for place, name in enumerate(shared_with):
        field = f"shared_with.{place}"
        if name in strangers:
            problems.append(Problem(field=field, message=f"no user is named {name!r}; ask them for their name"))
        elif name == owner:
            problems.append(Problem(field=field, message=f"{name!r} owns it and sees it anyway; leave it out"))
    return tuple(problems)
