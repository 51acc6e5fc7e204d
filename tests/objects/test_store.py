"""Objects are written whole or not at all, come back as they were, and what goes wrong is said in words."""

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.objects.s3 import BUCKET, S3

from pliant.objects.pool_mark import OtherPool, PoolMark
from pliant.objects.store import PART_BYTES, InterruptedCopy, ObjectStore, StoreAway

MANY = PART_BYTES + 12_345
"""Bytes that are written in parts."""


def in_pieces(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), 1 << 20):
        yield content[start : start + (1 << 20)]


@pytest.mark.parametrize("num_bytes", [0, 10, MANY])
def test_what_is_written_comes_back(store: ObjectStore, num_bytes: int) -> None:
    content = secrets.token_bytes(num_bytes)

    store.write("jobs/job-1/result/a b,c=1(2)%C3%A9~2", in_pieces(content))

    assert b"".join(store.read("jobs/job-1/result/a b,c=1(2)%C3%A9~2", num_bytes)) == content


def test_objects_are_listed_below_a_folder_and_not_below_one_whose_name_begins_so(store: ObjectStore) -> None:
    for key in ("jobs/job-1/b/c", "jobs/job-1/a", "jobs/job-10/d", "pool.json"):
        store.write(key, [b"x"])

    assert store.keys("jobs/job-1") == ["a", "b/c"]
    assert store.keys("jobs/job-2") == []

    store.remove_folder("jobs/job-1")
    store.remove_folder("jobs/job-2")

    assert store.keys("jobs") == ["job-10/d"]


def test_what_is_not_there_is_removed_without_a_word_and_cannot_be_read(store: ObjectStore) -> None:
    store.remove(["nothing"])
    store.remove([])

    assert store.read_small("nothing", 10) is None
    with pytest.raises(StoreAway, match="cannot read nothing"):
        list(store.read("nothing", 10))


@pytest.mark.parametrize("num_bytes", [10, MANY])
def test_an_object_whose_content_ends_too_early_is_not_there(store: ObjectStore, num_bytes: int) -> None:
    def broken() -> Iterator[bytes]:
        yield from in_pieces(bytes(num_bytes))
        raise InterruptedCopy("no more")

    store.write("other", [b"x"])
    with pytest.raises(InterruptedCopy):
        store.write("here", broken())

    assert store.keys("") == ["other"] or store.read_small("here", 1) is None
    assert store.read_small("here.part", 1) is None


def test_parts_that_were_given_up_are_not_left(s3: S3, s3_store: ObjectStore, prefix: str) -> None:
    def broken() -> Iterator[bytes]:
        yield from in_pieces(bytes(MANY))
        assert s3.unfinished() == [f"{prefix}/here"]
        raise InterruptedCopy("no more")

    with pytest.raises(InterruptedCopy):
        s3_store.write("here", broken())
    assert s3.unfinished() == []


def test_parts_that_a_killed_process_left_are_removed_and_no_others(s3: S3, s3_store: ObjectStore, prefix: str) -> None:
    for key in (f"{prefix}/a", f"{prefix}/b", f"{prefix}-other/c"):
        s3.client.create_multipart_upload(Bucket=BUCKET, Key=key)

    s3_store.drop_unfinished()

    assert s3.unfinished() == [f"{prefix}-other/c"]
    ObjectStore(f"s3://{BUCKET}/{prefix}-other").drop_unfinished()
    assert s3.unfinished() == []


def test_a_file_that_was_not_written_to_its_end_is_removed_later(folder_store: ObjectStore, tmp_path: Path) -> None:
    folder_store.write("a/b", [b"x"])
    (tmp_path / "objects" / "a" / "c.part").write_bytes(b"half")

    folder_store.drop_unfinished()

    assert folder_store.keys("a") == ["b"]


def test_a_probe_leaves_nothing(store: ObjectStore) -> None:
    store.write("other", [b"x"])
    store.probe()
    assert store.read_small("other", 1) == b"x"


def test_a_bucket_that_is_not_there_is_said(s3: S3) -> None:
    with pytest.raises(StoreAway, match=r"s3://nobody-has-this/x cannot write \.probe-.*bucket"):
        ObjectStore("s3://nobody-has-this/x").probe()


def test_a_store_that_is_away_is_said_and_answers_again(s3: S3, s3_store: ObjectStore) -> None:
    s3_store.probe()
    s3.proxy.refuse()
    try:
        with pytest.raises(StoreAway, match="cannot write"):
            s3_store.write("a", [b"x"])
        with pytest.raises(StoreAway, match="cannot list"):
            s3_store.keys("jobs")
    finally:
        s3.proxy.release()
    s3_store.probe()


def test_a_folder_that_cannot_be_made_is_said() -> None:
    with pytest.raises(StoreAway, match="cannot write"):
        ObjectStore("file:///proc/results").probe()


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    with pytest.raises(StoreAway, match=r"pip install 'pliant\[s3\]'"):
        ObjectStore("s3://bucket/x")


def test_a_store_has_the_copies_of_one_pool(store: ObjectStore) -> None:
    assert not PoolMark(pool="one").put(store)
    assert PoolMark(pool="one").put(store)
    with pytest.raises(OtherPool, match="the results of another pool"):
        PoolMark(pool="other").put(store)

    for odd in (b"[]", b"{", b'{"copier": "one"}'):
        store.write("pool.json", [odd])
        with pytest.raises(OtherPool):
            PoolMark(pool="one").put(store)


def test_of_two_copiers_of_a_pool_the_one_that_came_last_copies(store: ObjectStore) -> None:
    old, new = PoolMark(pool="one"), PoolMark(pool="one")
    old.put(store)
    old.check(store)
    new.put(store)
    new.check(store)
    with pytest.raises(StoreAway, match="another server of this pool copies to"):
        old.check(store)
