"""Between Ray's autoscaler and the pool: what to ask Ray for, which machines it may take, and those that it has taken.

Once a second or so `look` is given the nodes that Ray says are alive. What Ray drains by itself, as before it takes a
preempted machine away, is drained here, always. All else is done only if the server was told which kinds of machines
there may be: then it says what Ray's autoscaler is to be asked for, drains what is let go, and takes out of the pool
what Ray has taken away for good. Whatever was drained here is returned when its reason is gone. Of which kind a machine
is, the resource of its node says.

A node's name comes from that node. Whoever has one there could give it any: the server's own machine, and those that
have joined by others' tokens, are none of Ray's, whatever it says.

Nothing is remembered beyond the server: the next one finds what was let go drained by the autoscaler, returns it, and
lets it go again when it has been idle for long enough.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pliant.cluster.ray.messages import RayNode, ScaleRay
from pliant.control.requests.autoscaling import AutoscaledPool
from pliant.core.duration import duration
from pliant.core.joining import machine_name_fault
from pliant.policy.autoscale.machines import MachineKind, MachinePlan, plan_machines

RAY: Final = "Ray"
"""Who made the tokens with which nodes of Ray's join; no account has this name."""
RESOURCE: Final = "pliant"
"""One unit of it is what a node is asked for by; with a name behind it where there are several kinds."""
GONE_S: Final = 600.0
"""A machine that Ray does not name any more is taken out of the pool so much later: its node may have started anew."""
LET_GO_GONE_S: Final = 30.0
"""The same, of one that was let go, or that Ray had drained."""
_REGISTER_S: Final = 5.0
"""How often it is looked up which machines have joined."""
MAX_SAID: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingMachine:
    """A machine that Ray named and names no more."""

    since: float
    was_drained: bool


class RayMachines:
    """The machines of a Ray cluster as their autoscaler sees them. For one thread."""

    def __init__(self, pool: AutoscaledPool, kinds: Sequence[MachineKind]) -> None:
        """Begin; without `kinds` nothing is asked of Ray's autoscaler."""
        self._pool = pool
        self._kinds = {resource_of(kind): kind for kind in kinds}
        self._plan = MachinePlan()
        self._register_at = 0.0
        self._joined: Mapping[str, str] = {}
        """Who made the token of each machine that has joined, as of a moment ago."""
        self._missing: dict[str, MissingMachine] = {}

    def look(self, nodes: Sequence[RayNode], now: float) -> ScaleRay | None:
        """Take note of the nodes that there are; return what Ray is to be asked for; None: nothing.

        Args:
            nodes: all that Ray says are alive, but for the server's own.
            now: seconds, on a clock that only goes forward.
        """
        is_due = now >= self._register_at
        if is_due:
            self._register_at = now + _REGISTER_S
            self._joined = self._pool.joined()
        named = {node.machine: node for node in nodes if self._is_rays(node.machine)}
        draining = {name: plain_line(node.draining) for name, node in named.items() if node.draining}
        for name, words in draining.items():
            self._pool.drain(name, words)
        wish = None
        if self._kinds:
            wish = self._scale({name: node for name, node in named.items() if name not in draining}, now)
            if is_due:
                self._take_out(named, now)
        for name in self._pool.drained() & named.keys() - draining.keys() - self._plan.let_go:
            self._pool.put_back(name)
        return wish

    def _is_rays(self, name: str) -> bool:
        return not machine_name_fault(name) and self._joined.get(name, RAY) == RAY

    def _scale(self, named: Mapping[str, RayNode], now: float) -> ScaleRay:
        its = {name: self._kinds[node.resource] for name, node in named.items() if node.resource in self._kinds}
        machines, kinds = self._pool.pooled(its), self._pool.kinds(self._kinds.values())
        plan = plan_machines(machines, self._pool.demands(), kinds, self._plan, now)
        gone = frozenset(name for name in plan.let_go if self._let_go(name, its[name]))
        self._plan = replace(plan, let_go=gone)
        num_machines = {}
        for resource, kind in self._kinds.items():
            num_back = sum(its[name] is kind for name in plan.let_go - gone)  # a task may have come in between
            num_machines[resource] = min(plan.num_machines[kind.name] + num_back, kind.most)
        return ScaleRay(num_machines=num_machines, let_go=tuple(sorted(named[name].ray_id for name in gone)))

    def _let_go(self, name: str, kind: MachineKind) -> bool:
        return self._pool.drain(name, f"it was idle for {duration(kind.idle_s)}", if_idle=True)

    def _take_out(self, named: Collection[str], now: float) -> None:
        """Take machines out of the pool that Ray has named for a while no more."""
        drained, missing = self._pool.drained(), {}
        for name in {name for name, owner in self._joined.items() if owner == RAY} - set(named):
            one = self._missing.get(name) or MissingMachine(since=now, was_drained=name in drained)
            patience_s = LET_GO_GONE_S if one.was_drained else GONE_S
            if now - one.since < patience_s or not self._pool.remove(name):
                missing[name] = one
        self._missing = missing


def resource_of(kind: MachineKind) -> str:
    """Return the resource by which nodes of a kind are asked for."""
    return f"{RESOURCE}_{kind.name}" if kind.name else RESOURCE


def resources_of(kinds: Iterable[MachineKind]) -> Mapping[str, tuple[str, ...]]:
    """Return these, and with which options the agent of a node that has one is started."""
    return {
        resource_of(kind): tuple(f"--label={name}={value}" for name, value in kind.labels.items()) for kind in kinds
    }


def plain_line(said: str) -> str:
    """Return what somebody said as a line of a log can have it."""
    return "".join(one if one.isprintable() else " " for one in said[:MAX_SAID])
