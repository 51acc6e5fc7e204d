"""Whether a node can carry out an order, and the launch that the zygote gets for it. Pure."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from pliant.cluster.agent.devices import Devices, confine, share_of_threads
from pliant.cluster.zygote.messages import Launch
from pliant.cluster.zygote.run_as import with_memory
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import StartOrder
from pliant.core.task_environment import TaskNode

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def check(order: StartOrder, node_id: NodeId, num_slots: int, holders: Mapping[int, TaskId]) -> None:
    """Refuse an order that cannot be carried out.

    Args:
        order: what is asked for.
        node_id: the node.
        num_slots: how many the node has.
        holders: who holds which slot now.

    Raises:
        ValueError: it cannot; the message says why.
    """
    if not _TASK_ID.fullmatch(order.task_id):
        raise ValueError(f"task id {order.task_id!r} cannot name a file; use letters, digits, '.', '_' and '-'")
    if order.node_id != node_id:
        raise ValueError(f"there is no node {order.node_id!r}; the only one here is {node_id!r}")
    if not order.slots or len(set(order.slots)) < len(order.slots):
        raise ValueError(f"task {order.task_id} is given slots {order.slots}; name at least one, and none twice")
    for slot in order.slots:
        if not 0 <= slot < num_slots:
            raise ValueError(f"there is no slot {slot} on node {order.node_id}; it has 0 to {num_slots - 1}")
        if slot in holders:
            raise ValueError(f"slot {slot} of node {order.node_id} is held by task {holders[slot]}; wait for its exit")


def launch_of(
    order: StartOrder,
    host: str,
    devices: Devices,
    base_env: Mapping[str, str],
    memory_of: Callable[[str], Path | None],
) -> Launch:
    """Return what the zygote is asked for: the order, its environment completed by what only this node knows."""
    job_id = order.env.get("PLIANT_JOB_ID", "")
    memory = memory_of(job_id) if _TASK_ID.fullmatch(job_id) else None
    node = TaskNode(
        host=host,
        num_threads=share_of_threads(devices, order.slots),
        memory_dir=None if memory is None else str(memory),
    )
    env = {"PYTHONUNBUFFERED": "1", **order.env, **node.to_env(), **confine(devices, order.slots, order.sees)}
    run_as = order.run_as
    if run_as is not None and memory is not None:
        run_as = with_memory(run_as, memory)
    paths = [path for path in (order.env.get("PYTHONPATH"), base_env.get("PYTHONPATH")) if path]
    if paths:
        env["PYTHONPATH"] = os.pathsep.join(paths)
    return Launch(
        task_id=order.task_id,
        slots=order.slots,
        argv=order.argv,
        env=env,
        cwd=order.cwd,
        log_dir=order.log_dir,
        python=order.python,
        run_as=run_as,
        read_only=order.read_only,
    )
