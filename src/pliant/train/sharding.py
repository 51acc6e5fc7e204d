"""Which samples a step uses and who computes them: pure arithmetic over positions in the epoch's order.

Knows nothing of data sets, processes or random numbers. Laws (property-tested): within an epoch the steps cut
`range(num_samples)` into consecutive batches; a batch is cut into V parts that depend on nothing but the batch; workers
own consecutive parts. So every sample is used exactly once an epoch, whatever happens to the number of workers.
"""


def cut(whole: range, num_parts: int, part: int) -> range:
    """Return part `part` of `whole` cut into `num_parts` consecutive parts whose lengths differ by at most one.

    The longer parts come first.
    """
    short, num_long = divmod(len(whole), num_parts)
    start = whole.start + part * short + min(part, num_long)
    return range(start, start + short + (1 if part < num_long else 0))


def num_steps(num_samples: int, batch_size: int) -> int:
    """Return how many global batches an epoch has; the last one may be smaller than the others."""
    return -(-num_samples // batch_size)


def batch(num_samples: int, batch_size: int, step: int) -> range:
    """Return the positions of the global batch of step `step` (0-based, within the epoch)."""
    return range(step * batch_size, min((step + 1) * batch_size, num_samples))


def chunks(whole: range, *, virtual_workers: int, size: int, rank: int) -> tuple[tuple[int, range], ...]:
    """Return the parts of a global batch that worker `rank` of `size` computes: (virtual worker, positions).

    Empty parts (a last batch smaller than V) are left out.
    """
    mine = cut(range(virtual_workers), size, rank)
    parts = ((v, cut(whole, virtual_workers, v)) for v in mine)
    return tuple((v, positions) for v, positions in parts if positions)
