"""What is wrong with a search that somebody wants: by itself, with what chooses its values, with people it names."""

from collections.abc import Iterable

from pliant.core.algorithm import AlgorithmCode
from pliant.core.errors import Problem
from pliant.core.search import SAMPLERS, SearchSettings
from pliant.core.search_rules import problems_of_settings
from pliant.core.shares import problems_of_shares
from pliant.tune.algorithm_rules import problem_of_name, problems_of_algorithm
from pliant.tune.searches.ports import SearchPorts


def algorithm_of(settings: SearchSettings, person: str, ports: SearchPorts) -> AlgorithmCode | None:
    """Return what somebody has installed to choose values for such a search of this person's, as it is now.

    None: its sampler is built in, or there is none of its name.
    """
    name = settings.sampler.name
    algorithm = None if name in SAMPLERS else ports.algorithms.find(name, person)
    return None if algorithm is None else algorithm.code


def problems_of_search(
    settings: SearchSettings, owner: str, algorithm: AlgorithmCode | None, ports: SearchPorts
) -> tuple[Problem, ...]:
    """Return all that is wrong with the settings of a search.

    Args:
        owner: whose it is.
        algorithm: what chooses its values; None: a sampler that is built in.
    """
    name = settings.sampler.name
    sampler: Iterable[Problem] = ()
    if algorithm is not None:
        sampler = problems_of_algorithm(settings, algorithm)
    elif name not in SAMPLERS:
        sampler = (problem_of_name(name, ports.algorithms.names(owner)),)
    shares = problems_of_shares(settings.shared_with, owner, ports.unknown_users)
    return (*problems_of_settings(settings), *ports.problems_of(settings), *sampler, *shares)
