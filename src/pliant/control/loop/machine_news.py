"""What is said when machines come and go, from one look at the cluster to the next. Pure."""

from collections.abc import Iterator, Sequence

from pliant.core.plan import NodeView


def machine_news(before: Sequence[NodeView], now: Sequence[NodeView]) -> Iterator[tuple[str, str]]:
    """Yield a machine's name and what has become of it, in words; nothing at the first look, when all is new."""
    if not before:
        return
    were, are = ({node.id: node for node in nodes} for nodes in (before, now))
    for name, node in are.items():
        if not node.slots and not node.away:
            continue  # it has said no more than its name
        was = were.get(name)
        if node.away and was is not None and not was.away:
            yield name, f"nothing is heard of {name} any more: nothing is started there until it is back"
        elif not node.away and (was is None or was.away or not was.slots):
            num = len(node.slots)
            yield name, f"{name} is there, with {num} slot{'s' * (num != 1)}"
