"""Searches when the server starts: their use cases, who keeps them going, and the processes that choose values.

A server that is killed leaves trials running; what keeps their search going is made anew from the store.
"""

import os
import threading
from dataclasses import dataclass

from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.environments.use_cases import EnvironmentCatalog
from pliant.control.loop.tick import Control
from pliant.core.ports import Clock
from pliant.entry.server.rooms.algorithms import AlgorithmRoom, open_algorithms
from pliant.entry.server.settings import ServerSettings
from pliant.isolation.variables import allowed
from pliant.people.people import People
from pliant.server.search_jobs import SearchRoom, make_searches
from pliant.store.sql import SqlStore
from pliant.tune.advice import Adviser, AdviserInput
from pliant.tune.adviser_process import AdviserProcess, own_program
from pliant.tune.searches.ports import AdviserSource


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRoom:
    """All that keeps searches, of one server."""

    room: SearchRoom
    algorithms: AlgorithmRoom

    def start(self) -> None:
        """Keep searches going from now on."""
        self.room.sweep()
        self.algorithms.start([search.name for search in self.room.book.all()])
        threading.Thread(target=self.room.keeper.run, name="pliant-searches", daemon=True).start()

    def close(self) -> None:
        """Decide nothing more."""
        self.room.keeper.close()


def open_tuning(
    settings: ServerSettings,
    store: SqlStore,
    clock: Clock,
    control: Control,
    people: People,
    environments: EnvironmentCatalog,
    children: ChildIsolation,
) -> TuningRoom:
    """Return what keeps searches; nothing runs before it is started, and no process before there is a search."""
    env, knows = allowed(os.environ, settings.pass_env), people.authenticator.has_user
    home = control.settings.home

    def open_adviser(opening: AdviserInput) -> Adviser:
        if opening.algorithm is None:
            return AdviserProcess(opening, own_program(opening, env))
        return algorithms.open_adviser(opening, opening.algorithm)

    algorithms = open_algorithms(
        store.registry, clock, home, environments, children, knows, lambda: room.hold_unended()
    )

    room = make_searches(
        store.searches,
        clock,
        control,
        knows,
        advisers=AdviserSource(open=open_adviser, algorithms=algorithms.requests),
        new_name=lambda: f"search-{store.next_id('search')}",
    )
    control.subscribe(room.keeper.wake)
    return TuningRoom(room=room, algorithms=algorithms)
