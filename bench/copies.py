"""How long files take to a machine that does not see the state folder, and back, over TLS on this machine.

Server and machine are two processes. The limit is what has to be done without any network: each end reads all of a file
for its SHA-256, and one of them writes it. A first fetch has all of that; a second one, of what has not changed, a
question. Files of a job go one after the other, so many small ones cost a little for each.

Claims: a large file to the machine and back takes at most three times the limit, and one that has not changed a
hundredth of its first fetch.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.cluster.mirror.conftest import Keeper, Machine

from bench._report import Claim, finish, head, spread, table, verdicts
from pliant.files.digest import digest_of_file
from pliant.files.folder import copy_file

LARGE_MIB, NUM_SMALL, SMALL_BYTES = 512, 5000, 4096
LIMIT, AGAIN = 3.0, 0.01
_KINDS = ("one large file", "many small files")


def limit_s(folder: Path, to: Path) -> float:
    """Return what it takes to read all files of a folder twice for their digests, and to copy them."""
    began = time.perf_counter()
    to.mkdir()
    for path in folder.iterdir():
        digest_of_file(path)
        copy_file(path, to / path.name)
        digest_of_file(to / path.name)
    return time.perf_counter() - began


def be_machine(root: Path, port: int) -> None:
    """Fetch and send what lies in the folders of a job; print how long each took."""
    keeper = Keeper.__new__(Keeper)
    keeper.root, keeper.home, keeper.port = root, root / "server" / "home", port
    machine = Machine(keeper=keeper, name="b")
    took: dict[str, float] = {}

    def timed(name: str, began: float) -> None:
        took[name] = time.perf_counter() - began

    for number, kind in enumerate(_KINDS):
        source = keeper.home / "jobs" / "job-1" / "code" / str(number)
        connection = machine.connect(source)
        tree = machine.tree(source)
        for name in ("there", "again"):
            began = time.perf_counter()
            machine.bringer().bring(connection, tree)
            timed(f"{kind}, {name}", began)
        results = machine.sent("result")
        here = machine.home / "jobs" / "job-1" / "result" / str(number)
        os.rename(machine.home / "jobs" / "job-1" / "code" / str(number), here)
        began = time.perf_counter()
        results.send_files(connection, log_root="log", is_last=True)
        timed(f"{kind}, back", began)
        connection.close()
    print(json.dumps(took))


def measure() -> dict[str, float]:
    """Return what each way took, seconds, and its limit."""
    with TemporaryDirectory(prefix="pliant-bench-") as folder:
        keeper = Keeper(root=Path(folder))
        job = keeper.job()
        large, small = job / "code" / "0", job / "code" / "1"
        for made in (large, small):
            made.mkdir()
        piece = os.urandom(1 << 20)
        with (large / "model.pt").open("wb") as file:
            for number in range(LARGE_MIB):
                file.write(number.to_bytes(8, "big") + piece[8:])
        for number in range(NUM_SMALL):
            (small / f"{number}.bin").write_bytes(number.to_bytes(8, "big") + piece[8:SMALL_BYTES])
        keeper.machine("b")
        limits = {
            f"{kind}, limit": limit_s(source, Path(folder) / f"copy-{number}")
            for number, (kind, source) in enumerate(zip(_KINDS, (large, small), strict=True))
        }
        command = [sys.executable, "-m", "bench.copies", "--machine", folder, "--port", str(keeper.port)]
        found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        keeper.stop()
        return found | limits


def report(turns: list[dict[str, float]], command: str) -> tuple[str, list[Claim]]:
    """Return the page, and what it claims."""
    rows = [("what", "limit, s", "there, s", "× limit", "back, s", "× limit", "there again, unchanged, s")]
    claims = []
    for kind in _KINDS:
        parts = {name: [turn[f"{kind}, {name}"] for turn in turns] for name in ("limit", "there", "back", "again")}
        middle = {name: statistics.median(values) for name, values in parts.items()}
        there, back = middle["there"] / middle["limit"], middle["back"] / middle["limit"]
        again = middle["again"] / middle["there"]
        said = {name: spread(values, 2) for name, values in parts.items()}
        rows.append((kind, said["limit"], said["there"], f"{there:.2f}", said["back"], f"{back:.2f}", said["again"]))
        if kind == _KINDS[0]:
            for way, ratio in (("there", there), ("back", back)):
                text = f"{kind}, {way}: at most {LIMIT:g} times the limit"
                claims.append(Claim(text=text, found=f"{ratio:.2f}", holds=ratio <= LIMIT))
            text = f"{kind} that has not changed: at most {AGAIN:g} of its first fetch"
            claims.append(Claim(text=text, found=f"{again:.4f}", holds=again <= AGAIN))
    words = (
        f"One file of {LARGE_MIB} MiB, {NUM_SMALL:,} of {SMALL_BYTES:,} bytes; each turn has a new server and a new "
        f"machine. Median [min max]."
    )
    title = head("Files to machines without the state folder, and back", command)
    return f"{title}\n{words}\n\n{table(*rows)}\n{verdicts(claims)}", claims


def main() -> int:
    """Measure, write the report, and fail if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--machine", type=Path, help="be the machine of a server that was started in this folder")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if options.machine is not None:
        be_machine(options.machine, options.port)
        return 0
    text, claims = report([measure() for _ in range(options.turns)], f"python -m bench.copies --turns {options.turns}")
    return finish(text, claims, options.out)


if __name__ == "__main__":
    sys.exit(main())
