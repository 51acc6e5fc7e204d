"""Several requests computed as one (`JoinedCompute`): arrays are joined along their first dimension, and split again.

Requests are joined if their inputs have the same names and datatypes, and the same shapes but for the first dimension.
Example: x of [1, 28, 28] and x of [3, 28, 28] are computed as x of [4, 28, 28]; the first row of every output belongs
to the first request. What cannot be joined is computed in groups, or alone.

The rows of a model must not depend on each other: that is what a batch is. A model that does not keep its first
dimension shows that it has none: it is never given joined requests again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Computed = Arrays | Exception


class JoinedCompute:
    """Computes requests in as few calls as their shapes allow.

    Args:
        compute: returns the outputs of one call, by name; may raise anything.
        may_join: False: every request is computed alone.
    """

    def __init__(self, compute: Callable[[Arrays], Arrays], may_join: bool = True) -> None:
        self._compute = compute
        self._may_join = may_join

    def compute(self, requests: Sequence[Arrays]) -> list[Computed]:
        """Return outputs, or the error, of every request, in their order."""
        results: dict[int, Computed] = {}
        for group in self._groups(requests):
            members = [requests[index] for index in group]
            results.update(zip(group, self._compute_group(members), strict=True))
        return [results[index] for index in range(len(requests))]

    def _groups(self, requests: Sequence[Arrays]) -> list[list[int]]:
        groups: dict[object, list[int]] = {}
        for index, inputs in enumerate(requests):
            key = _key(inputs) if self._may_join else None
            groups.setdefault(index if key is None else key, []).append(index)
        return list(groups.values())

    def _compute_group(self, members: Sequence[Arrays]) -> list[Computed]:
        """Compute a group at once; if that fails, every request alone, so that one does not spoil the others."""
        if len(members) > 1:
            try:
                outputs = self._compute({name: np.concatenate([one[name] for one in members]) for name in members[0]})
            except Exception:  # noqa: BLE001 (what it is shows when they are computed alone)
                return [self._compute_alone(one) for one in members]
            sizes = [_num_rows(one) for one in members]
            if all(array.ndim and len(array) == sum(sizes) for array in outputs.values()):
                return _split(outputs, sizes)
            self._may_join = False
        return [self._compute_alone(one) for one in members]

    def _compute_alone(self, inputs: Arrays) -> Computed:
        try:
            return self._compute(inputs)
        except Exception as error:  # noqa: BLE001 (a model may raise anything; its caller is told what)
            return error


def _num_rows(inputs: Arrays) -> int:
    return len(next(iter(inputs.values())))


def _key(inputs: Arrays) -> object:
    """Return what requests have in common that can be joined; None: this one cannot."""
    if not inputs or any(not array.ndim or array.dtype.hasobject for array in inputs.values()):
        return None
    if len({len(array) for array in inputs.values()}) != 1:
        return None
    return frozenset((name, array.dtype.str, array.shape[1:]) for name, array in inputs.items())


def _split(outputs: Arrays, sizes: Sequence[int]) -> list[Computed]:
    ends = np.cumsum(sizes)
    return [
        {name: array[end - size : end] for name, array in outputs.items()}
        for size, end in zip(sizes, ends.tolist(), strict=True)
    ]
