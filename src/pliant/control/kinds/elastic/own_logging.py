"""What a script that logs to trackers by itself should know: every task runs it, and one of them is to log.

The script is read and never run.
"""

import ast
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Final

_WRITERS: Final = {"mlflow": "MLflow", "SummaryWriter": "TensorBoard files", "tensorboardX": "TensorBoard files"}
_WANDB: Final = "wandb"
_HISTOGRAM: Final = "add_histogram"
MAX_SOURCE_BYTES: Final = 2 << 20


def note_own_logging(script: Path, *, num_tasks: int, is_tracked: bool) -> tuple[str, ...]:
    """Return a note if each task of a script that parses would log.

    Args:
        script: lies in the code folder; nobody else can change it now.
        num_tasks: how many there may be.
        is_tracked: the training's reports are logged to the trackers that its variables name.
    """
    try:
        if script.stat().st_size > MAX_SOURCE_BYTES:
            return ()
        tree = ast.parse(script.read_bytes(), filename=script.name)
        names = frozenset(_names(tree))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ()
    notes = []
    if _WANDB in names and is_tracked:
        notes.append(
            f"{script.name} uses wandb itself; where the job's variables name W&B, Pliant logs loss and metrics there "
            f"and what the script logs is off: report more with run.log(name=value), or submit with --no-tracking"
        )
    elif _WANDB in names and num_tasks > 1 and "leads" not in names:
        notes.append(_every_task(script, "W&B", names))
    others = sorted({what for name, what in _WRITERS.items() if name in names})
    if others and num_tasks > 1 and "leads" not in names:
        notes.append(_every_task(script, " and ".join(others), names))
    return tuple(notes)


def _every_task(script: Path, what: str, names: Container[str]) -> str:
    histograms = " and run.log_histogram(name, values)" if _HISTOGRAM in names else ""
    return (
        f"{script.name} logs to {what} itself, and every task runs it: log `if run.leads:` only, or report with "
        f"run.log(name=value){histograms}"
    )


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield what a script imports, by the parts of its names, and the attributes that it uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield from alias.name.split(".")
            case ast.ImportFrom():
                yield from (node.module or "").split(".")
                yield from (alias.name for alias in node.names)
            case ast.Attribute():
                yield node.attr
