"""The agent's end of the link: a thread that keeps a connection to the server, and says a few times a second that the
agent lives.

Theory of operation. What prolongs the life of the tasks is an answered `Renew`, counted from when it was sent
(`OrphanDeadline`). A network that has lost packets is silent for longer than it was cut: TCP waits twice as long after
every try. So when an answer is late a second connection is dialled beside the first, and whichever the server welcomes
is used from then on:

    0.00 s   Renew 41 is sent, and lost with all that follows: the cable is cut
    0.65 s   nothing was answered for that long: a second connection is dialled, again and again
    1.00 s   the cable is whole. The first connection would try again at 1.4 s
    1.20 s   the second one is welcomed; the server was without news for 1.2 s, and nobody is taken for lost

A later server that has other rules, or another orphan time, than those that the agent was started with needs another
agent: `NodeLink.renewed` is called.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pliant.cluster.agent.messages import FromAgent, ToAgent
from pliant.cluster.json_lines import decode, encode
from pliant.cluster.link.dial import RefusedByServerError, ServerConnection, ServerHost, abort, meet
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import (
    TO_NODE,
    Carrying,
    Here,
    Joined,
    JoinRefused,
    NodeRules,
    Renew,
    RenewCertificate,
    Renewed,
    Versions,
    Welcome,
)
from pliant.cluster.zygote.deadline import OrphanDeadline, boot_time
from pliant.core.errors import InvalidInput, Unavailable

_log = logging.getLogger(__name__)

LATE_S: Final = 0.65
"""An answer that is so late may never come."""
_PAUSE_S: Final = 0.25
_MAX_DIALS: Final = 4
"""At the same time: a packet that opens a connection and is lost is sent again after a second only."""
_LONGEST_PAUSE_S: Final = 1.0
_MAX_UNSENT_BYTES: Final = 64 << 20
_CERTIFICATE_EVERY_S: Final = 3600.0
_END_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLinkSettings:
    """What a link needs to know."""

    identity: NodeIdentity
    incarnation: str
    versions: Versions
    servers: Callable[[], Sequence[ServerHost]]
    """Where the server may be, the likeliest first; asked before every try."""
    now: Callable[[], float]
    """Seconds since the epoch."""


class NodeLink:
    """Keeps a connection to the server: `connect` first, then `serve`."""

    def __init__(self, settings: NodeLinkSettings) -> None:
        self.renewed: Callable[[NodeRules], None] = lambda _rules: None
        """Called with the rules of a later server, if they are not those of the first."""
        self.refused: Callable[[JoinRefused], None] = lambda _refused: None
        """Called when the server does not want this agent any more."""
        self.linked: Callable[[], None] = lambda: None
        """Called whenever a connection begins: the server may be another one."""
        self._settings = settings
        self._put: Callable[[ToAgent], None] | None = None
        self._waiting: list[ToAgent] = []
        self._deadline: OrphanDeadline | None = None
        self._connection: ServerConnection | None = None
        self._first: Welcome | None = None
        self._channel = ""
        self._received = 0
        self._number = 0
        self._sent_at: dict[int, float] = {}
        self._answered_at = 0.0
        """Real time, as of the newest answer."""
        self._certificate_at = 0.0
        self._loop = asyncio.new_event_loop()
        self._turn = asyncio.Lock()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="pliant-link", daemon=True)
        self._is_closed = False
        self._trouble = ""

    def connect(self, say: Callable[[str], None], patience_s: float | None = None) -> ServerConnection:
        """Connect for the first time, however long that takes, and keep the connection from then on.

        Args:
            say: called with what keeps it from being so, in words, whenever that changes.
            patience_s: so long it is tried; None: for ever.

        Raises:
            Unavailable: there was no server for so long.
            RefusedByServerError: the server does not want this machine.
            InvalidInput: what this machine knows of the pool cannot be used.
        """
        began_at = boot_time()
        while True:
            try:
                connection = self._loop.run_until_complete(self._dial())
            except Unavailable as error:
                if patience_s is not None and boot_time() - began_at > patience_s:
                    raise
                self._note_trouble(str(error), say)
                time.sleep(_LONGEST_PAUSE_S)
            except RefusedByServerError as error:
                if error.is_final:
                    raise
                self._note_trouble(str(error), say)
                time.sleep(_LONGEST_PAUSE_S)
            else:
                self._first = connection.welcome
                self._use(connection)
                self._thread.start()
                return connection

    def serve(self, put: Callable[[ToAgent], None], deadline: OrphanDeadline) -> None:
        """Hand to an agent what has arrived and what will; answers put off its deadline.

        Args:
            put: takes messages, from any thread.
            deadline: of the agent's tasks.
        """
        with self._lock:
            self._put, self._deadline = put, deadline
            waiting, self._waiting = self._waiting, []
            deadline.put_off(self._answered_at + self._orphan_s)
            for message in waiting:
                put(message)

    def send(self, message: FromAgent) -> None:
        """Send what the agent says, from any thread; it is dropped while there is no connection, or a slow one."""
        line = encode(message)
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._write, line)

    def close(self) -> None:
        """Hang up."""
        self._is_closed = True
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_END_S)

    # the loop

    @property
    def _orphan_s(self) -> float:
        assert self._first is not None, "it was welcomed"
        return self._first.orphan_s

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        keeping = self._loop.create_task(self._keep_on())
        keeping.add_done_callback(lambda _done: self._loop.stop())
        try:
            self._loop.run_forever()
        finally:
            if self._connection is not None:
                self._connection.writer.close()
            keeping.cancel()
            self._loop.run_until_complete(asyncio.gather(keeping, return_exceptions=True))
            self._loop.close()

    async def _keep_on(self) -> None:
        """Keep the link whatever happens: without it the tasks of this machine end."""
        while not self._is_closed:
            try:
                await self._keep()
            except Exception:  # noqa: BLE001 - the top of the loop
                _log.exception("the link to the server begins anew after an error")
                if self._connection is not None:
                    abort(self._connection.writer)
                await asyncio.sleep(_PAUSE_S)

    async def _keep(self) -> None:
        """Renew and read by the connection that there is, and dial others when that is late or lost."""
        reading = self._loop.create_task(self._read())
        dialling: set[asyncio.Task[ServerConnection]] = set()
        pause_s, dial_at = _PAUSE_S, 0.0
        while not self._is_closed:
            self._renew()
            is_late = boot_time() - self._answered_at > LATE_S
            is_due = time.monotonic() >= dial_at and len(dialling) < _MAX_DIALS
            if (reading.done() or is_late) and is_due:
                dialling.add(self._loop.create_task(self._dial()))
                dial_at = time.monotonic() + pause_s
            await self._wait({*dialling, reading} if not reading.done() else dialling)
            done = {dial for dial in dialling if dial.done()}
            dialling -= done
            found = [connection for dial in done if (connection := self._outcome(dial)) is not None]
            if not found:
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S) if done else pause_s
                continue
            pause_s = _PAUSE_S
            await _give_up(dialling)
            dialling = set()
            if self._connection is not None:
                abort(self._connection.writer)
            await _give_up({reading})
            self._use(found[-1])
            reading = self._loop.create_task(self._read())

    async def _wait(self, for_any: "set[asyncio.Task[Any]]") -> None:
        """Wait until one of these is done, no longer than until the next renewal."""
        if for_any:
            await asyncio.wait(for_any, timeout=self._welcome.renew_s, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(self._welcome.renew_s)

    @property
    def _welcome(self) -> Welcome:
        assert self._connection is not None, "it was connected once"
        return self._connection.welcome

    def _outcome(self, dialling: "asyncio.Task[ServerConnection]") -> ServerConnection | None:
        """Return the connection that was dialled; None if there is none."""
        try:
            return dialling.result()
        except RefusedByServerError as error:
            if error.is_final:
                self.refused(error.refused)
            self._note_trouble(str(error), _log.warning)
        except (Unavailable, InvalidInput) as error:
            self._note_trouble(str(error), _log.warning)
        return None

    async def _dial(self) -> ServerConnection:
        """Connect to the first server that answers.

        Raises:
            Unavailable: none does.
            RefusedByServerError: one does not want this machine any more.
        """
        sent_at = boot_time()

        def here() -> Here:
            nonlocal sent_at
            sent_at = boot_time()
            return Here(
                incarnation=self._settings.incarnation,
                versions=self._settings.versions,
                channel=self._channel,
                received=self._received,
            )

        troubles: list[str] = []
        for server in self._settings.servers():
            try:
                connection = await meet(server, self._settings.identity, here, self._turn)
            except RefusedByServerError as error:
                if error.is_final:
                    raise
                troubles.append(str(error))
                continue
            except (Unavailable, OSError, ValueError) as error:  # whatever is wrong with one, another may answer
                troubles.append(str(error))
                continue
            self._answered_at = max(self._answered_at, sent_at)
            return connection
        raise Unavailable("; ".join(dict.fromkeys(troubles)) or "nobody has said where the server is")

    def _use(self, connection: ServerConnection) -> None:
        welcome = connection.welcome
        self._connection, self._trouble = connection, ""
        if welcome.channel != self._channel:
            self._channel, self._received = welcome.channel, welcome.first - 1
        self._next = welcome.first
        self._sent_at.clear()
        self._put_off()
        _log.info("linked to the server at %s", connection.address)
        self.linked()
        first = self._first
        if first is not None and (welcome.rules, welcome.orphan_s) != (first.rules, first.orphan_s):
            self.renewed(welcome.rules)

    def _renew(self) -> None:
        """Say that this machine lives, and now and then ask for the next certificate."""
        if self._connection is None or self._connection.writer.is_closing():
            return
        self._number += 1
        self._sent_at[self._number] = boot_time()
        self._write(encode(Renew(number=self._number, received=self._received)))
        if time.monotonic() >= self._certificate_at:
            self._certificate_at = time.monotonic() + _CERTIFICATE_EVERY_S
            identity = self._settings.identity
            if identity.renewal_due(self._settings.now()):
                self._write(encode(RenewCertificate(request=identity.make_request(identity.name))))

    def _write(self, line: bytes) -> None:
        connection = self._connection
        if connection is None or connection.writer.is_closing():
            return
        connection.writer.write(line)
        if connection.writer.transport.get_write_buffer_size() > _MAX_UNSENT_BYTES:
            abort(connection.writer)

    async def _read(self) -> None:
        """Take what comes, until the connection ends."""
        connection = self._connection
        assert connection is not None, "it was connected"
        try:
            while line := await connection.reader.readline():
                self._take(line)
        except (OSError, ValueError) as error:
            _log.warning("the link to the server is lost: %s", error)
        connection.writer.close()

    def _take(self, line: bytes) -> None:
        """Raises ValueError: it is no message."""
        message = decode(line, TO_NODE)
        if isinstance(message, Renewed):
            if (sent_at := self._sent_at.pop(message.number, None)) is not None:
                self._sent_at = {number: at for number, at in self._sent_at.items() if number > message.number}
                self._answered_at = max(self._answered_at, sent_at)
                self._put_off()
        elif isinstance(message, Joined):
            self._settings.identity.accept(message.certificate, message.authority)
        elif isinstance(message, JoinRefused):
            self._note_trouble(message.reason, _log.warning)
            if message.is_final:
                self.refused(message)
        elif not isinstance(message, Welcome | Carrying):  # a second welcome says nothing
            self._number_and_put(message)

    def _number_and_put(self, message: ToAgent) -> None:
        number, self._next = self._next, self._next + 1
        if number <= self._received:
            return  # it came by the connection before, too
        self._received = number
        with self._lock:
            if self._put is None:
                self._waiting.append(message)
            else:
                self._put(message)

    def _put_off(self) -> None:
        with self._lock:
            if self._deadline is not None:
                self._deadline.put_off(self._answered_at + self._orphan_s)

    def _note_trouble(self, words: str, say: Callable[[str], None]) -> None:
        if words != self._trouble:
            say(words)
        self._trouble = words


async def _give_up(tasks: "set[asyncio.Task[Any]]") -> None:
    """End what is under way; a connection that came of it all the same is closed."""
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, ServerConnection):
            abort(outcome.writer)
