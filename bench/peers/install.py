"""Makes the virtual environment that the peers run in, outside of the tree, with pinned versions.

PyTorch's build for CPUs comes first and is named in every later command, so that no peer pulls another one. What cannot
be installed is told, and only its own peer is missing.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

TORCH = "torch==2.13.0+cpu"
PINS = {"torchrun": (TORCH, "numpy"), "torchft": ("torchft==0.2.0",), "ray": ("ray[train]==2.60.0",)}
PROBES = {
    "torchrun": "import torch.distributed.run",
    "torchft": "import torchft",
    "ray": "import ray.train.torch, ray.cluster_utils",
}
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
LIMIT_S = 900.0


def default_folder() -> Path:
    """Return where the environment is if nobody says otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "pliant" / "bench-peers"


def install(folder: Path, wanted: Collection[str] = tuple(PINS)) -> dict[str, str]:
    """Make the environment complete for these peers; return those that are missing, and why."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=LIMIT_S)
    missing = {}
    for peer in wanted:
        if works(python, peer):
            continue
        print(f"installing {' '.join(PINS[peer])} into {folder}", flush=True)
        if why := pip_install(python, [TORCH, *PINS[peer]]):
            missing[peer] = why
        elif not works(python, peer):
            missing[peer] = f"installed, but `{PROBES[peer]}` fails"
    return missing


def works(python: Path, peer: str) -> bool:
    """Tell whether a peer can be imported in its pinned version."""
    name, _, wanted = PINS[peer][0].partition("==")
    program = f"{PROBES[peer]}; from importlib.metadata import version; print(version({name.partition('[')[0]!r}))"
    try:
        done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and done.stdout.split()[-1:] == [wanted]


def pip_install(python: Path, wanted: Sequence[str]) -> str:
    """Install; return why it failed, empty if it did not. The index of CPU builds is asked only if it is needed."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    said = ""
    for more in ([], ["--extra-index-url", CPU_INDEX]):
        try:
            done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return f"pip did not end within {LIMIT_S:.0f} s"
        if done.returncode == 0:
            return ""
        said = next((line for line in reversed(done.stderr.splitlines()) if "ERROR" in line), done.stderr[-300:])
    return said.strip()
