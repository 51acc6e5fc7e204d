"""The room of Ray: the process that speaks to it, which is started again when it ends, and gets tokens for machines."""

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pliant.cluster.json_lines import LineSocket, decode, encode
from pliant.cluster.ray.messages import (
    FROM_RAY_PROCESS,
    BeginRay,
    FromRayProcess,
    GiveToken,
    RayLost,
    RayNode,
    RayNodesSeen,
    RayReached,
    ScaleRay,
    TokenWanted,
    ToRayProcess,
)
from pliant.core.errors import PliantError
from pliant.entry.server.rooms.companion import companion, hang_up
from pliant.entry.server.rooms.ray_machines import RayMachines, plain_line

RAY_LOG: Final = "ray.log"
_FIRST_PAUSE_S: Final = 1.0
_LAST_PAUSE_S: Final = 15.0
_SILENT_S: Final = 90.0
"""A process that has not reached Ray after so long is ended: Ray waits for a head that is gone."""
_LOOK_S: Final = 1.0
"""How often it is thought over what Ray's autoscaler is to be asked for."""
_END_S: Final = 5.0
PROGRAM: Final = (sys.executable, "-P", "-m", "pliant.entry.ray")

_log = logging.getLogger("pliant.ray")


class RayRoom:
    """Keeps agents on the nodes of a Ray cluster, by a process of its own."""

    def __init__(
        self, begin: BeginRay, token_for: Callable[[str], str], log: Path, *, program: Sequence[str] = PROGRAM
    ) -> None:
        """Prepare; `start` starts.

        Args:
            begin: what the process is asked for.
            token_for: makes a join token for a machine of this name, good for a minute.
            log: where the process writes what Ray says.
            program: of the process; the number of its socket comes after it.
        """
        self._begin = begin
        self._token_for = token_for
        self._log = log
        self._program = tuple(program)
        self._stop = threading.Event()
        self._channel: socket.socket | None = None
        self._nodes: tuple[RayNode, ...] = ()
        self._machines: RayMachines | None = None
        self._wish: ScaleRay | None = None
        """What the process was told last of what Ray's autoscaler is to be asked for."""
        self._looked_at: float | None = None
        """When that was thought over last; None: not since the process has told of nodes."""
        self._why_lost = ""
        self._thread = threading.Thread(target=self._keep, name="ray", daemon=True)

    def start(self, machines: RayMachines | None = None) -> None:
        """Start the process, and start it again whenever it ends.

        Args:
            machines: decides what Ray's autoscaler is asked for; None: nobody does.
        """
        self._machines = machines
        self._thread.start()

    def close(self) -> None:
        """End the process; agents and their launchers go on."""
        self._stop.set()
        self.hang_up()
        if self._thread.ident is not None:
            self._thread.join()

    def hang_up(self) -> None:
        """End the process that there is now; another one follows."""
        if (channel := self._channel) is not None:
            hang_up(channel)

    def _keep(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stop.is_set():
            reached = self._run()
            pause_s = _FIRST_PAUSE_S if reached else min(2 * pause_s, _LAST_PAUSE_S)
            self._stop.wait(pause_s)

    def _run(self) -> bool:
        """Run the process to its end; return whether it reached Ray."""
        with self._log.open("wb") as log, companion(self._program, log, end_s=_END_S) as ours:
            self._channel = ours
            try:
                return self._speak(ours)
            except (OSError, ValueError) as error:
                _log.warning("what the process that speaks to Ray said cannot be used: %s", error)
                return False
            finally:
                self._channel = None

    def _speak(self, channel: socket.socket) -> bool:
        lines, reached = LineSocket(channel), False
        _say(channel, self._begin)
        if self._wish is not None:  # what was let go stays so
            _say(channel, self._wish)
        self._looked_at = None
        channel.settimeout(_SILENT_S)
        while not self._stop.is_set():
            try:
                received = lines.receive()
            except TimeoutError:
                if reached:
                    self._look(channel)
                    continue
                _log.warning("Ray has not answered for %g s (%s); see %s", _SILENT_S, self._begin.address, self._log)
                return reached
            if received is None:
                if not self._why_lost and not self._stop.is_set():
                    self._lose(f"the process that speaks to Ray has ended; see {self._log}")
                break
            for line in received:
                message = decode(line, FROM_RAY_PROCESS)
                if isinstance(message, RayReached):
                    reached = True
                    channel.settimeout(_LOOK_S)
                self._take(message, channel)
            self._look(channel)
        return reached

    def _look(self, channel: socket.socket) -> None:
        """Say what Ray's autoscaler is to be asked for, if it is time to think it over, and if it is something else."""
        now = time.monotonic()
        if self._machines is None or self._looked_at is None or now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        try:
            wish = self._machines.look(self._nodes, now)
        except PliantError as error:
            _log.warning("nothing can be decided on the machines of Ray's now, it is tried again: %s", error)
            return
        if wish is not None and wish != self._wish:
            if self._wish is None or wish.num_machines != self._wish.num_machines:
                asked = ", ".join(f"{num} with {resource}" for resource, num in wish.num_machines.items())
                _log.info("Ray's autoscaler is asked for so many machines in all: %s", asked)
            self._wish = wish
            _say(channel, wish)

    def _take(self, message: FromRayProcess, channel: socket.socket) -> None:
        if isinstance(message, RayReached):
            self._why_lost = ""
            _log.info("agents are started on the nodes of Ray at %s", message.address)
        elif isinstance(message, RayLost):
            self._lose(message.reason)
        elif isinstance(message, RayNodesSeen):
            self._note(message.nodes)
            if self._looked_at is None:
                self._looked_at = -_LOOK_S
        elif isinstance(message, TokenWanted):
            try:
                token = self._token_for(message.machine)
            except PliantError as error:
                _log.warning("node %s of Ray's gets no join token: %s", message.machine, error)
                return
            _say(channel, GiveToken(machine=message.machine, token=token))

    def _lose(self, reason: str) -> None:
        """Write down why no agents are started, once until Ray is reached again or it is something else."""
        if reason != self._why_lost:
            _log.warning("no agents are started on new nodes of Ray's: %s", plain_line(reason))
        self._why_lost = reason

    def _note(self, nodes: tuple[RayNode, ...]) -> None:
        """Write down what has changed: an agent that runs, and why one does not."""
        before = {node.ray_id: node for node in self._nodes}
        self._nodes = nodes
        for node in nodes:
            if node == before.get(node.ray_id):
                continue
            if node.state == "running":
                _log.info("Ray: an agent runs on %s", plain_line(node.machine))
            elif node.said:
                _log.warning(
                    "Ray: no agent runs on %s: %s", plain_line(node.machine or node.ray_id[:8]), plain_line(node.said)
                )


def _say(channel: socket.socket, message: ToRayProcess) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the end of the stream is found when it is read
        channel.sendall(encode(message))
