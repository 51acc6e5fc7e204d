"""Makes one virtual environment per peer, outside of the tree, with pinned versions; they could not share one.

What cannot be installed is told, and only its own peer is missing.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from bench.peers.install import TORCH, default_folder, pip_install

PINS = {
    "uvicorn": ("uvicorn[standard]==0.54.0", "httptools==0.9.0", "uvloop==0.23.0"),
    "litserve": ("litserve==0.2.19", TORCH, "numpy"),
    "bentoml": ("bentoml==1.4.40", TORCH, "numpy"),
    "mlserver": ("mlserver==1.7.1", "uvloop==0.21.0", TORCH, "numpy"),  # its workers do not start under uvloop 0.22
    "ray": ("ray[serve]==2.60.0", TORCH, "numpy"),
}
"""The first of each is the peer. In the order in which they are installed."""
PROBES = {
    "uvicorn": "import uvicorn, httptools, uvloop",
    "litserve": "import litserve, torch",
    "bentoml": "import bentoml, torch",
    "mlserver": "import mlserver, torch, uvloop; assert uvloop.__version__ < '0.22'",
    "ray": "import ray.serve, torch",
}
PROBE_S = 120.0


def environments() -> Path:
    """Return where the environments are if nobody says otherwise."""
    return default_folder().with_name("bench-serve")


def python_of(folder: Path, peer: str) -> Path:
    """Return the interpreter of a peer's environment."""
    return folder / peer / "bin" / "python"


def install(folder: Path, peers: Iterable[str]) -> dict[str, str]:
    """Make the environments complete; return the peers that are missing, and why."""
    missing = {}
    for peer in peers:
        python = python_of(folder, peer)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / peer)], check=True, timeout=PROBE_S)
        marker = folder / peer / ".works"  # to import all of them takes minutes on a busy machine
        if marker.exists() and marker.read_text() == repr(PINS[peer]):
            continue
        if not (why := _trouble(python, peer)):
            marker.write_text(repr(PINS[peer]))
            continue
        print(f"installing {' '.join(PINS[peer])} into {folder / peer}", flush=True)
        if why := pip_install(python, PINS[peer]) or _trouble(python, peer):
            missing[peer] = why
        else:
            marker.write_text(repr(PINS[peer]))
    return missing


def _trouble(python: Path, peer: str) -> str:
    """Return why a peer cannot be used in its pinned version; empty if it can."""
    name, _, wanted = PINS[peer][0].partition("==")
    program = f"{PROBES[peer]}; from importlib.metadata import version; print(version({name.partition('[')[0]!r}))"
    try:
        done = subprocess.run(
            [str(python), "-c", program], capture_output=True, text=True, timeout=PROBE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`{PROBES[peer]}` did not end within {PROBE_S:.0f} s"
    if done.returncode:
        return f"`{PROBES[peer]}` fails: {done.stderr.strip().splitlines()[-1:]}"
    found = done.stdout.split()[-1]
    return "" if found == wanted else f"version {found} is there instead of {wanted}"
