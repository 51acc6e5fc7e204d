"""What makes a process compute the same bits again, and what tells when it does not.

Bits depend on more than the order of sums: on the kernels, so on torch, the processor, the number of threads and some
flags. All of that together is the fingerprint. Where tasks differ in it, a training no longer claims to be exact.
"""

import os
import platform
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from pliant.train.state.claim import TrainingClaim

_NOT_DETERMINISTIC: Final = "does not have a deterministic implementation"
"""Part of torch's warning about an operation."""


def limit_threads(num_threads: int) -> None:
    """Use this many threads inside an operator, so that the tasks of a host do not compete for its cores."""
    torch.set_num_threads(num_threads)


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


def use_deterministic_kernels() -> None:
    """Choose deterministic kernels in this process. An operation without one warns, see `NondeterminismListener`."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False


class NondeterminismListener:
    """Downgrades a claim when torch warns that an operation is not deterministic, until it is closed.

    It works even if the script has switched warnings off, or turned them into errors, before the training.
    """

    def __init__(self, claim: TrainingClaim) -> None:
        self._claim = claim
        self._shown: Callable[..., None] = warnings.showwarning
        self._mine = self._show
        warnings.showwarning = self._mine
        warnings.filterwarnings("default", message=f".*{_NOT_DETERMINISTIC}")

    def _show(self, message: Warning | str, *rest: Any, **more: Any) -> None:
        if _NOT_DETERMINISTIC in (text := str(message)):
            self._claim.downgrade(text.split(", but you set")[0])
        else:
            self._shown(message, *rest, **more)

    def close(self) -> None:
        """Stop listening."""
        if warnings.showwarning is self._mine:
            warnings.showwarning = self._shown
