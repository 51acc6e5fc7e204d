"""Plays the agents of many machines in one process, over real TLS links to a real server.

Each has a certificate of its own name, says `Here`, renews as often as it is told to, gives the account of a node with
idle slots, and obeys orders without starting anything: what is started lives until it is told to leave. So what is
measured is the server, not what agents do.

    python -m bench.nodes.agents HOME PORT COUNT SLOTS REPORT

It writes what it has seen into REPORT once every half second, as JSON, and ends by a signal.
"""

import asyncio
import json
import os
import ssl
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pliant.cluster.agent.messages import (
    Acknowledge,
    Addresses,
    Drain,
    Exited,
    FromAgent,
    Introduce,
    Kill,
    NodeFound,
    Observed,
    Readiness,
    Spent,
    Start,
    ToAgent,
    UpToDate,
    UseAddress,
)
from pliant.cluster.json_lines import decode, encode
from pliant.cluster.link.authority import FOLDER, SERVER_NAME, fingerprint, open_authority
from pliant.cluster.link.identity import NodeIdentity
from pliant.cluster.link.messages import TO_NODE, Carrying, Here, Joined, JoinRefused, Renewed, Welcome
from pliant.cluster.link.versions import versions
from pliant.control.requests.joining import Joining
from pliant.core.job import NodeId, TaskId
from pliant.core.joining import JoinedMachine
from pliant.core.plan import NodeView
from pliant.core.ports import Address, LiveTask, TaskExit
from pliant.store.sql import SqlStore

NUM_AT_ONCE: Final = 64
"""Connections that are being opened."""
REPORT_S: Final = 0.5
_NUM_ADDRESSES: Final = 4


def name_of(number: int) -> str:
    """Return the name of a machine that is played."""
    return f"m{number:05}"


def note_machines(home: Path, count: int) -> None:
    """Write machines into the database of a home, as if they had joined; all have the key in `home/identity`."""
    now = time.time()
    authority = open_authority(home / FOLDER, now=now)
    request = NodeIdentity(home / "identity").make_request("any")
    key = fingerprint(authority.sign(request, "any", now=now))
    store = SqlStore(f"sqlite:///{home / 'pliant.db'}")
    joining = Joining(registry=store.registry, now=time.time, token_hex=lambda _n: "")
    for number in range(count):
        joining.note(JoinedMachine(name=name_of(number), owner="admin", fingerprint=key, joined_at=now))
    store.close()


@dataclass(slots=True)
class Seen:
    """What all of them have seen."""

    num_met: int = 0
    """Accounts given."""
    num_lost: int = 0
    num_starts: int = 0
    first_start: float = 0.0
    last_start: float = 0.0
    num_exits: int = 0
    num_acknowledged: int = 0
    renew_s: float = 0.0
    answers_s: list[float] = field(default_factory=list)
    """How long renewals took to be answered, since the last report."""
    troubles: list[str] = field(default_factory=list)


class PlayedAgent(asyncio.Protocol):
    """One agent."""

    def __init__(self, name: str, slots: int, seen: Seen) -> None:
        self._node = NodeView(id=NodeId(name), slots=tuple(range(slots)), num_cpus=slots)
        self._seen = seen
        self._rest = b""
        self._number = 0
        self._received = 0
        self._sent_at = 0.0
        self._tasks: dict[TaskId, LiveTask] = {}
        self._port = 20_000
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(encode(Here(incarnation=self._node.id, versions=versions())))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._seen.num_lost += 1
        self._seen.troubles.append(f"{self._node.id}: {exc}")

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = decode(line, TO_NODE)
            if isinstance(message, Renewed):
                self._seen.answers_s.append(time.monotonic() - self._sent_at)
            elif isinstance(message, Welcome):
                self._received = message.first - 1
                self._seen.renew_s = message.renew_s
                self._loop.call_later(message.renew_s * (hash(self._node.id) % 997 / 997), self._renew, message.renew_s)
            elif isinstance(message, JoinRefused | Joined | Carrying):
                self._seen.troubles.append(f"{self._node.id}: {message}")
            else:
                self._received += 1
                self._obey(message)

    def _renew(self, renew_s: float) -> None:
        if self._transport is None:
            return
        self._loop.call_later(renew_s, self._renew, renew_s)
        self._number += 1
        self._sent_at = time.monotonic()
        self._transport.write(b'{"number": %d, "received": %d, "kind": "renew"}\n' % (self._number, self._received))

    def _obey(self, message: ToAgent) -> None:
        match message:
            case Introduce():
                self._introduce(message.session)
            case Start():
                self._start(message)
            case Drain() | Kill():
                self._end(message.task_id)
            case UseAddress():
                self._say(Addresses(added=self._addresses(1)))
            case Acknowledge():
                self._seen.num_acknowledged += 1
            case _:
                pass

    def _introduce(self, session: int) -> None:
        self._say(
            NodeFound(node=self._node, session=session),
            *(Observed(task=task) for task in self._tasks.values()),
            Spent(task_ids=tuple(self._tasks)),
            Readiness(pid=1, warm=True),
            Addresses(added=self._addresses(_NUM_ADDRESSES)),
            UpToDate(),
        )
        self._seen.num_met += 1

    def _start(self, message: Start) -> None:
        order, seen = message.order, self._seen
        seen.num_starts += 1
        seen.last_start = time.monotonic()
        seen.first_start = seen.first_start or seen.last_start
        self._tasks[order.task_id] = task = LiveTask(
            task_id=order.task_id,
            node_id=self._node.id,
            slots=order.slots,
            slot_share=order.slot_share,
            pid=10_000 + len(self._tasks),
        )
        self._say(Observed(task=task))

    def _end(self, task_id: TaskId) -> None:
        if self._tasks.pop(task_id, None) is not None:
            self._seen.num_exits += 1
            self._say(Exited(exit=TaskExit(task_id=task_id, exit_code=-15)))

    def _say(self, *messages: FromAgent) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(map(encode, messages)))

    def _addresses(self, count: int) -> tuple[Address, ...]:
        self._port += count
        return tuple(Address(host="127.0.0.1", port=self._port - number) for number in range(count))


def contexts(home: Path, count: int) -> Mapping[str, ssl.SSLContext]:
    """Return how each machine meets the server, by its name."""
    authority = open_authority(home / FOLDER, now=time.time())
    identity = NodeIdentity(home / "identity")
    request = identity.make_request("any")
    found = {}
    with TemporaryDirectory() as folder:
        ca, one = Path(folder) / "ca.pem", Path(folder) / "one.pem"
        ca.write_text(authority.ca_pem)
        for number in range(count):
            name = name_of(number)
            one.write_text(authority.sign(request, name, now=time.time()))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.load_verify_locations(ca)
            context.load_cert_chain(one, home / "identity" / "key.pem")
            found[name] = context
    return found


async def play(home: Path, port: int, count: int, slots: int, report: Path) -> None:
    """Play until a signal comes."""
    seen = Seen()
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(NUM_AT_ONCE)

    async def connect(name: str, context: ssl.SSLContext) -> None:
        async with gate:
            await loop.create_connection(
                lambda: PlayedAgent(name, slots, seen),
                "127.0.0.1",
                port,
                ssl=context,
                server_hostname=SERVER_NAME,
                ssl_handshake_timeout=60,
            )

    writing = loop.create_task(_report(seen, report))
    await asyncio.gather(*(connect(*one) for one in contexts(home, count).items()))
    await writing


async def _report(seen: Seen, report: Path) -> None:
    draft = report.with_suffix(".draft")
    while True:
        answers, seen.answers_s = sorted(seen.answers_s), []
        found = {name: getattr(seen, name) for name in Seen.__slots__ if name not in ("answers_s", "troubles")}
        quantiles = {str(q): answers[int(q * (len(answers) - 1))] for q in (0.5, 0.99, 1.0)} if answers else {}
        text = json.dumps({**found, "troubles": seen.troubles[:5], "answers": len(answers), "answers_s": quantiles})
        draft.write_text(text)
        os.replace(draft, report)
        await asyncio.sleep(REPORT_S)


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5])))
