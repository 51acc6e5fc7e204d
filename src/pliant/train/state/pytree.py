"""A state as a tree, how it is sent from one task to another, and its digest.

A tree is made of dict, list, tuple, str, int, float, bool, None and tensors: what `state_dict()` returns. It travels as
a JSON skeleton and raw tensor bytes over the generation's own connections. No pickle is ever read from the network,
since unpickling can run code.

For example `{"step": 3, "w": tensor([1.0, 2.0])}` becomes the skeleton
`{"d": [["step", 3], ["w", {"t": ["float32", [2]]}]]}` and one tensor of 8 bytes.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import torch

from pliant.train.errors import TrainingError
from pliant.train.group.collectives import Group

Tree = Any
"""dict | list | tuple | str | int | float | bool | None | torch.Tensor, nested."""

_DTYPES: Final = {
    str(dtype).removeprefix("torch."): dtype for dtype in vars(torch).values() if isinstance(dtype, torch.dtype)
}


def flatten(tree: Tree) -> tuple[str, list[torch.Tensor]]:
    """Return a JSON skeleton and the tensors it refers to, in order.

    Raises:
        TrainingError: the tree holds something that cannot travel; the message names where.
    """
    tensors: list[torch.Tensor] = []

    def encode(node: Tree, path: str) -> Any:
        match node:
            case torch.Tensor():
                tensors.append(node.detach())
                return {"t": [str(node.dtype).removeprefix("torch."), list(node.shape)]}
            case dict():
                return {"d": [[encode(k, path), encode(v, f"{path}.{k}")] for k, v in node.items()]}
            case tuple():
                return {"u": [encode(item, f"{path}[{i}]") for i, item in enumerate(node)]}
            case list():
                return [encode(item, f"{path}[{i}]") for i, item in enumerate(node)]
            case None | bool() | str() | int() | float():
                return node
            case _:
                where = path.lstrip(".") or "its root"
                raise TrainingError(
                    f"state at {where} is a {type(node).__name__}, which cannot travel to another task; "
                    f"state_dict() may hold tensors, numbers, strings, lists, tuples and dicts"
                )

    return json.dumps(encode(tree, "")), tensors


def shapes(skeleton: str) -> list[tuple[torch.dtype, tuple[int, ...]]]:
    """Return dtype and shape of every tensor that a skeleton refers to, in order."""
    found: list[tuple[torch.dtype, tuple[int, ...]]] = []
    _decode(json.loads(skeleton), lambda dtype, shape: found.append((dtype, shape)))
    return found


def unflatten(skeleton: str, tensors: list[torch.Tensor]) -> Tree:
    """Return the tree that `flatten` took apart."""
    source = iter(tensors)
    return _decode(json.loads(skeleton), lambda _dtype, _shape: next(source))


def _decode(node: Any, tensor: Callable[[torch.dtype, tuple[int, ...]], Any]) -> Tree:
    match node:
        case {"t": [name, shape]}:
            return tensor(_DTYPES[name], tuple(shape))
        case {"d": pairs}:
            return {_decode(k, tensor): _decode(v, tensor) for k, v in pairs}
        case {"u": items}:
            return tuple(_decode(item, tensor) for item in items)
        case list():
            return [_decode(item, tensor) for item in node]
        case _:
            return node


def copy_containers(tree: Tree) -> Tree:
    """Copy the dicts, lists and tuples of a tree, not its tensors: some `load_state_dict` empty what they are given."""
    match tree:
        case dict():
            return {key: copy_containers(value) for key, value in tree.items()}
        case list() | tuple():
            return type(tree)(copy_containers(item) for item in tree)
        case _:
            return tree


def digest(tree: Any) -> str:
    """Return the SHA-256 of a state (dict, list, tuple, numbers, strings, tensors) in hex."""
    sha = hashlib.sha256()
    _hash(sha, tree)
    return sha.hexdigest()


def _hash(sha: Any, node: Any) -> None:
    match node:
        case torch.Tensor():
            data = node.detach().cpu().contiguous()
            sha.update(f"{data.dtype}{tuple(data.shape)}".encode())
            if data.numel():
                sha.update(data.reshape(-1).view(torch.uint8).numpy().data)
        case dict():
            for key, value in node.items():
                sha.update(f"{key!r}:".encode())
                _hash(sha, value)
        case list() | tuple():
            sha.update(f"[{len(node)}]".encode())
            for item in node:
                _hash(sha, item)
        case _:
            sha.update(repr(node).encode())


def place(tensor: torch.Tensor) -> int:
    """Return where a tensor's memory is; the same for a view of it."""
    return tensor.untyped_storage().data_ptr()


class Sender(Protocol):
    """Sends contiguous CPU tensors to members: a group, or its channels."""

    def send(self, tensor: torch.Tensor, to: int) -> None: ...


def send(group: Sender, tree: Tree, to: int) -> None:
    """Send a tree to one member."""
    send_flat(group, *flatten(tree), to)


def send_flat(group: Sender, skeleton: str, tensors: Sequence[torch.Tensor], to: int) -> None:
    """Send what `flatten` gave."""
    raw = skeleton.encode()
    group.send(torch.tensor([len(raw)], dtype=torch.int64), to)
    group.send(torch.frombuffer(bytearray(raw), dtype=torch.uint8), to)
    for tensor in tensors:
        if tensor.numel():
            group.send(_as_bytes(tensor.cpu().contiguous()), to)


def receive(group: Group, source: int, spare: Sequence[torch.Tensor] = ()) -> Tree:
    """Return the tree that `source` sends, its tensors on the CPU; they may be spare ones of the same dtype and shape.

    Nobody else uses a contiguous spare tensor from then on.
    """
    length = torch.zeros(1, dtype=torch.int64)
    group.receive(length, source)
    raw = torch.empty(int(length.item()), dtype=torch.uint8)
    group.receive(raw, source)
    skeleton = bytes(raw.tolist()).decode()
    kept: dict[tuple[torch.dtype, tuple[int, ...]], list[torch.Tensor]] = {}
    for tensor in spare:
        kept.setdefault((tensor.dtype, tuple(tensor.shape)), []).append(tensor)
    tensors = [
        found.pop() if (found := kept.get((dtype, shape))) else torch.empty(shape, dtype=dtype)
        for dtype, shape in shapes(skeleton)
    ]
    for tensor in tensors:
        if tensor.numel():
            group.receive(_as_bytes(tensor), source)
    return unflatten(skeleton, tensors)


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
