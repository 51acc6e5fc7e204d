"""The nodes of a Ray cluster, and the launcher on each. The only module that loads Ray.

Nothing here waits for Ray for long: what is asked of a launcher is answered at a later look.
"""

import socket
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import ray
from ray.exceptions import RayError
from ray.util import list_named_actors
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import pliant
from pliant.cluster.ray.launcher import AgentLauncher, Launched, LaunchPlan
from pliant.cluster.ray.messages import BeginRay, RayNode
from pliant.core.errors import Unavailable
from pliant.core.joining import machine_name_fault

_PREFIX: Final = "agent-"
_LOOK_S: Final = 2.0
"""How often a launcher is asked."""
_CONNECT_S: Final = 5.0


@dataclass(slots=True, eq=False)
class _Member:
    """A node that Ray says is alive."""

    ray_id: str
    host: str
    machine: str = ""
    actor: Any = None
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
        self._launcher = ray.remote(AgentLauncher)

    def look(self, tokens: Mapping[str, str]) -> tuple[RayNode, ...]:
        """Return the nodes that are alive, but for this machine's own, as they were when they answered last.

        Args:
            tokens: by machines, for those that wait for one.

        Raises:
            Unavailable: Ray does not answer.
        """
        try:
            found = {str(one["NodeID"]): str(one["NodeManagerHostname"]) for one in ray.nodes() if one["Alive"]}
            if self._earlier is None:
                self._earlier = self._take_over(found)
        except RayError as error:
            raise Unavailable(f"Ray does not answer any more: {error}") from error
        found.pop(self._own, None)
        self._members = {key: self._members.get(key) or _Member(key, host) for key, host in found.items()}
        earlier = [one for one in self._members.values() if one.ray_id in self._earlier]
        later = [one for one in self._members.values() if one.ray_id not in self._earlier]
        for member in earlier:
            self._attend(member, tokens)
        if all(member.last.machine for member in earlier):  # before that it is not known which names are taken
            for member in later:
                self._attend(member, tokens)
        return tuple(
            RayNode(ray_id=one.ray_id, machine=one.machine, state=one.last.state, said=one.last.said)
            for one in self._members.values()
        )

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

    def _take_over(self, alive: Mapping[str, str]) -> set[str]:
        """Return the nodes that have a launcher; those of another Pliant are ended, for so would be their agents."""
        ours, there = {_actor_name(ray_id): ray_id for ray_id in alive}, set(list_named_actors())
        for name in there - ours.keys():
            if name.startswith(_PREFIX):
                with suppress(ValueError):  # it has gone by itself
                    ray.kill(ray.get_actor(name))
        return {ours[name] for name in there & ours.keys()}

    def _attend(self, member: _Member, tokens: Mapping[str, str]) -> None:
        """Make a node's launcher, or take its answer and ask it again when it is time."""
        if member.actor is None:
            taken = {one.machine for one in self._members.values() if one is not member}
            member.machine = name_for(member.host, member.ray_id, taken)
            plan = LaunchPlan(machine=member.machine, pool=self._begin.pool, server=self._begin.server)
            member.actor = self._launcher.options(
                name=_actor_name(member.ray_id),
                get_if_exists=True,
                lifetime="detached",
                num_cpus=0,
                max_restarts=-1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(member.ray_id, soft=False),
            ).remote(plan)
        if member.asked is not None:
            self._take_answer(member)
        member.token = tokens.get(member.machine, member.token)
        if member.asked is None and (member.token or self._now() - member.asked_at >= _LOOK_S):
            member.asked = member.actor.look.remote(self._begin.server, member.token)
            member.asked_at, member.token = self._now(), ""

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


def name_for(host: str, ray_id: str, taken: Collection[str]) -> str:
    """Return what a node is called in the pool: its host's name, and a number if another node has that name."""
    first = host.partition(".")[0]
    base = f"ray-{ray_id[:8]}" if machine_name_fault(first) else first
    names = (base, *(f"{base[:56]}-{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _actor_name(ray_id: str) -> str:
    return f"{_PREFIX}{pliant.__version__}-{ray_id}"
