"""How fast state goes from one task to another: in the clear, and encrypted as between hosts with `--encrypt-state`.

Two processes, as a member and a newcomer are, send each other one tensor over the loopback device; both ways take turns
in one run. The network itself is not in it: where that is slower than either way, encryption costs no time but
processor. What it takes to make the certificate that each attempt to form a generation has is measured beside it.
"""

import argparse
import multiprocessing
import statistics
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import torch

from bench._report import Claim, finish, head, spread, table, verdicts
from pliant.train.group.encryption import PinnedCertificate
from pliant.train.group.transfer import Channels

KEY: Final = b"the key of a job"
HOSTS: Final = ("127.0.0.1", "127.0.0.2")
WAYS: Final = {"in the clear": False, "encrypted": True}
LIMIT_S: Final = 120.0
MOST: Final = 5.0
_COLD: Final = "import time; t = time.perf_counter(); import pliant.files.certificates; print(time.perf_counter() - t)"


def _receive(num_bytes: int, pipe: Connection) -> None:
    """Be the newcomer: receive as often as the other end says."""
    torch.set_num_threads(1)
    arrived = torch.zeros(num_bytes, dtype=torch.uint8)
    while (encrypts := pipe.recv()) is not None:
        channels = Channels(rank=1, host=HOSTS[1], key=KEY, encrypts=encrypts)
        pipe.send(channels.address)
        channels.set_peers([pipe.recv(), channels.address])
        channels.receive(torch.zeros(1), 0)  # then the connection is there
        begun = time.process_time()
        channels.receive(arrived, 0)
        pipe.send((int(arrived[-1]), time.process_time() - begun))
        channels.close()


def send(num_bytes: int, pipe: Connection, number: int, *, encrypts: bool) -> tuple[float, float]:
    """Send once; return the seconds that it took, and those of a processor, of both ends."""
    tensor = torch.full((num_bytes,), number, dtype=torch.uint8)
    pipe.send(encrypts)
    channels = Channels(rank=0, host=HOSTS[0], key=KEY, encrypts=encrypts)
    peer = pipe.recv()
    pipe.send(channels.address)
    channels.set_peers([channels.address, peer])
    channels.send(torch.zeros(1), 1)
    begun, computed = time.perf_counter(), time.process_time()
    channels.send(tensor, 1)
    took_s, computed_s = time.perf_counter() - begun, time.process_time() - computed
    last, theirs_s = pipe.recv()
    assert last == number, "what arrived is what was sent"
    channels.close()
    return took_s, computed_s + theirs_s


def certificate_ms(num: int) -> tuple[float, float]:
    """Return what the import takes that makes certificates, and one certificate; medians, milliseconds."""
    imports = [
        float(subprocess.run([sys.executable, "-c", _COLD], capture_output=True, text=True, check=True).stdout)
        for _ in range(num)
    ]
    times = []
    for _ in range(num + 1):
        begun = time.perf_counter()
        PinnedCertificate()
        times.append(time.perf_counter() - begun)
    return statistics.median(imports) * 1000, statistics.median(times[1:]) * 1000


def measure(num_bytes: int, num_rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return the seconds of each transfer, and those of a processor, by the way."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    newcomer = context.Process(target=_receive, args=(num_bytes, theirs), daemon=True)
    newcomer.start()
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for number in range(num_rounds + 1):
        for way, encrypts in WAYS.items():
            took = send(num_bytes, mine, number, encrypts=encrypts)
            found[way] += [took] if number else []  # the first one warms both up
    mine.send(None)
    newcomer.join(LIMIT_S)
    return found


def report(found: dict[str, list[tuple[float, float]]], num_bytes: int, command: str) -> tuple[str, list[Claim]]:
    """Return the page, and what it claims."""
    medians = {way: statistics.median(used_s for _, used_s in times) for way, times in found.items()}
    ratio = medians["encrypted"] / medians["in the clear"]
    text = f"encrypted, a transfer takes at most {MOST:g} times the processor"
    claims = [Claim(text=text, found=f"{ratio:.1f}", holds=ratio <= MOST)]
    rows = [("way", "s", "MB/s", "processor of both ends, s")]
    for way, times in found.items():
        rates = spread([num_bytes / took_s / 1e6 for took_s, _ in times], 0)
        rows.append(
            (way, spread([took_s for took_s, _ in times], 2), rates, spread([used_s for _, used_s in times], 2))
        )
    import_ms, make_ms = certificate_ms(5)
    words = (
        f"{num_bytes / 1e6:.0f} MB from one process to another. Median [min max]. The import that makes certificates "
        f"takes {import_ms:.0f} ms, once in a machine's zygote; a certificate {make_ms:.1f} ms, once in a generation."
    )
    return f"{head('State from task to task', command)}\n{words}\n\n{table(*rows)}\n{verdicts(claims)}", claims


def main() -> int:
    """Measure, write the report, and fail if a claim is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="write the report here as well")
    parser.add_argument("--megabytes", type=int, default=512, help="of the tensor (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="transfers, each way (%(default)s)")
    options = parser.parse_args()
    num_bytes = options.megabytes * 1_000_000
    command = f"python -m bench.transfer --megabytes {options.megabytes} --rounds {options.rounds}"
    return finish(*report(measure(num_bytes, options.rounds), num_bytes, command), options.out)


if __name__ == "__main__":
    sys.exit(main())
