"""What a training may claim of its results, and the evidence.

exact        bitwise the same for any number of tasks, and any history of them
statistical  the same mean gradient, but not the same bits: a reason is given
fast         chosen so: a task computes its whole share in one piece

Bits depend on more than the order of sums: on the kernels, so on torch, the processor, the number of threads and flags.
That is the fingerprint; a training whose tasks differ in it, or that goes on elsewhere, is statistical from there on.
"""

import hashlib
import os
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from pliant.core.job import Claim

_NOT_DETERMINISTIC: Final = "does not have a deterministic implementation"
"""In a warning of torch's."""


@dataclass(slots=True)
class Standing:
    """What this training claims; travels with its state. It never becomes more than it was."""

    claim: Claim
    fingerprint: str
    reason: str = ""

    def downgrade(self, reason: str) -> None:
        """Claim less from now on; the first reason stays."""
        if self.claim == "exact":
            self.claim, self.reason = "statistical", reason

    @property
    def number(self) -> int:
        """A 62-bit number of the fingerprint, to compare it between tasks."""
        return int.from_bytes(hashlib.sha256(self.fingerprint.encode()).digest()[:8], "big") >> 2

    def state_dict(self) -> dict[str, Any]:
        return {"claim": self.claim, "fingerprint": self.fingerprint, "reason": self.reason}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from the claim of a state that was computed elsewhere, or before."""
        if self.claim == "fast":
            return
        if state_dict["claim"] != "exact":
            reason = state_dict["reason"] or f"it was trained in {state_dict['claim']} mode before"
            self.claim, self.reason = "statistical", reason
        elif state_dict["fingerprint"] != self.fingerprint:
            self.downgrade(f"it went on from [{state_dict['fingerprint']}] on [{self.fingerprint}]")


def fingerprint(device: torch.device) -> str:
    """Return what the bits of a result depend on, in words."""
    flags = [
        f"deterministic {'on' if torch.are_deterministic_algorithms_enabled() else 'off'}",
        f"mkldnn {'on' if torch._C._get_mkldnn_enabled() else 'off'}",
    ]
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        flags.append(f"tf32 {'on' if torch.backends.cuda.matmul.allow_tf32 else 'off'}")
        what = f"{properties.name} (sm_{properties.major}{properties.minor}), CUDA {torch.version.cuda}"
    else:
        what = f"{_processor()}, {torch.backends.cpu.get_cpu_capability()}"
    num_threads = torch.get_num_threads()
    return "; ".join([f"torch {torch.__version__}", what, f"{num_threads} thread{'s' * (num_threads != 1)}", *flags])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def be_deterministic() -> None:
    """Choose deterministic kernels in this process; an operation that has none warns (see `Watch`)."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False


class Watch:
    """Listens for torch's warning that an operation is not deterministic, until it is closed.

    Also where the script has switched warnings off, or made them errors, before the training.
    """

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._shown: Callable[..., None] = warnings.showwarning
        self._mine = self._show
        warnings.showwarning = self._mine
        warnings.filterwarnings("default", message=f".*{_NOT_DETERMINISTIC}")

    def _show(self, message: Warning | str, *rest: Any, **more: Any) -> None:
        if _NOT_DETERMINISTIC in (text := str(message)):
            self._standing.downgrade(text.split(", but you set")[0])
        else:
            self._shown(message, *rest, **more)

    def close(self) -> None:
        """Stop listening."""
        if warnings.showwarning is self._mine:
            warnings.showwarning = self._shown


def digest(tree: Any) -> str:
    """Return the SHA-256 of a state (dict, list, tuple, numbers, strings, tensors) in hex."""
    sha = hashlib.sha256()
    _feed(sha, tree)
    return sha.hexdigest()


def _feed(sha: Any, node: Any) -> None:
    match node:
        case torch.Tensor():
            data = node.detach().cpu().contiguous()
            sha.update(f"{data.dtype}{tuple(data.shape)}".encode())
            if data.numel():
                sha.update(data.reshape(-1).view(torch.uint8).numpy().data)
        case dict():
            for key, value in node.items():
                sha.update(f"{key!r}:".encode())
                _feed(sha, value)
        case list() | tuple():
            sha.update(f"[{len(node)}]".encode())
            for item in node:
                _feed(sha, item)
        case _:
            sha.update(repr(node).encode())
