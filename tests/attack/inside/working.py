"""Does what an honest script does: walls that break it are no use."""

import ctypes
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
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


@probe("its own priority and processors")
def own_turns(_: Facts) -> str:
    os.nice(1)
    os.setpriority(os.PRIO_PROCESS, os.getpid(), os.getpriority(os.PRIO_PROCESS, 0))
    os.setpriority(os.PRIO_PGRP, 0, os.getpriority(os.PRIO_PROCESS, 0))
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    os.sched_setaffinity(0, one := {min(os.sched_getaffinity(0))})
    return "works" if os.sched_getaffinity(0) == one else "without effect"


@probe("its own limits")
def own_limits(_: Facts) -> str:
    for limits in (resource.getrlimit(resource.RLIMIT_NOFILE), resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE)):
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, limits)
    return "works"


@probe("threads that are told their processors")
def pinned_threads(_: Facts) -> str:
    """As libraries for threads do it, by the thread's number; they give up if that fails."""
    libc, answers = ctypes.CDLL(None), list[int]()
    mask = ctypes.c_ulong(1 << min(os.sched_getaffinity(0)))

    def pin() -> None:
        answers.append(libc.pthread_setaffinity_np(ctypes.c_ulong(threading.get_ident()), 8, ctypes.byref(mask)))

    thread = threading.Thread(target=pin)
    thread.start()
    thread.join()
    return "works" if answers == [0] else f"failed with {answers}"


@probe("modes and times of its own files")
def own_modes(_: Facts) -> str:
    for folder in (RESULT, LOG, Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/dev/shm")):
        (own := folder / f"own-{os.getpid()}").write_text("works")
        own.chmod(0o600)
        os.utime(own, (0, 0))
        own.unlink()
    return "works"


@probe("its own name, and its turn to be ended")
def own_process_files(_: Facts) -> str:
    Path("/proc/self/comm").write_text("own name")
    Path(f"/proc/self/task/{os.getpid()}/comm").write_text("works")
    Path("/proc/self/oom_score_adj").write_text("100")
    return Path("/proc/self/comm").read_text().strip()


@probe("devices and terminals")
def devices(_: Facts) -> str:
    Path("/dev/null").write_text("nothing")
    Path("/dev/urandom").open("rb").close()
    near, far = os.openpty()
    os.write(near, b"works\n")
    return os.read(far, 16).decode().strip()


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
