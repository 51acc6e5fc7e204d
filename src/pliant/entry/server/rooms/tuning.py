"""Searches when the server starts: their use cases, who keeps them going, and the processes that choose values.

A server that is killed leaves trials running; what keeps their search going is made anew from the store.
"""

import os
import threading
from dataclasses import dataclass

from pliant.control.loop.tick import Control
from pliant.core.ports import Clock
from pliant.entry.server.settings import ServerSettings
from pliant.isolation.variables import allowed
from pliant.people.people import People
from pliant.server.search_jobs import SearchRoom, make_searches
from pliant.store.sql import SqlStore
from pliant.tune.advice import Adviser, AdviserInput
from pliant.tune.adviser_process import AdviserProcess, own_program


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRoom:
    """All that keeps searches, of one server."""

    room: SearchRoom

    def start(self) -> None:
        """Keep searches going from now on."""
        self.room.sweep()
        threading.Thread(target=self.room.keeper.run, name="pliant-searches", daemon=True).start()

    def close(self) -> None:
        """Decide nothing more."""
        self.room.keeper.close()


def open_tuning(
    settings: ServerSettings, store: SqlStore, clock: Clock, control: Control, people: People
) -> TuningRoom:
    """Return what keeps searches; nothing runs before it is started, and no process before there is a search."""
    env = allowed(os.environ, settings.pass_env)

    def open_adviser(opening: AdviserInput) -> Adviser:
        return AdviserProcess(opening, own_program(opening, env))

    room = make_searches(
        store.searches,
        clock,
        control,
        people.authenticator.has_user,
        open_adviser=open_adviser,
        new_name=lambda: f"search-{store.next_id('search')}",
    )
    control.subscribe(room.keeper.wake)
    return TuningRoom(room=room)
