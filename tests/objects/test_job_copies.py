"""The copies of one job: what its list says is there, whatever is done to its files meanwhile."""

import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.hostile import PLANTS, exchanged, petabyte
from tests.objects.s3 import BUCKET, S3

from pliant.control.upkeep.copied import files_to_copy
from pliant.control.upkeep.results import note_submitted
from pliant.objects.due import AGAIN_S
from pliant.objects.job_copies import JobCopies, read_manifest
from pliant.objects.manifest import Manifest
from pliant.objects.store import ObjectStore, StoreAway

JOB = "job-1"
SECRET = b"the server's token"


def checkpoint(text: str) -> bytes:
    """Return a file that ends as a checkpoint does, whatever else it holds."""
    content = b"PLIANT\r\n" + text.encode()
    return content + zlib.crc32(content).to_bytes(4, "little")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of a job that has not begun."""
    root = tmp_path / "home" / "jobs" / JOB
    for folder in ("code", "result/model", "result/log", "result/checkpoint", "state"):
        (root / folder).mkdir(parents=True)
    (root / "code" / "train.py").write_text("…")
    note_submitted(root / "code", root / "submitted")
    (root / "submitted" / "archive").write_bytes(b"the code, packed")
    return root


def new_copies(store: ObjectStore, root: Path) -> JobCopies:
    return JobCopies(store, root.parent, JOB, files_to_copy)


@pytest.fixture
def copies(store: ObjectStore, root: Path) -> JobCopies:
    return new_copies(store, root)


def listed(store: ObjectStore) -> Manifest:
    """Return the list, after a check that the store has just what it names, as it says."""
    manifest = read_manifest(store, JOB)
    assert manifest is not None
    assert set(store.keys(f"jobs/{JOB}")) == manifest.keys
    for file in manifest.files.values():
        content = b"".join(store.read(f"jobs/{JOB}/{file.key}", file.num_bytes))
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.num_bytes, file.sha256)
    return manifest


def content(store: ObjectStore, name: str) -> bytes:
    file = listed(store).files[name]
    return b"".join(store.read(f"jobs/{JOB}/{file.key}", file.num_bytes))


def save(root: Path, step: int, text: str = "state") -> Path:
    path = root / "result" / "checkpoint" / f"step-{step:012d}.ckpt"
    path.write_bytes(checkpoint(text))
    return path


def test_results_the_newest_checkpoint_and_what_the_job_wrote_into_its_code_are_copied(
    copies: JobCopies, store: ObjectStore, root: Path
) -> None:
    save(root, 100)
    newest = save(root, 200)
    (root / "result" / "model" / "model.pt").write_bytes(b"weights")
    (root / "result" / "log" / "job-1.1.local").mkdir()
    (root / "result" / "log" / "job-1.1.local" / "stdout").write_bytes(b"epoch 1\n")
    (root / "result" / "log" / "job-1.1.local" / ".step").write_bytes(b"200")
    (root / "code" / "best.pt").write_bytes(b"best")
    (root / "state" / "own").write_bytes(b"not copied")

    assert copies.copy(1000.0, is_over=False)

    manifest = listed(store)
    assert (manifest.step, manifest.is_final, manifest.left_out) == (200, False, {})
    assert sorted(manifest.files) == [
        "code/best.pt",
        "result/checkpoint/step-000000000200.ckpt",
        "result/log/job-1.1.local/stdout",
        "result/model/model.pt",
        "submitted/archive",
        "submitted/files",
        "submitted/ignored",
    ]
    assert content(store, "result/checkpoint/step-000000000200.ckpt") == newest.read_bytes()
    assert not copies.copy(1001.0, is_over=False)


def test_a_newer_checkpoint_takes_the_place_of_an_older_one(copies: JobCopies, store: ObjectStore, root: Path) -> None:
    for step in (100, 200, 300):
        save(root, step)
        copies.copy(1000.0 + step, is_over=False)
        assert listed(store).step == step


def test_what_grows_is_copied_beside_the_copy_before_it(copies: JobCopies, store: ObjectStore, root: Path) -> None:
    log = root / "result" / "stdout"
    keys = []
    for number in range(3):
        with log.open("ab") as file:
            file.write(b"line\n")
        copies.copy(1000.0 + number * (AGAIN_S + 1), is_over=False)
        assert content(store, "result/stdout") == b"line\n" * (number + 1)
        keys.append(listed(store).files["result/stdout"].key)
    assert keys == ["result/stdout", "result/stdout~2", "result/stdout"]


def test_another_process_copies_nothing_again_that_is_there(store: ObjectStore, root: Path) -> None:
    save(root, 100)
    (root / "result" / "a").write_bytes(b"one")
    new_copies(store, root).copy(1000.0, is_over=False)
    before = listed(store)
    (root / "result" / "a").write_bytes(b"two")

    new_copies(store, root).copy(1000.0, is_over=False)

    after = listed(store)
    assert content(store, "result/a") == b"two"
    assert {name: file for name, file in after.files.items() if name != "result/a"} == {
        name: file for name, file in before.files.items() if name != "result/a"
    }


def test_what_an_interrupted_copy_left_is_removed(store: ObjectStore, root: Path) -> None:
    new_copies(store, root).copy(1000.0, is_over=False)
    store.write(f"jobs/{JOB}/result/half", [b"x"])

    new_copies(store, root).copy(1000.0, is_over=False)

    assert "result/half" not in store.keys(f"jobs/{JOB}")


def test_a_checkpoint_stays_in_the_store_though_the_disk_has_none_any_more(
    copies: JobCopies, store: ObjectStore, root: Path
) -> None:
    path = save(root, 200)
    (root / "result" / "a").write_bytes(b"one")
    copies.copy(1000.0, is_over=False)
    path.unlink()
    (root / "result" / "a").unlink()

    copies.copy(1001.0, is_over=False)

    assert listed(store).step == 200
    assert "result/a" not in listed(store).files


def test_a_folder_that_is_gone_changes_nothing(copies: JobCopies, store: ObjectStore, root: Path) -> None:
    save(root, 200)
    copies.copy(1000.0, is_over=False)
    before = listed(store)
    root.rename(root.parent / "away")
    with pytest.raises(FileNotFoundError):
        copies.copy(1001.0, is_over=True, is_final=True)
    (root.parent / "away").rename(root)
    (root / "result").rename(root / "moved")
    with pytest.raises(FileNotFoundError):
        copies.copy(1001.0, is_over=True, is_final=True)
    assert listed(store) == before


@pytest.mark.parametrize(
    "torn", [checkpoint("state")[:-1], checkpoint("state")[:-1] + b"x", b"", b"PLIANT\r\n", bytes(50)]
)
def test_a_torn_checkpoint_is_not_taken_for_the_newest(
    copies: JobCopies, store: ObjectStore, root: Path, torn: bytes
) -> None:
    save(root, 100)
    save(root, 200).write_bytes(torn)

    copies.copy(1000.0, is_over=False)

    manifest = listed(store)
    assert manifest.step == 100
    assert manifest.left_out == {"result/checkpoint/step-000000000200.ckpt": "it is no whole checkpoint"}
    assert not copies.copy(1001.0, is_over=False), "it is not read again as long as it is the same"

    save(root, 200)
    copies.copy(1002.0, is_over=False)
    assert (listed(store).step, listed(store).left_out) == (200, {})


def test_an_older_checkpoint_does_not_take_the_place_of_a_newer_one(
    copies: JobCopies, store: ObjectStore, root: Path
) -> None:
    path = save(root, 200)
    copies.copy(1000.0, is_over=False)
    path.unlink()
    save(root, 100)
    copies.copy(1001.0, is_over=False)
    assert listed(store).step == 200


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.timeout(20)
def test_nothing_is_followed_and_nothing_waits_whatever_lies_there(
    folder_store: ObjectStore, root: Path, tmp_path: Path, plant: str
) -> None:
    secret = tmp_path / "home" / "token"
    secret.write_bytes(SECRET)
    for place in ("result/model/model.pt", "result/checkpoint/step-000000000200.ckpt", "code/new.py"):
        PLANTS[plant](root / place, secret)
    save(root, 100)
    copies = new_copies(folder_store, root)

    copies.copy(1000.0, is_over=True)
    copies.copy(1011.0, is_over=True, is_final=True)

    manifest = listed(folder_store)
    assert (manifest.step, manifest.is_final) == (100, True)
    assert SECRET not in b"".join(content(folder_store, name) for name in manifest.files)


@pytest.mark.parametrize("folder", ["result", "result/checkpoint", "code"])
def test_no_folder_is_followed_either(folder_store: ObjectStore, root: Path, tmp_path: Path, folder: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "step-000000000200.ckpt").write_bytes(checkpoint(SECRET.decode()))
    (root / folder).rename(root / "before")
    (root / folder).symlink_to(elsewhere)
    copies = new_copies(folder_store, root)
    if folder == "result":
        with pytest.raises(OSError, match=r"."):
            copies.copy(1000.0, is_over=True)
        return
    copies.copy(1000.0, is_over=True)
    assert not [name for name in listed(folder_store).files if "200" in name]


def test_a_file_that_is_swapped_while_it_is_read_harms_nobody(
    folder_store: ObjectStore, root: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "home" / "token"
    secret.write_bytes(SECRET * 1000)
    mine, link = root / "result" / "a", root / "result" / "b"
    mine.write_bytes(b"mine" * 1000)
    link.symlink_to(secret)
    with exchanged(mine, link):
        for number in range(100):
            new_copies(folder_store, root).copy(1000.0 + number, is_over=True)
            for name in set(listed(folder_store).files) & {"result/a", "result/b"}:
                assert content(folder_store, name) == b"mine" * 1000


def test_a_file_of_petabytes_without_content_is_left_out(folder_store: ObjectStore, root: Path) -> None:
    petabyte(root / "result" / "huge")
    new_copies(folder_store, root).copy(1000.0, is_over=True)
    assert "write it without holes" in listed(folder_store).left_out["result/huge"]


@pytest.fixture
def away(s3: S3) -> Iterator[None]:
    yield
    s3.proxy.release()


@pytest.mark.usefixtures("away")
def test_while_the_store_is_away_its_list_stays_true_and_afterwards_all_follows(
    s3: S3, s3_store: ObjectStore, root: Path
) -> None:
    copies = new_copies(s3_store, root)
    save(root, 100)
    copies.copy(1000.0, is_over=False)
    s3.proxy.refuse()
    save(root, 200)
    with pytest.raises(StoreAway):
        copies.copy(1001.0, is_over=False)
    s3.proxy.release()
    assert listed(s3_store).step == 100

    copies.copy(1002.0, is_over=False)

    assert listed(s3_store).step == 200
    assert s3.keys(f"{s3_store.url.removeprefix(f's3://{BUCKET}/')}/jobs/{JOB}/result/checkpoint") != []


def test_who_is_not_to_write_any_more_changes_nothing(store: ObjectStore, root: Path) -> None:
    save(root, 100)
    copies = new_copies(store, root)
    copies.copy(1000.0, is_over=False)
    before = read_manifest(store, JOB)
    save(root, 200)

    def refuse() -> None:
        raise StoreAway("another server copies there")

    store.guard = refuse
    with pytest.raises(StoreAway, match="another server copies there"):
        copies.copy(1001.0, is_over=False)

    assert read_manifest(store, JOB) == before
    assert {"result/checkpoint/step-000000000100.ckpt"} < set(store.keys(f"jobs/{JOB}"))


def test_files_of_somebody_else_are_left_out(folder_store: ObjectStore, root: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(root / "result", 65534, 65534)
    (root / "result" / "ours").write_bytes(b"x")
    new_copies(folder_store, root).copy(1000.0, is_over=True)
    assert listed(folder_store).left_out["result/ours"] == "it belongs to somebody else than the folder"
