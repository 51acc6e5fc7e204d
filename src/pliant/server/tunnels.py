"""The server's part of tunnels: two WebSockets, and what comes from one goes to the other. It looks into nothing.

What a tunnel leads to is a stranger's, so frames are passed on as they are, one at a time: the next one is read when
the last one was taken, and so an end that does not read stops the other. See `pliant.core.tunnel`. Belongs to one event
loop; only `note_end` and `close_all` may be called from other threads. Knows no job but by its id.
"""

import asyncio
import hmac
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from pliant.core.errors import Conflict, InternalError, Unauthorized, UserError
from pliant.core.link_proof import PROOF_HEADER, LinkProof, read_authorization
from pliant.core.tunnel import MAX_FRAME_BYTES, MAX_REASON, WINDOW_BYTES
from pliant.server.middleware.problems import problem_response

MAX_TUNNELS: Final = 256
MAX_PER_JOB: Final = 32
MAX_PER_PERSON: Final = 64
"""So that nobody takes all that a server has."""
_ID_BYTES: Final = 8
_SECRET_BYTES: Final = 32
_CONNECT_S: Final = 60.0
"""Both ends have to be there by then; the processes that fork others may still be importing."""
_IDLE_S: Final = 12 * 3600.0
_RECHECK_S: Final = 5.0
_END_S: Final = 3.0
_MAX_KEPT: Final = 2 * WINDOW_BYTES
"""Bytes of what a client sends before the sidecar is there; then it is not read any more until that is."""
_FRAME_COST: Final = 64
"""Bytes that a frame takes besides what is in it."""
_GONE: Final = "the other end is gone"
_NORMAL, _GOING_AWAY, _REFUSED, _LOST = 1000, 1001, 1008, 4000

Recheck = Callable[[], Awaitable[None]]
"""Raises Unauthorized, Forbidden or NotFound if whoever asked for the tunnel may not have it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunnelSecrets:
    """What a tunnel that is about to be made is known by."""

    id: str
    ticket: str = field(repr=False)
    """Its client's."""
    key: str = field(repr=False)
    """Its sidecar's."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Tunnel:
    secrets: TunnelSecrets
    job_id: str
    who: str
    recheck: Recheck
    end_sidecar: Callable[[], None] = lambda: None
    outside: WebSocket | None = None
    inside: WebSocket | None = None
    kept: deque[bytes] = field(default_factory=deque)
    """What the client has sent before the sidecar was there: who is read is noticed at once when it is gone."""
    num_kept: int = 0
    is_complete: asyncio.Event = field(default_factory=asyncio.Event)
    """Both ends are there, and the sidecar has what was kept for it; or it is over."""
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    sidecar_ended: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    """It was ended, in words."""
    code: int = _NORMAL
    reason: str = ""
    used_at: float = 0.0


class TunnelHub:
    """All tunnels of this server."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tunnels: dict[str, _Tunnel] = {}

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop on which the WebSockets live."""
        self._loop = loop

    def __len__(self) -> int:
        return len(self._tunnels)

    def open(self, job_id: str, who: str, recheck: Recheck) -> TunnelSecrets:
        """Make a tunnel into a job, which both ends have to connect to soon; called in the loop.

        Args:
            job_id: the job.
            who: the name of whom asks for it.
            recheck: called again and again while it is open.

        Raises:
            Conflict: the job, the person or the server has too many.
        """
        loop = asyncio.get_running_loop()
        self._refuse_more(job_id, who)
        made = TunnelSecrets(
            id=secrets.token_hex(_ID_BYTES),
            ticket=secrets.token_urlsafe(_SECRET_BYTES),
            key=secrets.token_urlsafe(_SECRET_BYTES),
        )
        self._tunnels[made.id] = _Tunnel(secrets=made, job_id=job_id, who=who, recheck=recheck, used_at=loop.time())
        loop.call_later(_CONNECT_S, self._drop_if_unused, made.id)
        return made

    def _refuse_more(self, job_id: str, who: str) -> None:
        in_job = sum(one.job_id == job_id for one in self._tunnels.values())
        of_person = sum(one.who == who for one in self._tunnels.values())
        for whose, num, most in (
            (f"{job_id} has as many shells and notebooks as it", in_job, MAX_PER_JOB),
            (f"{who} has as many shells and notebooks as a person", of_person, MAX_PER_PERSON),
            ("this server has as many shells and notebooks as it", len(self._tunnels), MAX_TUNNELS),
        ):
            if num >= most:
                raise Conflict(f"{whose} may have open; end one of them first")

    def attend(self, tunnel_id: str, end_sidecar: Callable[[], None]) -> None:
        """Say how the sidecar of a tunnel is ended; it is when the tunnel is over, at once if it is already."""
        tunnel = self._tunnels.get(tunnel_id)
        if tunnel is None:
            end_sidecar()
        else:
            tunnel.end_sidecar = end_sidecar

    def discard(self, tunnel_id: str) -> None:
        """Forget a tunnel whose sidecar could not be ordered; called in the loop."""
        self._tunnels.pop(tunnel_id, None)

    def note_end(self, tunnel_id: str, reason: str) -> None:
        """Take note that the sidecar of a tunnel has ended, and why if it was not by itself; from any thread."""
        self._on_loop(lambda: self._note_end(self._tunnels.get(tunnel_id), reason))

    def close_all(self) -> None:
        """End all tunnels, since the server stops; from any thread."""
        self._on_loop(self._close_all)

    async def serve_outside(self, websocket: WebSocket, tunnel_id: str) -> None:
        """Serve the WebSocket of a client until the tunnel is over."""
        tunnel = self._tunnels.get(tunnel_id)
        scheme, _, ticket = websocket.headers.get("authorization", "").partition(" ")
        expected = "" if tunnel is None else tunnel.secrets.ticket
        is_right = hmac.compare_digest(ticket.encode("utf-8", "surrogateescape"), expected.encode())
        if tunnel is None or not is_right or scheme.lower() != "bearer" or tunnel.outside is not None:
            await _refuse(websocket, "this ticket opens no tunnel; ask for another one")
            return
        tunnel.outside = websocket
        await self._serve(tunnel, websocket, lambda: tunnel.inside)

    async def serve_inside(self, websocket: WebSocket, tunnel_id: str) -> None:
        """Serve the WebSocket of a sidecar until the tunnel is over."""
        tunnel = self._tunnels.get(tunnel_id)
        nonce, proof = read_authorization(websocket.headers.get("authorization", ""))
        proved = LinkProof(task_id=tunnel_id, challenge="", nonce=nonce)
        key = secrets.token_hex() if tunnel is None else tunnel.secrets.key
        if not proved.proves("task", key, proof) or tunnel is None or tunnel.inside is not None:
            await _refuse(websocket, "this is no sidecar of a tunnel that waits for one")
            return
        tunnel.inside = websocket
        header = (PROOF_HEADER.lower().encode(), proved.of("open", key).encode())
        await self._serve(tunnel, websocket, lambda: tunnel.outside, header)

    async def _serve(
        self,
        tunnel: _Tunnel,
        source: WebSocket,
        target: Callable[[], WebSocket | None],
        *headers: tuple[bytes, bytes],
    ) -> None:
        """Pass on what comes from one end, until the tunnel is over; then close that end."""
        try:
            await source.accept(headers=headers)
        except (WebSocketDisconnect, RuntimeError):  # it is gone already
            self._end(tunnel, _LOST, _GONE)
            return
        tasks = [asyncio.create_task(self._pass_on(tunnel, source, target)), asyncio.create_task(tunnel.is_over.wait())]
        if source is tunnel.outside:
            tasks.append(asyncio.create_task(self._watch(tunnel)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._end(tunnel, _LOST, _GONE)
            await _shut(source, tunnel.code, tunnel.reason)

    async def _pass_on(self, tunnel: _Tunnel, source: WebSocket, target: Callable[[], WebSocket | None]) -> None:
        try:
            if target() is not None:
                await self._complete(tunnel)
            if source is tunnel.inside:  # what it has sent last waits for a client that comes later
                await tunnel.is_complete.wait()
            while True:
                message = await source.receive()
                if message["type"] == "websocket.disconnect":
                    await self._take_end(tunnel, source, message.get("code"))
                    return
                frame = message.get("bytes")
                if frame is None or len(frame) > MAX_FRAME_BYTES:
                    self._end(tunnel, _REFUSED, "an end does not keep to the rules of tunnels")
                    return
                tunnel.used_at = asyncio.get_running_loop().time()
                if not tunnel.is_complete.is_set() and tunnel.num_kept < _MAX_KEPT:
                    tunnel.kept.append(frame)
                    tunnel.num_kept += len(frame) + _FRAME_COST
                    continue
                await tunnel.is_complete.wait()
                if (other := target()) is not None:
                    await other.send_bytes(frame)
        except (WebSocketDisconnect, RuntimeError):  # the other end was closed while it was sent something
            self._end(tunnel, _LOST, _GONE)

    async def _complete(self, tunnel: _Tunnel) -> None:
        """Send the sidecar what was kept for it; from then on nothing is."""
        while tunnel.kept and tunnel.inside is not None:
            await tunnel.inside.send_bytes(tunnel.kept.popleft())
        tunnel.is_complete.set()

    async def _take_end(self, tunnel: _Tunnel, source: WebSocket, code: int | None) -> None:
        """End a tunnel of which one end was closed; if that was the sidecar's, say what became of it."""
        if code == _NORMAL:
            self._end(tunnel, _NORMAL, "")
        elif source is tunnel.inside:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await tunnel.sidecar_ended.wait()
            self._end(tunnel, _LOST, tunnel.why or "what ran beside the task was ended")
        else:
            self._end(tunnel, _LOST, _GONE)

    async def _watch(self, tunnel: _Tunnel) -> None:
        """End a tunnel that nobody uses, or whose client may not have it any more."""
        while True:
            await asyncio.sleep(_RECHECK_S)
            if asyncio.get_running_loop().time() - tunnel.used_at > _IDLE_S:
                self._end(tunnel, _LOST, f"nothing came through it for {_IDLE_S / 3600:g} hours")
            try:
                await tunnel.recheck()
            except UserError as error:
                self._end(tunnel, _REFUSED, str(error))
            except InternalError:  # the database does not answer; it is asked again
                continue

    def _end(self, tunnel: _Tunnel | None, code: int, reason: str) -> None:
        """Note that a tunnel is over; only the first reason counts."""
        if tunnel is None or tunnel.is_over.is_set():
            return
        tunnel.code, tunnel.reason = code, reason
        self._tunnels.pop(tunnel.secrets.id, None)
        tunnel.is_complete.set()
        tunnel.is_over.set()
        if tunnel.inside is None or self._loop is None:
            tunnel.end_sidecar()
        else:  # it ends by itself, and lets what it has started save something
            self._loop.call_later(_END_S, tunnel.end_sidecar)

    def _note_end(self, tunnel: _Tunnel | None, reason: str) -> None:
        if tunnel is None:
            return
        tunnel.why = reason
        tunnel.sidecar_ended.set()
        if tunnel.inside is None:  # else what it has sent is still to be passed on
            self._end(tunnel, _LOST, reason or "what was to run beside the task ended before it could be reached")

    def _drop_if_unused(self, tunnel_id: str) -> None:
        tunnel = self._tunnels.get(tunnel_id)
        if tunnel is not None and (tunnel.outside is None or tunnel.inside is None):
            self._end(tunnel, _LOST, f"it did not begin within {_CONNECT_S:g} s; try again")

    def _close_all(self) -> None:
        for tunnel in list(self._tunnels.values()):
            self._end(tunnel, _GOING_AWAY, "the server stops")

    def _on_loop(self, act: Callable[[], None]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(act)


async def _refuse(websocket: WebSocket, why: str) -> None:
    await websocket.send_denial_response(problem_response(Unauthorized(why)))


async def _shut(websocket: WebSocket, code: int, reason: str) -> None:
    states = (websocket.application_state, websocket.client_state)
    if not all(state is WebSocketState.CONNECTED for state in states):
        return
    with suppress(WebSocketDisconnect, RuntimeError, TimeoutError):  # it is gone, or reads nothing
        async with asyncio.timeout(_END_S):
            await websocket.close(code, reason.encode()[:MAX_REASON].decode(errors="ignore"))
