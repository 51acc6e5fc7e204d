"""The list of a job's copies: it comes back as it was, names nothing outside of the job, and gives keys but once."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.objects.manifest import (
    MANIFEST,
    MAX_KEY_BYTES,
    Manifest,
    StoredFile,
    choose_key,
    decode_manifest,
    encode_manifest,
    step_of,
)

DIGEST = "0" * 64
PART = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda name: name not in (".", "..")
)
NAMES = st.lists(PART, min_size=1, max_size=3).map("/".join)
FILES = st.dictionaries(
    NAMES, st.builds(StoredFile, key=NAMES, num_bytes=st.integers(0, 1 << 50), sha256=st.just(DIGEST)), max_size=4
)


def stored(key: str) -> StoredFile:
    return StoredFile(key=key, num_bytes=1, sha256=DIGEST)


@given(FILES, st.dictionaries(NAMES, st.text(max_size=9), max_size=3), st.booleans())
def test_a_manifest_comes_back(files: dict[str, StoredFile], left_out: dict[str, str], is_final: bool) -> None:
    manifest = Manifest(job_id="job-1", written_at=3.5, is_final=is_final, files=files, left_out=left_out)
    assert decode_manifest(encode_manifest(manifest), "job-1") == manifest


def changed(**more: Any) -> bytes:
    manifest = Manifest(job_id="job-1", written_at=1.0, files={"a/b": stored("a/b")})
    return json.dumps({**json.loads(encode_manifest(manifest)), **more}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        changed(format=2),
        changed(job="job-2"),
        changed(written_at="soon"),
        changed(files=[]),
        changed(files={"../a": {"key": "a", "num_bytes": 1, "sha256": DIGEST}}),
        changed(files={"a": {"key": "/etc/passwd", "num_bytes": 1, "sha256": DIGEST}}),
        changed(files={"a": {"key": "a\0", "num_bytes": 1, "sha256": DIGEST}}),
        changed(files={"a": {"key": "a", "num_bytes": -1, "sha256": DIGEST}}),
        changed(files={"a": {"key": "a", "num_bytes": 1.0, "sha256": DIGEST}}),
        changed(files={"a": {"key": "a", "num_bytes": 1, "sha256": "abc"}}),
        changed(files={"a": {"key": "a", "num_bytes": 1}}),
    ],
)
def test_what_is_no_manifest_of_the_job_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_manifest(content, "job-1")


def test_the_newest_checkpoint_counts() -> None:
    names = ["result/checkpoint/step-000000000000.ckpt", "result/checkpoint/step-000000000120.ckpt", "result/model.pt"]
    assert Manifest(job_id="job-1", written_at=0.0, files={name: stored(name) for name in names}).step == 120
    assert Manifest(job_id="job-1", written_at=0.0, files={names[0]: stored(names[0])}).step == 0
    assert Manifest(job_id="job-1", written_at=0.0).step is None
    assert step_of("code/checkpoint/step-000000000120.ckpt") is None


@given(st.lists(NAMES, max_size=8))
def test_no_two_contents_have_one_key(names: list[str]) -> None:
    taken: set[str] = {MANIFEST}
    for name in (*names, *names):
        key = choose_key(f"result/{name}", taken)
        assert key is not None
        assert key not in taken
        assert key.isascii()
        taken.add(key)


def test_a_key_is_the_name_if_that_can_be_and_no_longer_than_a_store_takes() -> None:
    assert choose_key("result/log/job-1.1.local/stdout", ()) == "result/log/job-1.1.local/stdout"
    assert choose_key("a", {"a", "a~2"}) == "a~3"
    assert choose_key("a*?[é\udcff~", ()) == "a%2A%3F%5B%C3%A9%FF~"
    assert choose_key("a" * (MAX_KEY_BYTES + 1), ()) is None
