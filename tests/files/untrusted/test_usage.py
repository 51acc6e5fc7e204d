"""What somebody's files hold on the disk is added up, whatever they have made of their folders."""

import json
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.privileges import needs_mounts

from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.usage import DiskUsage, UsageLimits, UsageMeter
from pliant.isolation.mounts import own_namespace
from pliant.isolation.system_calls import mount

BLOCK = 1 << 16
NOBODY = 65534


def measured(*folders: Path, limits: UsageLimits | None = None, pids: tuple[int, ...] = ()) -> DiskUsage:
    meter = UsageMeter(limits or UsageLimits())
    for folder in folders:
        meter.add_folder(UntrustedPath(folder.parent, folder.name))
    meter.add_open_files(pids)
    return meter.usage


def write(path: Path, num_blocks: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(num_blocks * BLOCK))
    return path


def in_a_child(look: Callable[[], DiskUsage]) -> DiskUsage:
    """Return what a child of this process finds; it may change who it is and what it sees."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.write(writing, json.dumps(asdict(look())).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as told:
        text = told.read()
    os.waitpid(pid, 0)
    return DiskUsage(**json.loads(text))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


def grown(job: Path, act: Callable[[], object]) -> int:
    """Return by how many blocks of 64 KiB, about, what a folder holds grows."""
    before = measured(job).num_bytes
    act()
    return round((measured(job).num_bytes - before) / BLOCK)


def test_all_files_below_count_by_the_blocks_that_they_hold(job: Path) -> None:
    assert grown(job, lambda: write(job / "a" / "b" / "c", 5)) == 5
    assert grown(job, lambda: write(job / "d", 2)) == 2


def test_a_hole_holds_nothing_and_neither_does_a_link_to_much(job: Path, tmp_path: Path) -> None:
    much = write(tmp_path / "elsewhere" / "much", 50)

    assert grown(job, lambda: os.truncate(write(job / "hollow"), 1 << 40)) == 1
    assert grown(job, lambda: (job / "file").symlink_to(much)) == 0
    assert grown(job, lambda: (job / "folder").symlink_to(much.parent)) == 0


def test_a_file_of_many_names_counts_once_also_in_two_folders(job: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(job / "one", 10)
    alone = measured(job, other).num_bytes
    for number in range(5):
        os.link(job / "one", job / f"name-{number}")
        os.link(job / "one", other / f"name-{number}")

    assert measured(job, other).num_bytes - alone < BLOCK
    few = UsageLimits(max_names=0)  # more files of many names than are remembered: each name counts as its part
    assert 10 * BLOCK <= measured(job, other, limits=few).num_bytes <= alone + BLOCK


def test_pipes_and_devices_are_not_opened(job: Path) -> None:
    os.mkfifo(job / "pipe")

    assert measured(job).num_entries == 1


def test_what_lies_on_another_disk_does_not_count(job: Path) -> None:
    needs_mounts()
    (job / "disk").mkdir()
    write(job / "file")
    nothing = measured(job)

    def look() -> DiskUsage:
        own_namespace(as_user=os.geteuid() != 0)
        mount("tmpfs", str(job / "disk"), "tmpfs", 0)
        write(job / "disk" / "much", 50)
        return measured(job)

    found = in_a_child(look)
    assert found.num_entries == 2
    assert found.num_bytes < nothing.num_bytes + BLOCK


def test_too_many_files_and_too_deep_folders_end_the_look(job: Path) -> None:
    for number in range(50):
        (job / f"file-{number}").touch()
    assert measured(job, limits=UsageLimits(max_entries=49)).num_entries == 50
    (job / "/".join("abcdefgh")).mkdir(parents=True)

    assert not measured(job, limits=UsageLimits(max_depth=9)).is_too_deep
    assert measured(job, limits=UsageLimits(max_depth=8)).is_too_deep


def test_the_deepest_folders_that_are_looked_at_take_no_more_descriptors_than_there_are(job: Path) -> None:
    here = os.open(job, os.O_RDONLY)
    for _ in range(3000):  # deeper than any path can name
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    before = len(os.listdir("/proc/self/fd"))
    try:
        assert measured(job).is_too_deep
    finally:
        subprocess.run(["rm", "-rf", str(job)], check=True)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_look_that_takes_too_long_says_so_and_what_it_saw(job: Path) -> None:
    write(job / "file", 3)
    times = iter([0.0, 1.0, 100.0])
    meter = UsageMeter(UsageLimits(max_s=40.0), monotonic=lambda: next(times))
    for number in range(1500):
        (job / f"file-{number}").touch()
    meter.add_folder(UntrustedPath(job.parent, job.name))

    assert not meter.usage.is_whole
    assert meter.usage.num_entries < 1500
    assert measured(job).is_whole


def test_a_folder_of_many_names_is_not_held_in_memory(job: Path) -> None:
    for number in range(5_000):
        os.mkdir(job / f"a-rather-long-name-of-a-folder-{number}")
    look = (
        "import sys, tracemalloc; from pathlib import Path\n"
        "from pliant.files.untrusted.path import UntrustedPath\n"
        "from pliant.files.untrusted.usage import UsageMeter\n"
        "job = Path(sys.argv[1]); tracemalloc.start(); meter = UsageMeter()\n"
        "meter.add_folder(UntrustedPath(job.parent, job.name))\n"
        "print(meter.usage.num_entries, tracemalloc.get_traced_memory()[1])\n"
    )
    said = subprocess.run([sys.executable, "-c", look, str(job)], capture_output=True, text=True, check=True).stdout

    num_entries, most = map(int, said.split())
    assert num_entries == 5_000
    assert most < 150_000


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o100])
def test_a_folder_that_its_owner_closed_counts(mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)

        def look() -> DiskUsage:
            if os.geteuid() == 0:  # who lists every folder
                os.setresuid(NOBODY, NOBODY, NOBODY)
            write(Path(folder) / "job" / "closed" / "file", 10)
            (Path(folder) / "job" / "closed").chmod(mode)
            return measured(Path(folder) / "job")

        assert in_a_child(look).num_bytes >= 10 * BLOCK


def test_files_that_were_removed_count_while_a_process_has_them_open(job: Path, tmp_path: Path) -> None:
    nothing = measured(job).num_bytes
    with ExitStack() as stack:
        file = stack.enter_context(write(job / "file", 10).open("rb"))
        stack.enter_context((job / "file").open("rb"))
        os.unlink(job / "file")
        assert measured(job, pids=(os.getpid(), os.getpid())).num_bytes - nothing == pytest.approx(10 * BLOCK, BLOCK)
        assert measured(job).num_bytes - nothing < BLOCK
        # what has a name is found by that, and what is on no disk of the job's is none of its files
        stack.enter_context(write(tmp_path / "elsewhere", 20).open("rb"))
        os.truncate(os.memfd_create("mine"), 1 << 20)
        assert measured(job, pids=(os.getpid(),)).num_bytes - nothing < 15 * BLOCK
        file.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look at what others have mapped")
def test_files_that_were_removed_count_while_a_process_has_them_mapped(job: Path) -> None:
    with write(job / "file", 10).open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
    os.unlink(job / "file")
    try:
        assert measured(job, pids=(os.getpid(),)).num_bytes >= 10 * BLOCK
    finally:
        mapped.close()
    assert measured(job, pids=(os.getpid(),)).num_bytes < 10 * BLOCK
