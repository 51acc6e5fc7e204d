"""Whether a node can carry out an order, and what the task's process gets for it. Pure."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pliant.cluster.agent.devices import Devices, confine, device_files, share_of_threads
from pliant.cluster.agent.settings import AgentSettings
from pliant.cluster.agent.space import TaskSpace
from pliant.cluster.zygote.messages import TaskProgram
from pliant.cluster.zygote.records import Record
from pliant.core.confinement import Confinement
from pliant.core.job import NodeId, TaskId
from pliant.core.ports import LiveTask, StartOrder
from pliant.core.slot import WHOLE_SLOT
from pliant.core.task_environment import TaskNode

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class Holder(NamedTuple):
    """Who holds a slot, or a part of one."""

    task_id: TaskId
    share: int
    """Thousandths."""


def held_slots(tasks: Iterable[Record | LiveTask]) -> Mapping[int, Sequence[Holder]]:
    """Return who holds how much of which slot."""
    held: dict[int, list[Holder]] = {}
    for task in tasks:
        for slot in task.slots:
            held.setdefault(slot, []).append(Holder(task.task_id, task.slot_share))
    return held


class MisfitError(ValueError):
    """A reason of this machine's: another one may carry the order out."""


def check(order: StartOrder, node_id: NodeId, num_slots: int, held: Mapping[int, Sequence[Holder]]) -> None:
    """Refuse an order that cannot be carried out.

    Args:
        order: what is asked for.
        node_id: the node.
        num_slots: how many the node has.
        held: who holds how much of which slot now.

    Raises:
        ValueError: it cannot; the message says why.
    """
    if not _TASK_ID.fullmatch(order.task_id):
        raise ValueError(f"task id {order.task_id!r} cannot name a file; use letters, digits, '.', '_' and '-'")
    if order.node_id != node_id:
        raise ValueError(f"there is no node {order.node_id!r}; the only one here is {node_id!r}")
    if not 1 <= order.slot_share <= WHOLE_SLOT or (order.slot_share < WHOLE_SLOT and len(order.slots) > 1):
        raise ValueError(f"task {order.task_id} is given {order.slot_share} thousandths of slots {order.slots}")
    if not order.slots or len(set(order.slots)) < len(order.slots):
        raise ValueError(f"task {order.task_id} is given slots {order.slots}; name at least one, and none twice")
    for slot in order.slots:
        if not 0 <= slot < num_slots:
            raise ValueError(f"there is no slot {slot} on node {order.node_id}; it has 0 to {num_slots - 1}")
        holders = held.get(slot, ())
        if sum(holder.share for holder in holders) + order.slot_share > WHOLE_SLOT:
            who = " and ".join(str(holder.task_id) for holder in holders) or "nobody"
            raise ValueError(f"slot {slot} of node {order.node_id} is held by task {who}; wait for its exit")


def check_environment(order: StartOrder, settings: AgentSettings) -> None:
    """Refuse an order whose environment does not work on this machine.

    Raises:
        MisfitError: it does not.
    """
    python = order.python or ""
    for folder, why in settings.strange_environments.items():
        if python.startswith(f"{folder}/"):
            key = python.removeprefix(f"{folder}/").partition("/")[0]
            raise MisfitError(f"the environment {key:.12} does not work on this machine: {why}")


def job_of(order: StartOrder) -> str:
    """Return by what name the folders of an order's job are known on this node; one that cannot name a file is none."""
    job_id = order.env.get("PLIANT_JOB_ID", "")
    return job_id if _TASK_ID.fullmatch(job_id) else order.task_id


def disk_folders(order: StartOrder, space: TaskSpace) -> tuple[str, ...]:
    """Return the folders on the disk that a task writes to, none of them in another: what is in them is its job's."""
    named = (order.result_dir, *order.confinement.writes, space.home, space.temporary)
    folders = sorted({os.path.normpath(folder) for folder in named if folder is not None})
    return tuple(one for one in folders if not any(one.startswith(f"{other}/") for other in folders))


def program_of(
    order: StartOrder, settings: AgentSettings, devices: Devices, base_env: Mapping[str, str], space: TaskSpace
) -> TaskProgram:
    """Return what a child becomes: the order, completed by what only this node knows."""
    node = TaskNode(
        host=settings.host,
        num_threads=share_of_threads(devices, order.slots, order.slot_share),
        slot_share=order.slot_share,
        memory_dir=space.memory_dir,
        has_copies=settings.has_copies,
    )
    env = {
        "PYTHONUNBUFFERED": "1",
        **space.variables(),
        **order.env,
        **node.to_env(),
        **confine(devices, order.slots, order.sees, order.slot_share),
    }
    ours = base_env.get("PYTHONPATH") if order.python is None else None  # another interpreter has packages of its own
    env["PYTHONPATH"] = os.pathsep.join(path for path in (order.env.get("PYTHONPATH"), ours) if path)
    return TaskProgram(
        task_id=order.task_id,
        argv=order.argv,
        env=env,
        cwd=order.cwd,
        log_dir=order.log_dir,
        python=order.python,
        confinement=_confinement(order.confinement, settings, space, device_files(devices, order.sees or order.slots)),
    )


def _confinement(
    ordered: Confinement, settings: AgentSettings, space: TaskSpace, devices: tuple[str, ...]
) -> Confinement | None:
    if settings.isolation == "off" and ordered.user is None:
        return None
    writes = (*ordered.writes, *filter(None, (space.home, space.memory_dir)))
    return replace(
        ordered,
        writes=writes,
        shares=settings.may_write,
        reads=(*ordered.reads, *settings.may_read),
        hides=(*ordered.hides, *settings.hides),
        temporary=space.temporary,
        memory=space.memory,
        devices=devices,
        max_file_bytes=settings.max_disk_bytes,
        required=settings.isolation == "required",
    )
