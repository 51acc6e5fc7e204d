"""All jobs are copied in turn: those that run now and then, those that ended until nothing new comes."""

import itertools
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.objects.s3 import S3
from tests.objects.test_job_copies import JOB, content, listed, root, save  # noqa: F401 (a fixture)

from pliant.control.upkeep.copied import files_to_copy
from pliant.objects.copier import QUIET_S, Copier, CopyState
from pliant.objects.store import ObjectStore
from pliant.sim.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def new_copier(store: ObjectStore, root: Path, clock: VirtualClock) -> Copier:  # noqa: F811
    return Copier(store, root.parent, files_to_copy, clock.now)


def test_a_job_that_has_ended_is_looked_at_until_nothing_new_comes(
    folder_store: ObjectStore,
    root: Path,  # noqa: F811
    clock: VirtualClock,
) -> None:
    copier = new_copier(folder_store, root, clock)
    copier.active = frozenset({JOB})
    copier.turn()
    copier.active = frozenset()
    (root / "result" / "a").write_bytes(b"1")
    copier.turn()
    clock.advance(QUIET_S - 1)
    (root / "result" / "a").write_bytes(b"it came late")
    copier.turn()
    clock.advance(QUIET_S - 1)
    copier.turn()
    assert (listed(folder_store).is_final, copier.state) == (False, CopyState(num_waiting=1))

    clock.advance(1)
    copier.turn()

    assert (listed(folder_store).is_final, copier.state) == (True, CopyState())
    assert content(folder_store, "result/a") == b"it came late"
    assert (root / "copied").read_text() == folder_store.url


def test_nobody_looks_again_at_what_is_copied_to_its_end_not_even_another_process(
    folder_store: ObjectStore,
    root: Path,  # noqa: F811
    clock: VirtualClock,
) -> None:
    copier = new_copier(folder_store, root, clock)
    for _ in range(2):
        copier.turn()
        clock.advance(QUIET_S)
    (root / "result" / "a").write_bytes(b"new")
    copier.turn()
    new_copier(folder_store, root, clock).turn()
    assert "result/a" not in listed(folder_store).files


def test_another_store_gets_it_all_again(
    folder_store: ObjectStore,
    root: Path,  # noqa: F811
    clock: VirtualClock,
    tmp_path: Path,
) -> None:
    (root / "copied").write_text(folder_store.url)
    other = ObjectStore(f"file://{tmp_path}/other")
    new_copier(other, root, clock).turn()
    assert listed(other).files


def test_a_job_that_was_deleted_is_gone_from_the_store(
    folder_store: ObjectStore,
    root: Path,  # noqa: F811
    clock: VirtualClock,
) -> None:
    copier = new_copier(folder_store, root, clock)
    copier.turn()
    root.rename(root.parent.parent / "removed")
    copier.turn()
    assert listed(folder_store).files, "that its folder is gone does not mean that it was deleted"

    copier.forget(JOB)
    copier.turn()

    assert folder_store.keys("jobs") == []


class NotingStore(ObjectStore):
    """A store that notes what was written, in the order in which that was done."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.written: list[str] = []

    def write(self, key: str, pieces: Iterable[bytes], num_bytes: int = 0) -> None:
        super().write(key, pieces, num_bytes)
        self.written.append(key)


def test_a_new_checkpoint_does_not_wait_until_something_long_of_another_job_is_sent(
    root: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    store, seconds = NotingStore(f"file://{tmp_path}/objects"), itertools.count(1000.0, 0.5)
    shutil.copytree(root, root.parent / "job-2")
    (root / "result" / "long").write_bytes(bytes(20 << 20))
    save(root.parent / "job-2", 100)
    copier = Copier(store, root.parent, files_to_copy, lambda: next(seconds))
    copier.active = frozenset({JOB, "job-2"})

    copier.turn()

    first = store.written.index("jobs/job-2/result/checkpoint/step-000000000100.ckpt")
    assert first < store.written.index("jobs/job-2/manifest.json") < store.written.index("jobs/job-1/result/long")
    assert listed(store).step is None
    assert "result/long" in listed(store).files


def test_one_job_that_the_store_does_not_take_holds_up_no_other(
    folder_store: ObjectStore,
    root: Path,  # noqa: F811
    clock: VirtualClock,
    tmp_path: Path,
) -> None:
    shutil.copytree(root, root.parent / "job-0")
    (tmp_path / "objects" / "jobs").mkdir(parents=True)
    (tmp_path / "objects" / "jobs" / "job-0").write_bytes(b"in the way")
    copier = new_copier(folder_store, root, clock)

    copier.turn()

    assert copier.state.why_away == ""
    assert listed(folder_store).files
    (tmp_path / "objects" / "jobs" / "job-0").unlink()
    clock.advance(61.0)
    copier.turn()
    assert folder_store.keys("jobs/job-0")


def test_while_the_store_is_away_it_is_left_alone_for_longer_each_time(
    s3: S3,
    s3_store: ObjectStore,
    root: Path,  # noqa: F811
    clock: VirtualClock,
) -> None:
    copier = new_copier(s3_store, root, clock)
    copier.active = frozenset({JOB})
    save(root, 100)
    copier.turn()
    s3.proxy.refuse()
    save(root, 200)
    try:
        copier.turn()
        assert (copier.state.num_waiting, s3_store.url in copier.state.why_away) == (1, True)
        num_wires = len(s3.proxy.wires)
        clock.advance(0.9)
        copier.turn()
        assert len(s3.proxy.wires) == num_wires
    finally:
        s3.proxy.release()
    clock.advance(0.2)
    copier.turn()
    assert copier.state == CopyState()
    assert listed(s3_store).step == 200
