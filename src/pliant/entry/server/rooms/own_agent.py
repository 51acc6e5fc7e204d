"""The agent of the server's own machine, where others may join: the server starts it, and it outlives the server.

It joins as any other machine does, with a token that the server makes for it, and is started again when it ends. A
machine of its name that is in the pool already is another one, or this one by an agent that somebody else starts, as
where a standby has taken over on a machine of the pool: then none is started here. A server that is told to end ends
it; one that is killed leaves it to the next server here, and it ends by itself if none comes in time.
"""

import logging
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pliant.cluster.launcher import AGENT, AgentLauncher, Launched, LaunchPlan
from pliant.control.requests.joining import JoiningRoom
from pliant.core.errors import PliantError
from pliant.core.joining import machine_name_fault

OWN: Final = "the server"
"""Who made the token with which its own machine joins, and takes out one of its name; no account has this name."""
TOKEN_S: Final = 60.0
"""So long a join token that a server makes for an agent is good; it is good for one name, once."""
_LOOK_S: Final = 0.5
_TOKEN_EVERY_S: Final = 20.0
"""After so long an agent that was given a token and still waits for one is given another."""

_log = logging.getLogger("pliant.machines")


class OwnAgent:
    """Keeps the agent of the server's own machine running."""

    def __init__(self, plan: LaunchPlan, folder: Path, room: JoiningRoom, *, program: Sequence[str] = AGENT) -> None:
        """Prepare; `start` starts.

        Args:
            plan: what the agent is started with.
            folder: the agent's own, on this machine.
            room: how machines join.
            program: to which the agent's options are added.
        """
        self._program = program
        self._plan = plan
        self._folder = folder
        self._room = room
        self._remove: Callable[[str], None] = lambda _name: None
        self._launcher: AgentLauncher | None = None
        self._stop = threading.Event()
        self._said = ""
        self._thread = threading.Thread(target=self._keep, name="own-agent", daemon=True)

    def start(self, remove: Callable[[str], None]) -> None:
        """Start the agent unless it runs, and again when it ends.

        Args:
            remove: takes a machine out of the pool; raises `PliantError` if it must not be.
        """
        self._remove = remove
        self._launcher = AgentLauncher(self._plan, self._folder, program=self._program)
        self._thread.start()

    def close(self) -> None:
        """End the agent; a task that lives goes on, for the next one."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._launcher is not None:
            self._launcher.close(end_agent=True)

    def _keep(self) -> None:
        assert self._launcher is not None, "it was started"
        token, pause = "", 0.0
        while not self._stop.wait(_LOOK_S):
            launched = self._launcher.look(self._plan.server, token)
            token, pause = "", max(0.0, pause - _LOOK_S)
            if launched.state == "waiting" and not pause:
                token = self._token()
                pause = _TOKEN_EVERY_S if token else 0.0
            self._note(launched)

    def _token(self) -> str:
        """Return a token for the agent; empty: it gets none now."""
        name = self._plan.machine
        try:
            known = self._room.joining.get(name)
            if known is not None and known.owner == OWN:  # its folder was lost: what it knew of its tasks, too
                self._remove(name)
                known = None
            if known is None:
                return short_token(self._room, OWN, name)
        except PliantError as error:
            self._say(f"the server's own machine cannot join its pool yet: {error}")
            return ""
        self._say(
            f"a machine called {name} is in the pool already, by an agent that no server has started: this one, or "
            f"another of its name; none is started here (--machine-name gives this one another name)"
        )
        return ""

    def _note(self, launched: Launched) -> None:
        if launched.state == "running":
            self._say("")
        elif launched.state == "ended" and launched.said:
            self._say(f"no agent runs on the server's own machine: {launched.said}; see {self._folder}/agent.log")

    def _say(self, trouble: str) -> None:
        """Write down what keeps the agent from running, whenever that changes."""
        if trouble and trouble != self._said:
            _log.warning("%s", trouble)
        self._said = trouble


def short_token(room: JoiningRoom, owner: str, machine: str) -> str:
    """Return the text of a join token for a machine of this name, good for a minute.

    Raises:
        PliantError: none can be made now.
    """
    made = room.joining.make_token(owner, machine=machine, valid_s=TOKEN_S, max_uses=1, pin=room.pin())
    return made.text


def own_machine_name() -> str:
    """Return what the server's own machine is called if nobody says so: as its host, if a machine can be called so."""
    name = socket.gethostname().partition(".")[0]
    return "server" if machine_name_fault(name) else name
