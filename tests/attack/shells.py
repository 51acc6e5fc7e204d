"""What nobody must do with shells: open another's, take the place of an end, reach from one over its walls, flood it.

Bob has two jobs. Beside one he plays in a shell, against its task and another shell there; the other one plays against
the shell beside it. A third job of his plays against a shell of Ada's.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
from tests.attack.attack import REFUSED, Attack
from tests.attack.isolation import ACTS, READING, WHOSE, hashes, sleepers
from tests.attack.target import Target, said_in
from tests.link_proofs import new_proof
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from pliant.api.tunnel import ShellRequest, inside_path, outside_path
from pliant.control.jobs.orders import job_token
from pliant.core.job import JobId
from pliant.core.tunnel import CHUNK_BYTES, MAX_FRAME_BYTES, Frame, FrameKind

SIDECAR_ACTS: Final = (
    "variables",
    "memory",
    "files",
    "a file, taken",
    "tracing",
    "a signal",
    "a signal by descriptor",
    "its input",
)
BESIDE: Final = ("task", "sidecar", "shell")
HUNG_UP: Final = "hung up, at work"
_WAIT_S: Final = 30.0
_GROWTH: Final = 64 << 20
_NONSENSE: Final[tuple[bytes | str, ...]] = (b"", b"?", b"\xff" * 4096, b"g", b"g\xff\xff\xff\xff\xff", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tunnel:
    """A tunnel that somebody asked for."""

    id: str
    ticket: str
    base: str

    def outside(self, ticket: str | None = None) -> ClientConnection:
        headers = {"Authorization": f"Bearer {ticket or self.ticket}"}
        return connect(self.base + outside_path(self.id), additional_headers=headers, compression=None, close_timeout=1)

    @property
    def inside_url(self) -> str:
        return self.base + inside_path(self.id)


def _ask(target: Target, who: str, job_id: str, **body: Any) -> httpx.Response:
    return httpx.post(
        f"{target.ada.url}/v1/jobs/{job_id}/shells",
        headers={"Authorization": f"Bearer {target.tokens[who]}"},
        json=body,
        timeout=30,
    )


def _open(target: Target, who: str, job_id: str, *command: str, task: int | None = None) -> _Tunnel:
    answer = _ask(target, who, job_id, command=command, task=task)
    answer.raise_for_status()
    made = answer.json()
    return _Tunnel(id=made["id"], ticket=made["ticket"], base=target.ada.url.replace("http", "ws", 1))


def _status(opening: Callable[[], ClientConnection]) -> str:
    try:
        with opening():
            return "opened"
    except InvalidStatus as refused:
        return f"HTTP {refused.response.status_code}"


# -- from inside -------------------------------------------------------------------------------------------------------


@cache
def _job(target: Target, which: str = "the first") -> str:
    """Return a job of Bob's whose task holds a token, and waits; each name stands for one."""
    job_id = target.submit("bob", "waiting.py", {}, max_tasks=1)
    target.until(lambda: any(task.pid for task in target.bob.job(job_id).tasks), "Bob's task runs")
    return job_id


def _folder(target: Target, job_id: str) -> Path:
    return target.home / "jobs" / job_id / "result"


@contextmanager
def _beside(target: Target, who: str, job_id: str) -> Iterator[dict[str, Any]]:
    """Hold a shell open beside a task; yield what there is to lay hands on."""
    seconds = f"{6_000_000 + target.server_pid}.{job_id.removeprefix('job-')}"
    owner = target.ada if who == "ada" else target.bob
    (task, *_) = [task for task in owner.job(job_id).tasks if task.pid]
    tunnel = _open(target, who, job_id, "sleep", seconds, task=int(task.id.rpartition(".")[2]))
    with tunnel.outside():
        (shell,) = target.until(lambda: sleepers(seconds), "a program runs beside the task")
        sidecar = int(Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[1])
        told = {"task": task.pid, "sidecar": sidecar, "shell": shell, "tunnel": tunnel.id, "inside": tunnel.inside_url}
        yield {**target.facts(), **hashes(target), **told}


def _run(target: Target, job_id: str, *command: str) -> list[str]:
    """Run a command in a shell of Bob's; return what it printed."""
    said = b""
    stream = target.bob.open_shell(job_id, ShellRequest(command=command))
    with suppress(ValueError):
        for frame in stream.frames():
            if frame.kind is FrameKind.DATA:
                said += frame.content
            if frame.kind in (FrameKind.DATA, FrameKind.ERRORS):
                stream.deal(len(frame.content))
    stream.close()
    return said.decode(errors="replace").splitlines()


@cache
def _seen_in_shell(target: Target, script: str) -> dict[str, str]:
    job_id = _job(target)
    with _beside(target, "bob", job_id) as facts:
        lines = _run(target, job_id, "python", script, json.dumps(facts), *_PROBES.get(script, ()))
    return {"": "; ".join(lines)[:200], **said_in(lines)}


@cache
def _seen_by_task(target: Target) -> dict[str, str]:
    job_id = _job(target, "the second")
    with _beside(target, "bob", job_id) as facts:
        del facts["task"]  # that is itself
        folder = _folder(target, job_id)
        (folder / "new").write_text(json.dumps(facts))
        (folder / "new").chmod(0o644)
        (folder / "new").rename(folder / "told.json")
        target.until(lambda: target.bob.job(job_id).job.ended, "Bob's script has tried all")
    return {"": target.bob.job(job_id).job.reason or "", **said_in(target.lines_of(job_id))}


@cache
def _seen_by_stranger(target: Target) -> dict[str, str]:
    with _beside(target, "ada", target.victim) as facts:
        job = target.run("beside.py", facts)
    return {"": job.reason or "", **said_in(target.lines_of(job.id))}


def _named(seen: Callable[[Target], dict[str, str]], name: str) -> Callable[[Target], str]:
    return lambda target: seen(target).get(name, f"not tried: {seen(target)['']}"[:200])


# -- from outside ------------------------------------------------------------------------------------------------------


def _shared(target: Target) -> str:
    """Ask for a shell in a job that Bob may see."""
    target.ada.share(target.victim, ["bob"])
    try:
        return f"HTTP {_ask(target, 'bob', target.victim).status_code}"
    finally:
        target.ada.share(target.victim, [])


def _with_ticket(ticket_of: Callable[[Target, _Tunnel], str]) -> Callable[[Target], str]:
    def play(target: Target) -> str:
        tunnel = _open(target, "bob", _job(target), "true")
        return _status(lambda: tunnel.outside(ticket_of(target, tunnel)))

    return play


def _twice(target: Target) -> str:
    tunnel = _open(target, "bob", _job(target), "sleep", "1000")
    with tunnel.outside():
        while_open = _status(tunnel.outside)
    return while_open if while_open == _status(tunnel.outside) else f"{while_open} while it was open"


def _in_place_with_token(target: Target) -> str:
    """Take the sidecar's place with the token of its job, which an end of another kind is known by."""
    job_id = _job(target)
    tunnel = _open(target, "bob", job_id, "true")
    token = job_token((target.home / "secret").read_bytes(), JobId(job_id))
    header = {"Authorization": new_proof(tunnel.id, "").authorization(token)}
    return _status(lambda: connect(tunnel.inside_url, additional_headers=header))


def _at_work(target: Target) -> str:
    works = _run(target, _job(target), "echo", "works") == ["works"]
    return "at work" if works and target.ada.healthy() else "no shell opens any more"


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _sends(frames: Callable[[], Iterator[bytes | str]], *command: str) -> Callable[[Target], str]:
    """Return what sends frames to a shell until it is hung up on, and sees that nothing of it is left."""

    def play(target: Target) -> str:
        seconds = f"{7_000_000 + target.server_pid}.{time.monotonic_ns() % 1000}"
        tunnel = _open(target, "bob", _job(target), *(command or ("sleep", seconds)))
        before = _resident(target.server_pid)
        with tunnel.outside() as outside:
            hung_up = _hung_up(outside, frames())
        grown = _resident(target.server_pid) - before
        if grown > _GROWTH:
            return f"the server has grown by {grown >> 20} MiB"
        if not target.becomes(lambda: not sleepers(seconds), timeout_s=10.0):
            return "what ran there lives on"
        return f"{hung_up}, {_at_work(target)}"

    return play


def _hung_up(outside: ClientConnection, frames: Iterator[bytes | str]) -> str:
    with suppress(ConnectionClosed):
        for frame in frames:
            outside.send(frame)
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            with suppress(TimeoutError):
                outside.recv(timeout=1)
        return "stays open"
    return "hung up"


def _each_nonsense(target: Target) -> str:
    """Send one frame of each kind that there is not, each through a tunnel of its own; return what came of them."""
    seen = {_sends([frame].__iter__)(target) for frame in _NONSENSE}
    return seen.pop() if len(seen) == 1 else "; ".join(sorted(seen))


def _too_much() -> Iterator[bytes]:
    frame = Frame(FrameKind.DATA, bytes(CHUNK_BYTES)).pack()
    return (frame for _ in range((256 << 20) // CHUNK_BYTES))


def _never_reads(target: Target) -> str:
    """Open a shell that prints without end, read nothing, and say what becomes of it."""
    mark = f"y{target.server_pid}"
    tunnel = _open(target, "bob", _job(target), "yes", mark)
    before = _resident(target.server_pid)
    with socket.create_connection(target.address, timeout=30) as silent:
        silent.sendall(_upgrade(tunnel))
        target.until(lambda: sleepers(mark), "it prints")
        if not target.becomes(lambda: not sleepers(mark), timeout_s=120.0):
            return "goes on"
    grown = _resident(target.server_pid) - before
    return f"ended, {_at_work(target)}" if grown < _GROWTH else f"the server has grown by {grown >> 20} MiB"


def _unread_pings(target: Target) -> str:
    """Send pings and read no answer."""
    tunnel = _open(target, "bob", _job(target), "sleep", "1000")
    pings = (b"\x89\xfd" + bytes(4) + bytes(125)) * 5000
    before = _resident(target.server_pid)
    with socket.create_connection(target.address, timeout=30) as silent:
        silent.sendall(_upgrade(tunnel))
        with suppress(ConnectionError):
            for _ in range((256 << 20) // len(pings)):
                silent.sendall(pings)
                if (grown := _resident(target.server_pid) - before) > _GROWTH:
                    return f"the server has grown by {grown >> 20} MiB"
            return "all were taken"
    return f"hung up, {_at_work(target)}"


def _upgrade(tunnel: _Tunnel) -> bytes:
    lines = (
        f"GET {outside_path(tunnel.id)} HTTP/1.1",
        "Host: x",
        f"Authorization: Bearer {tunnel.ticket}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    )
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def _stolen(target: Target) -> str:
    """Let a program of a shell take the connection of its sidecar, if it can, and send nonsense through that."""
    job_id = _job(target)
    _run(target, job_id, "python", "beside.py", json.dumps({}), NONSENSE_INSIDE)
    return _at_work(target)


NONSENSE_INSIDE: Final = "nonsense through its own sidecar's connection"
KNOWN: Final = "what its own sidecar knows of others"
GUESSES: Final = "the place of the sidecar, by guesses"
_PROBES: Final = {"beside.py": (KNOWN, *(f"{act} of the {who}" for act in SIDECAR_ACTS for who in BESIDE))}


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="shells", name=name, expected=expected, play=play)


def _in_shell(script: str, name: str) -> Callable[[Target], str]:
    return _named(lambda target: _seen_in_shell(target, script), name)


ATTACKS: Final = (
    _attack("into another's job", "HTTP 404", lambda t: f"HTTP {_ask(t, 'bob', t.victim).status_code}"),
    _attack("into another's job that may be seen", "HTTP 403", _shared),
    _attack("a ticket, a second time", "HTTP 401", _twice),
    _attack("a wrong ticket", "HTTP 401", _with_ticket(lambda _, tunnel: tunnel.ticket[:-1])),
    _attack(
        "the ticket of another tunnel",
        "HTTP 401",
        _with_ticket(lambda t, _: _open(t, "bob", _job(t), "true").ticket),
    ),
    _attack("a person's token for a ticket", "HTTP 401", _with_ticket(lambda t, _: t.tokens["bob"])),
    _attack("the sidecar's place, by the token of its job", "HTTP 401", _in_place_with_token),
    *(
        _attack(
            f"{act} of the {who}, by another shell of the job", REFUSED, _in_shell("beside.py", f"{act} of the {who}")
        )
        for act in SIDECAR_ACTS
        for who in BESIDE
    ),
    *(
        _attack(f"{act} of the {who}, by its task", REFUSED, _named(_seen_by_task, f"{act} of the {who}"))
        for act in SIDECAR_ACTS
        for who in BESIDE[1:]
    ),
    *(
        _attack(f"{act} of the {who}, by a stranger", REFUSED, _named(_seen_by_stranger, f"{act} of the {who}"))
        for act in SIDECAR_ACTS
        for who in BESIDE
    ),
    _attack(f"{GUESSES} of its task", "HTTP 401", _named(_seen_by_task, GUESSES)),
    _attack(f"{GUESSES} of a stranger", "HTTP 401", _named(_seen_by_stranger, GUESSES)),
    _attack(KNOWN, "nothing", _in_shell("beside.py", KNOWN)),
    *(_attack(f"{name}, from a shell", REFUSED, _in_shell("reading.py", name)) for name in READING),
    *(
        _attack(f"{act}: {who}, from a shell", REFUSED, _in_shell("processes.py", f"{act}: {who}"))
        for act in ACTS
        for who in WHOSE
    ),
    _attack("nonsense from outside", HUNG_UP, _each_nonsense),
    _attack("a frame that is too large", HUNG_UP, _sends(lambda: iter([bytes(MAX_FRAME_BYTES + 1)]))),
    _attack("a frame larger than a WebSocket's may be", HUNG_UP, _sends(lambda: iter([bytes(2 << 20)]))),
    _attack("more than was granted", HUNG_UP, _sends(_too_much)),
    _attack("pings whose answers nobody reads", HUNG_UP, _unread_pings),
    _attack("nonsense from inside, through a stolen connection", "at work", _stolen),
    _attack("a client that never reads", "ended, at work", _never_reads),
)
