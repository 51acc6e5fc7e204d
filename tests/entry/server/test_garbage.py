"""Memory that a server has used once does not stay with it."""

import subprocess
import sys

PROGRAM = """
import ctypes
from pathlib import Path
from pliant.entry.server.garbage import give_back

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
pieces = [libc.malloc(4000) for _ in range(10_000)]
for piece in pieces:
    ctypes.memset(piece, 1, 4000)
full = resident()
for number, piece in enumerate(pieces):
    if number % 100:
        libc.free(piece)
before = resident()
give_back()
print(full - before, before - resident())
"""


def test_memory_between_pieces_that_are_in_use_goes_back_to_the_machine() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    kept, given_back = (int(number) for number in said.split())

    assert kept < 4_000_000, "freed, and the C library holds it"
    assert given_back > 30_000_000, "of 40 MB that are free"
