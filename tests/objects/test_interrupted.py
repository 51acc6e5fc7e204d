"""Whenever a copier dies, what the list names is there as it says, and the next one leaves nothing else."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.objects.test_job_copies import JOB, content, listed, new_copies, root, save  # noqa: F401 (a fixture)

from pliant.objects.job_copies import read_manifest
from pliant.objects.store import ObjectStore

MOST = 30
"""More than any of these copies asks of the store."""


class Killed(BaseException):
    """What ends a copier on the spot."""


class DyingStore(ObjectStore):
    """A store whose user dies before it changes something for the nth time, or right after."""

    left = MOST
    is_after = False

    def write(self, key: str, pieces: Iterable[bytes], num_bytes: int = 0) -> None:
        self._die_before()
        super().write(key, pieces, num_bytes)
        self._die_after()

    def remove(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._die_before()
            super().remove([key])
            self._die_after()

    def _die_before(self) -> None:
        self.left -= 1
        if self.left == 0 and not self.is_after:
            raise Killed

    def _die_after(self) -> None:
        if self.left == 0 and self.is_after:
            raise Killed


def change(root: Path) -> None:  # noqa: F811
    """Let the job go on: everything that can change does."""
    save(root, 300, "later")
    (root / "result" / "checkpoint" / "step-000000000100.ckpt").unlink()
    (root / "result" / "log.txt").write_text("two\nthree\n")
    (root / "result" / "old.txt").unlink()
    (root / "result" / "new.txt").write_text("new")


@pytest.mark.parametrize("is_after", [False, True])
def test_a_copier_may_die_before_or_after_anything_that_it_does(
    folder_store: ObjectStore,
    root: Path,  # noqa: F811
    is_after: bool,
) -> None:
    save(root, 100)
    save(root, 200)
    (root / "result" / "log.txt").write_text("one\n")
    (root / "result" / "old.txt").write_text("old")
    first = new_copies(folder_store, root)
    first.copy(1000.0, is_over=False)
    change(root)
    num_deaths = 0
    for number in range(1, MOST):
        dying = DyingStore(folder_store.url)
        dying.left, dying.is_after = number, is_after
        try:
            new_copies(dying, root).copy(2000.0 + number, is_over=True)
        except Killed:
            num_deaths += 1
            check_named(folder_store)
            continue
        break
    assert num_deaths >= 3

    assert listed(folder_store).step == 300
    assert content(folder_store, "result/log.txt") == b"two\nthree\n"
    assert "result/old.txt" not in listed(folder_store).files


def check_named(store: ObjectStore) -> None:
    """Check that all is there that the list names; there may be more."""
    manifest = read_manifest(store, JOB)
    assert manifest is not None
    assert manifest.step in (200, 300)
    for file in manifest.files.values():
        found = b"".join(store.read(f"jobs/{JOB}/{file.key}", file.num_bytes))
        assert hashlib.sha256(found).hexdigest() == file.sha256
