"""Whether a loss is a mean or a sum over its samples: what a script says of it, and a look at one that says nothing.

A plain loop works with either. Where a global batch is cut into parts it matters: a part of 8 of 64 samples counts 8/64
if its loss is a mean, and as it is if that is a sum. A sum that is taken for a mean trains with 1/8 of the gradient.

Theory of operation
-------------------
The forward pass is the script's, so the loss cannot be computed again on half of the samples; that would draw other
random numbers and move the statistics of BatchNorm, too. What it was computed by is there to read: the graph that
autograd keeps. `find_sum` follows it down from the loss, and calls nothing but the backward functions of operations
that are linear: so nothing changes, and nothing is freed. It looks for a *term* that adds up samples:

1. While values are single numbers, it goes through what adds and scales them, and keeps the factor of every term.
2. A term ends at torch's own loss, which has its reduction with it, at `sum()`, or at anything else, which is no sum.
3. Under a `sum()` it goes on through what is linear, with the derivative of the loss by every element there. Where the
   derivatives add up to 1 at most, or are 1/n of n samples in the mean, that is a mean after all.
4. What is left has n rows that no parameter brings along: a sum over samples.

Examples with n = 8:

    cross_entropy(x, y)                      a loss with the reduction "mean"                      no
    bce(x, y, reduction="sum") + kld         a loss with the reduction "sum"                       a sum
    -0.5 * (1 + v - v.exp()).sum()           factor -0.5, derivatives of 0.5, 8 rows               a sum
    square.sum() / len(x)                    factor 1/8                                            no
    square.mean(0).sum()                     derivatives of 1/8 under mean(0)                      no
    cross_entropy(x, y) + w.square().sum()   a mean; rows of a parameter                           no

Law: rather no alarm than a false one. Factors outside of 1/2 to 2 (`0.01 * square.sum()` may be a mean over 100),
single samples, functions of the script's own and compiled ones are no sum; the script can say `reduction` itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, get_args

import torch

from pliant.train.errors import TrainingError

Reduction = Literal["mean", "sum"]

_NONE, _MEAN, _SUM = 0, 1, 2
"""What torch's losses keep as their reduction."""
_SCALES: Final = ("MulBackward", "DivBackward")
_ADDS: Final = (
    *("AddBackward", "SubBackward", "NegBackward", "CloneBackward", "ToCopyBackward", "AliasBackward"),
    *("ViewBackward", "UnsafeViewBackward", "ReshapeAliasBackward", "SqueezeBackward", "UnsqueezeBackward"),
)
_REDUCES: Final = ("SumBackward", "MeanBackward")
_MOVES: Final = (
    *("PermuteBackward", "TransposeBackward", "TBackward", "ExpandBackward", "SelectBackward", "SliceBackward"),
    *("IndexBackward", "GatherBackward", "MaskedFillBackward", "MaskedSelectBackward", "StackBackward", "CatBackward"),
)
_LOWEST, _HIGHEST = 0.5, 2.0
"""Bounds of the factors that say nothing of a number of samples."""
_ROUNDING: Final = 1.01
_MOST_NODES: Final = 2000
"""A larger graph of single numbers, or of parameters, is given up."""

Node = Any
"""`torch.autograd.graph.Node`, whose types do not say what it has."""


def check_reduction(given: str | None) -> None:
    """Refuse a word that is no reduction.

    Raises:
        TrainingError: it is neither "mean" nor "sum".
    """
    if given is not None and given not in get_args(Reduction):
        raise TrainingError(
            f'reduction is {given!r}; give "mean" if the loss is the mean over the samples of the batch, or "sum" if '
            f"it is their sum"
        )


def find_sum(loss: object, num_samples: int) -> str | None:
    """Return the name of an operation that adds up the samples of a loss; None if none is seen.

    Args:
        loss: of one batch; its graph may have been used by `backward` already, where less is seen.
        num_samples: samples of the batch.
    """
    if not isinstance(loss, torch.Tensor) or loss.grad_fn is None or loss.numel() != 1 or num_samples < 2:
        return None
    with torch.no_grad():
        for node, factor in _terms(loss.grad_fn):
            if abs(factor) * num_samples > _ROUNDING and _adds_samples(node, factor, num_samples):
                return str(node.name()).partition("Backward")[0]
    return None


def describe_sum(operation: str, loss: torch.Tensor, num_samples: int, num_samples_of_all: int) -> str:
    """Return what a person has to know of a loss that is a sum and was taken for a mean."""
    value = loss.item()
    return (
        f"the loss looks like a sum over samples ({operation}): it is {value:.6g} for the first {num_samples} samples, "
        f"{value / num_samples:.6g} for each of them. It is taken for a mean, so it counts "
        f"{num_samples}/{num_samples_of_all}, and the gradient is smaller than that of a plain loop. To train as the "
        f'plain loop does, call run.step(loss, reduction="sum"); or divide what is summed by the number of samples of '
        f'the batch; if the loss is right as it is, call run.step(loss, reduction="mean")'
    )


def _terms(root: Node) -> Iterator[tuple[Node, float]]:
    """Yield the nodes at which the terms of a loss end, with their factors, those of usual size only."""
    waiting = [(root, 1.0)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        node, factor = waiting.pop()
        below = [(lower, 1.0) for lower in _inputs(node)]
        if _is(node, _SCALES):
            derivatives = _derivatives(node, torch.ones(_shape(node)))
            below = [(lower, float(by)) for lower, by in derivatives if by.numel() == 1]
        elif not _is(node, _ADDS) and not (_is(node, _REDUCES) and all(_is_number(lower) for lower, _ in below)):
            yield node, factor
            continue
        for lower, by in below:
            if all(_LOWEST <= abs(size) <= _HIGHEST for size in (by, by * factor)):
                waiting.append((lower, by * factor))


def _adds_samples(node: Node, factor: float, num_samples: int) -> bool:
    """Tell whether a term is a sum over samples."""
    if not _is(node, ("SumBackward",)):
        return _is_sum_of_rows(node, num_samples)
    waiting = [(node, torch.full(_shape(node), factor), False)]
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node, by, has_rows = waiting.pop()
        shape, size = _shape(node), by.abs().double()
        if shape and (float(size.sum()) <= _ROUNDING or float(size.mean()) * num_samples <= _ROUNDING):
            continue  # a mean after all
        has_rows = has_rows or shape[:1] == (num_samples,)
        reduction = getattr(node, "_saved_reduction", None)
        if _is_linear(node):
            waiting += [(lower, derivative, has_rows) for lower, derivative in _derivatives(node, by)]
        elif reduction in (_MEAN, _SUM):
            if _is_sum_of_rows(node, num_samples):
                return True
        elif (has_rows or reduction == _NONE) and not _only_parameters(node, num_samples):
            return True
    return False


def _is_sum_of_rows(node: Node, num_samples: int) -> bool:
    """Tell whether a node is a loss of torch's own that adds up its rows, and these belong to samples."""
    if getattr(node, "_saved_reduction", None) != _SUM:
        return False
    counts = [shape[0] for lower in _inputs(node)[:1] if (shape := _shape(lower))]
    return any(count % num_samples == 0 and not _only_parameters(node, count) for count in counts)


def _only_parameters(node: Node, num_rows: int) -> bool:
    """Tell whether as many rows may be those of parameters: all that are under the node have a side of that length."""
    waiting, seen = [node], {node}
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.pop()
        if hasattr(node, "variable") and num_rows not in node.variable.shape:
            return False
        fresh = [lower for lower in _inputs(node) if lower not in seen]
        seen.update(fresh)
        waiting += fresh
    return True


def _is_linear(node: Node) -> bool:
    if _is(node, ("MulBackward",)):
        return len(_inputs(node)) == 1
    if _is(node, ("DivBackward",)):
        return len(_inputs(node)) == 1 and node.next_functions[0][0] is not None
    return _is(node, (*_ADDS, *_REDUCES, *_MOVES))


def _derivatives(node: Node, by: torch.Tensor) -> Sequence[tuple[Node, torch.Tensor]]:
    """Return the nodes under a node with the derivatives by what they gave; none where that would run other code."""
    metadata = node._input_metadata[0]
    try:
        if any(_has_hook(getattr(node, name)) for name in dir(node) if name.startswith("_raw_saved_")):
            return []  # activation checkpointing would compute the forward pass again
        found = node(by.to(device=metadata.device, dtype=metadata.dtype))
    except RuntimeError:  # what it needs was freed by `backward`
        return []
    found = found if isinstance(found, tuple) else (found,)
    lower = [function for function, _ in node.next_functions]
    return [(one, it) for one, it in zip(lower, found, strict=False) if one is not None and it is not None]


def _has_hook(saved: Any) -> bool:
    return any(
        getattr(one, "unpack_hook", None) is not None for one in (saved if isinstance(saved, tuple) else [saved])
    )


def _inputs(node: Node) -> list[Node]:
    return [function for function, _ in node.next_functions if function is not None]


def _is(node: Node, names: tuple[str, ...]) -> bool:
    name, is_backward, number = str(node.name()).partition("Backward")
    return name + is_backward in names and number.isdigit()


def _shape(node: Node) -> tuple[int, ...]:
    """Return the shape of what a node gave in the forward pass; () where it gave several."""
    metadata = _metadata(node)
    return tuple(metadata[0].shape) if len(metadata) == 1 else ()


def _is_number(node: Node) -> bool:
    return len(_metadata(node)) == 1 and torch.Size(_shape(node)).numel() == 1


def _metadata(node: Node) -> Sequence[Any]:
    return getattr(node, "_input_metadata", ())
