"""Whether a minimum fits on the slots that there are, whoever holds them now; and if not, why not, in words."""

from collections.abc import Sequence

from pliant.core.plan import QueueRules


def misfit(min_tasks: int, size: int, queue: QueueRules, slots: Sequence[int]) -> str:
    """Return why so many tasks never fit on these slots together, as a part of a sentence; empty if they do.

    Args:
        min_tasks: have to run at once.
        size: slots of each of them, on one node.
        queue: whose jobs may use the slots.
        slots: of every node, those that the queue's group has.
    """
    whose = f"queue {queue.name}" + (f" (group {queue.group})" if queue.group else "")
    need, total = min_tasks * size, sum(slots)
    needs = f"its minimum needs {_slots(need)}"
    if need > total:
        return f"{needs} and {whose} has {f'only {total}' if total else 'none'}"
    num_places = sum(num // size for num in slots)
    if num_places >= min_tasks:
        return ""
    each = f"{_slots(size)} on one node"
    if not num_places:
        return f"its minimum needs {each} and {whose} has {max(slots)} at most"
    return f"its minimum needs {min_tasks} times {each} and {whose} has room for only {num_places} such tasks"


def _slots(num: int) -> str:
    return f"{num} slot{'s' * (num != 1)}"
