"""The nodes of a Ray cluster, the launcher on each, and what Ray's autoscaler is asked for. Alone loads Ray.

Nothing here waits for Ray for long: what is asked of a launcher is answered at a later look.

The autoscaler is asked for nodes with one unit of a resource, which whoever configures it gives to one kind of node:
all kinds together, for each request of Ray's replaces the one before. A second actor takes that unit as long as the
node is wanted, so that it is busy for Ray whatever runs there. A node without such a resource is neither asked for nor
held. When a node is let go its agent ends, then both actors do; it is idle for Ray from then on.

A launcher's name says the options of agents on nodes of that kind. So a server that comes with others has a new one
made, which ends the agent; the next agent adopts its tasks.
"""

import hashlib
import socket
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import ray
from ray._private.state import state as ray_state
from ray.autoscaler.sdk import request_resources
from ray.exceptions import RayError
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import pliant
from pliant.cluster.launcher import Launched, LaunchPlan
from pliant.cluster.ray.launcher import RayLauncher
from pliant.cluster.ray.messages import BeginRay, RayNode, ScaleRay
from pliant.core.errors import Unavailable
from pliant.core.joining import machine_name_fault

_PREFIX: Final = "agent-"
_HOLD_PREFIX: Final = "hold-"
_LOOK_S: Final = 2.0
"""How often a launcher is asked."""
_CONNECT_S: Final = 5.0
_ASK_AGAIN_S: Final = 60.0
"""A head that has started anew has forgotten what it was asked for."""


class NodeHold:
    """The body of an actor that does nothing: it holds what it was started with."""


@dataclass(slots=True, eq=False)
class _Member:
    """A node that Ray says is alive."""

    ray_id: str
    host: str
    resource: str
    """One unit of it is what the node was asked for by, and is held by; empty: it is neither."""
    draining: str = ""
    machine: str = ""
    actor: Any = None
    held_at: float | None = None
    """When it was last seen to that it is held; None: it is not."""
    asked: Any = None
    """What the launcher was asked and has not answered yet."""
    asked_at: float = 0.0
    token: str = field(default="", repr=False)
    """For its agent, which has not been given it yet."""
    last: Launched = field(default_factory=lambda: Launched(machine="", state="starting"))


class RayMembership:
    """What this process knows of a Ray cluster. For one thread."""

    def __init__(self, begin: BeginRay, *, now: Callable[[], float]) -> None:
        """Connect to Ray.

        Args:
            begin: which cluster, and what agents are started with.
            now: a clock that only goes forward.

        Raises:
            Unavailable: Ray is not there, or has no node on this machine.
        """
        self._begin = begin
        self._now = now
        self._members: dict[str, _Member] = {}
        self._earlier: set[str] | None = None
        """Nodes with a launcher that an earlier process made."""
        self.address = self._connect()
        self._own = ray.get_runtime_context().get_node_id()
        self._launcher = ray.remote(RayLauncher)
        self._hold = ray.remote(NodeHold)
        self._wish: ScaleRay | None = None
        self._asked: tuple[Mapping[str, int], float] | None = None
        """For how many nodes the autoscaler was asked last, and when."""

    def scale(self, wish: ScaleRay) -> None:
        """Take note of what Ray's autoscaler is to be asked for; the next look does it."""
        self._wish = wish

    def look(self, tokens: Mapping[str, str]) -> tuple[RayNode, ...]:
        """Return the nodes that are alive, as they were when they answered last; not this one if it has no agent.

        Args:
            tokens: by machines, for those that wait for one.

        Raises:
            Unavailable: Ray does not answer.
        """
        try:
            alive = _alive(self._begin.resources)
            found = {one.ray_id: one for one in sorted(alive, key=lambda one: one.ray_id != self._own)}
            if (own := found.get(self._own)) is not None:  # the server's node is no one to be taken away
                own.resource = ""
            if self._earlier is None:
                self._earlier = self._take_over(found.values())
            draining = ray_state.get_draining_nodes()
            self._ask_autoscaler()
        except (RayError, RuntimeError) as error:
            raise Unavailable(f"Ray does not answer any more: {error}") from error
        if self._begin.own is None and self._own not in self._earlier:
            found.pop(self._own, None)
        self._members = {key: self._members.get(key, new) for key, new in found.items()}
        for key, member in self._members.items():
            member.draining = drain_words(draining[key]) if key in draining else ""
        earlier = [one for one in self._members.values() if one.ray_id in self._earlier]
        later = [one for one in self._members.values() if one.ray_id not in self._earlier]
        for member in earlier:
            self._attend(member, tokens)
        if all(member.last.machine for member in earlier):  # before that it is not known which names are taken
            for member in later:
                self._attend(member, tokens)
        return tuple(
            RayNode(
                ray_id=one.ray_id,
                machine=one.machine,
                state=one.last.state,
                said=one.last.said,
                resource=one.resource,
                draining=one.draining,
            )
            for one in self._members.values()
        )

    def _ask_autoscaler(self) -> None:
        """Say how many nodes there shall be, if that is new, or was said a while ago."""
        if self._wish is None:
            return
        num, now = self._wish.num_machines, self._now()
        if self._asked is None or self._asked[0] != num or now - self._asked[1] >= _ASK_AGAIN_S:
            request_resources(bundles=[{name: 1} for name, number in num.items() for _ in range(number)])
            self._asked = num, now

    def _connect(self) -> str:
        address = self._begin.address
        if address != "auto":
            host, _, port = address.rpartition(":")
            try:  # Ray would look for a minute and a half
                socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
            except OSError as error:
                raise Unavailable(f"no head of Ray answers at {address}: {error}; see `ray status` there") from error
        try:
            context = ray.init(address=address, namespace=f"pliant-{self._begin.pool}", log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, RayError) as error:
            raise Unavailable(
                f"Ray cannot be reached ({address}) from here: {error}. The server has to run on a node of Ray's: "
                f"`ray start --head` or `ray start --address HOST:PORT` on this machine"
            ) from error
        return str(context.address_info["gcs_address"])

    def _take_over(self, alive: Iterable[_Member]) -> set[str]:
        """Return the nodes that have a launcher; others are ended: of another Pliant, or with other options."""
        ours, there = {self._actor_name(one): one.ray_id for one in alive}, set(list_named_actors())
        for name in there - ours.keys():
            if name.startswith(_PREFIX):
                with suppress(ValueError):  # it has gone by itself
                    ray.kill(ray.get_actor(name))
        return {ours[name] for name in there & ours.keys()}

    def _attend(self, member: _Member, tokens: Mapping[str, str]) -> None:
        """Make a node's actors, or take the launcher's answer and ask it again when it is time."""
        is_let_go = self._wish is not None and member.ray_id in self._wish.let_go
        if member.last.state == "released":
            if is_let_go:
                return self._end_actors(member)
            member.last = replace(member.last, state="starting")
        if member.actor is None:
            taken = {one.machine for one in self._members.values() if one is not member}
            member.machine = member.machine or name_for(member.host, member.ray_id, taken)
            plan = self._plan(member)
            member.actor = self._launcher.options(**_detached(self._actor_name(member), member)).remote(plan)
        if member.resource and self._wish is not None and not is_let_go:
            self._keep_held(member)
        if member.asked is not None:
            self._take_answer(member)
        member.token = tokens.get(member.machine, member.token)
        if member.asked is None and (member.token or self._now() - member.asked_at >= _LOOK_S):
            member.asked = member.actor.look.remote(self._begin.server, member.token, let_go=is_let_go)
            member.asked_at, member.token = self._now(), ""
        return None

    def _plan(self, member: _Member) -> LaunchPlan:
        own = self._begin.own if member.ray_id == self._own else None
        return LaunchPlan(
            machine=member.machine,
            pool=self._begin.pool,
            server=self._begin.server,
            options=own or self._options(member),
        )

    def _options(self, member: _Member) -> tuple[str, ...]:
        """Return with which options agents of nodes like this one are started."""
        return self._begin.resources.get(member.resource, ())

    def _actor_name(self, member: _Member) -> str:
        options = self._options(member)
        mark = f"-{hashlib.sha256(repr(options).encode()).hexdigest()[:12]}" if options else ""
        return f"{_PREFIX}{pliant.__version__}-{member.ray_id}{mark}"

    def _keep_held(self, member: _Member) -> None:
        """Make the actor that holds a node, if it is not there."""
        now = self._now()
        if member.held_at is None or now - member.held_at >= _ASK_AGAIN_S:
            options = _detached(_HOLD_PREFIX + member.ray_id, member)
            self._hold.options(**options, resources={member.resource: 1}).remote()
            member.held_at = now

    def _end_actors(self, member: _Member) -> None:
        """Leave nothing of ours on a node."""
        if member.actor is None:
            return
        for name in (self._actor_name(member), _HOLD_PREFIX + member.ray_id):
            with suppress(ValueError):  # there is none
                ray.kill(ray.get_actor(name))
        member.actor = member.held_at = None

    def _take_answer(self, member: _Member) -> None:
        done, _ = ray.wait([member.asked], timeout=0)
        if not done:
            return
        asked, member.asked = member.asked, None
        try:
            member.last = ray.get(asked)
            member.machine = member.last.machine
        except RayError as error:
            first = str(error).strip().partition("\n")[0]
            member.last = Launched(machine=member.machine, state="starting", said=f"Ray's actor: {first:.300}")
            member.actor = None


def _alive(resources: Collection[str]) -> list[_Member]:
    """Return the nodes that Ray says are alive, each with the first of these resources that it has."""
    return [
        _Member(
            ray_id=str(one["NodeID"]),
            host=str(one["NodeManagerHostname"]),
            resource=next((name for name in resources if one["Resources"].get(name, 0) >= 1), ""),
        )
        for one in ray.nodes()
        if one["Alive"]
    ]


def drain_words(deadline_ms: int) -> str:
    """Return what is said of a node that Ray drains; 0: nobody knows until when."""
    try:
        at = datetime.fromtimestamp(deadline_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        deadline_ms = 0
    return "Ray drains it" + (f", and ends it at {at:%Y-%m-%d %H:%M:%S} UTC" if deadline_ms else "")


def name_for(host: str, ray_id: str, taken: Collection[str]) -> str:
    """Return what a node is called in the pool: its host's name, and a number if another node has that name."""
    first = host.partition(".")[0]
    base = f"ray-{ray_id[:8]}" if machine_name_fault(first) else first
    names = (base, *(f"{base[:56]}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _detached(name: str, member: _Member) -> dict[str, Any]:
    """Return the options of an actor that stays on a node, one of its name."""
    return {
        "name": name,
        "get_if_exists": True,
        "lifetime": "detached",
        "num_cpus": 0,
        "max_restarts": -1,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(member.ray_id, soft=False),
    }
