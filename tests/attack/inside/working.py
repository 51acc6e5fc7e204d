"""Does what an honest script does: walls that break it are no use."""

import os
import shutil
import socket
import subprocess
import tempfile
from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import torch
from probe import Facts, play, probe
from torch.utils.data import DataLoader, TensorDataset

RESULT, LOG = Path(os.environ["RESULT_DIR"]), Path(os.environ["LOG_DIR"])


@probe("a file of its result")
def own_file(_: Facts) -> str:
    (RESULT / "own.txt").write_text("works")
    return (RESULT / "own.txt").read_text()


@probe("a file moved from its result to its log")
def moved(_: Facts) -> str:
    (RESULT / "moved.txt").write_text("works")
    shutil.move(RESULT / "moved.txt", LOG / "moved.txt")
    return (LOG / "moved.txt").read_text()


@probe("a temporary file")
def temporary(_: Facts) -> str:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"works")
        file.flush()
        return Path(file.name).read_text()


@probe("a program")
def program(_: Facts) -> str:
    return subprocess.run(["sh", "-c", "echo works"], capture_output=True, text=True, check=True).stdout.strip()


@probe("a connection with itself")
def connection(_: Facts) -> str:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as near:
        with server.accept()[0] as far:
            far.sendall(b"works")
        return near.recv(16).decode()


@probe("a name looked up")
def name(_: Facts) -> str:
    return "works" if socket.getaddrinfo("localhost", 80) else "no address"


def load(strategy: str) -> str:
    torch.multiprocessing.set_sharing_strategy(strategy)  # type: ignore[no-untyped-call]
    loader = DataLoader(TensorDataset(torch.arange(64)), batch_size=8, num_workers=2)
    return "works" if sum(int(rows.sum()) for (rows,) in loader) == sum(range(64)) else "lost rows"


probe("a DataLoader with workers, by files")(lambda _: load("file_system"))
probe("a DataLoader with workers, by descriptors")(lambda _: load("file_descriptor"))


def memory_of(shared: SharedMemory) -> memoryview:
    assert shared.buf is not None
    return shared.buf


def write(name: str) -> None:
    shared = SharedMemory(name)
    memory_of(shared)[:5] = b"works"
    shared.close()


@probe("memory shared with a child")
def shared_memory(_: Facts) -> str:
    shared = SharedMemory(create=True, size=16)
    try:
        child = get_context("fork").Process(target=write, args=(shared.name,))
        child.start()
        child.join(20)
        return bytes(memory_of(shared)[:5]).decode()
    finally:
        shared.close()
        shared.unlink()


play()
