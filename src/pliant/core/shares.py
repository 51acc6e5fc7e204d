"""What a list of people may be that something is shared with."""

from collections.abc import Callable, Collection, Sequence

from pliant.core.access import EVERYBODY
from pliant.core.errors import Problem


def problems_of_shares(
    shared_with: Sequence[str], owner: str, unknown: Callable[[Collection[str]], Collection[str]]
) -> tuple[Problem, ...]:
    """Return what is wrong with a list of people that something shall be shared with.

    Args:
        unknown: returns those of some names that no user has.
    """
    strangers = set(unknown([name for name in shared_with if name != EVERYBODY]))
    problems = []
    for index, name in enumerate(shared_with):
        field = f"shared_with.{index}"
        if name in strangers:
            problems.append(Problem(field=field, message=f"no user is named {name!r}; ask them for their name"))
        elif name == owner:
            problems.append(Problem(field=field, message=f"{name!r} owns it and sees it anyway; leave it out"))
    return tuple(problems)
