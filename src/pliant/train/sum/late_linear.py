"""Lets the gradients of large linear layers wait until a task's last part, as products (`pliant.train.sum.products`).

While a training is open whose batches are cut, `torch.nn.functional.linear`, which `torch.nn.Linear` and attention
call, is replaced by a function that knows the trained weights: for one of them it does what torch does, and its
backward pass hands out the two factors of the weight's gradient in the place of their product. For everything else it
calls torch's own.

Whether a gradient waits, and where it does not, how it is computed depends on nothing but the part: its samples, the
layer, and what the script did with both. So the bits are the same whichever task computes the part, and with which
others. The factors are copied: the script may write over its batch before they are multiplied.

A gradient does not wait where somebody wants to see it (a hook of the script's, `create_graph`, `torch.autograd.grad`)
or a weight is used twice in a part; then it is computed at once.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from pliant.train.sum.products import Product

LEAST_ELEMENTS: Final = 1 << 18
"""Smaller weights (1 MB) lie in the cache anyway."""
MOST_ROWS: Final = 64
"""Of more samples (or tokens) in a part, multiplying takes so much longer than adding that nothing is gained."""

Value = Tensor | Product | None

_weights: dict[int, "LateWeight"] = {}
"""The weights of all trainings that are open in this process, by identity."""
_torch_linear: Final[Callable[..., Tensor]] = torch.nn.functional.linear
"""The function in whose place `_linear` is while there are any. If somebody put another one there, it is left alone."""


class LateWeight:
    """One trained weight: what its layer did in the present part, and the product that waits."""

    def __init__(self, parameter: torch.nn.Parameter) -> None:
        self.parameter = parameter
        self.num_uses = 0
        self.may_wait = False
        self.num_own_hooks = 0
        self.product: Product | None = None

    def waits(self) -> bool:
        """Tell whether the gradient that is about to be computed may wait."""
        parameter = self.parameter
        num_hooks = len(getattr(parameter, "_post_accumulate_grad_hooks", None) or ())
        is_watched = parameter._backward_hooks or num_hooks > self.num_own_hooks
        return self.may_wait and self.num_uses == 1 and not is_watched


class LateLinears:
    """The weights among `parameters` whose gradients may wait; none if not `is_enabled`."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter], *, is_enabled: bool) -> None:
        self._weights = {
            place: LateWeight(parameter)
            for place, parameter in enumerate(parameters)
            if is_enabled and parameter.dim() == 2 and parameter.numel() >= LEAST_ELEMENTS and _is_plain(parameter)
        }
        for weight in self._weights.values():
            _weights[id(weight.parameter)] = weight
        if self._weights and torch.nn.functional.linear is _torch_linear:
            torch.nn.functional.linear = _linear

    def begin(self, *, num_own_hooks: int) -> None:
        """Let gradients wait in the backward pass that comes; so many hooks of the caller's are at every parameter."""
        for weight in self._weights.values():
            weight.may_wait, weight.num_own_hooks, weight.product = True, num_own_hooks, None

    def take(self, place: int, gradient: Tensor | None) -> Value:
        """Return the gradient of a parameter, with what came for it beside the product that waits, if anything did."""
        weight = self._weights.get(place)
        if weight is None or weight.product is None:
            return gradient
        product, weight.product = weight.product, None
        return product if gradient is None else product.compute().add_(gradient)

    def attach(self) -> None:
        """Put the gradients that wait into the parameters."""
        for place, weight in self._weights.items():
            value = self.take(place, weight.parameter.grad)
            weight.parameter.grad = value.compute() if isinstance(value, Product) else value

    def end(self) -> None:
        """End a part: nothing waits any longer."""
        for weight in self._weights.values():
            weight.may_wait, weight.num_uses, weight.product = False, 0, None

    def close(self) -> None:
        """Leave torch as it was."""
        for weight in self._weights.values():
            if _weights.get(id(weight.parameter)) is weight:
                del _weights[id(weight.parameter)]
        self._weights.clear()
        if not _weights and torch.nn.functional.linear is _linear:
            torch.nn.functional.linear = _torch_linear


class _Linear(torch.autograd.Function):
    """What `torch.nn.functional.linear` does to a matrix, but for the gradient of the weight."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, late: LateWeight) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.late = late
        late.num_uses += 1
        return _torch_linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, by: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wants_x, _, wants_bias, _ = ctx.needs_input_grad
        by_x = by.mm(weight) if wants_x else None
        by_bias = by.sum(0) if wants_bias else None
        by_weight = None
        if torch.is_grad_enabled():
            by_weight = by.t().mm(x)  # somebody wants the derivative of the derivative
        elif ctx.late.waits():
            ctx.late.product = Product(_copy(by), _copy(x))
        elif _is_wanted(ctx.next_functions[1][0]):
            by_weight = Product(_copy(by), _copy(x)).compute()
        return by_x, by_weight, by_bias, None


def _linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if torch.compiler.is_compiling():
        return _torch_linear(input, weight, bias)  # the compiler can follow this, and nothing of what comes below
    late = _weights.get(id(weight))
    if late is None or not _is_usual(input, weight):
        return _torch_linear(input, weight, bias)
    result: Tensor = _Linear.apply(input.reshape(-1, input.shape[-1]), weight, bias, late)  # type: ignore[no-untyped-call]
    return result.view(*input.shape[:-1], weight.shape[0])


def _is_usual(x: Tensor, weight: Tensor) -> bool:
    """Tell whether this is an ordinary forward pass of few samples, whose backward pass will come."""
    return (
        torch.is_grad_enabled()
        and type(x) is Tensor
        and weight.requires_grad
        and _is_plain(weight)
        and x.dtype is torch.float32
        and x.device.type == "cpu"
        and x.dim() >= 1
        and x.shape[-1] == weight.shape[1]
        and 0 < x.numel() <= MOST_ROWS * x.shape[-1]
        and not torch.is_autocast_enabled("cpu")
        and not torch.jit.is_tracing()  # type: ignore[no-untyped-call, attr-defined]
        and not torch._C._are_functorch_transforms_active()
    )


def _is_plain(weight: Tensor) -> bool:
    return weight.dtype is torch.float32 and weight.device.type == "cpu" and weight.is_contiguous()


def _is_wanted(node: Any) -> bool:
    """Tell whether a backward pass that is under way will come to this node of its graph."""
    try:
        return bool(torch._C._will_engine_execute_node(node))
    except RuntimeError:  # torch.autograd.grad by this very weight
        return True


def _copy(rows: Tensor) -> Tensor:
    return rows.clone(memory_format=torch.contiguous_format)
