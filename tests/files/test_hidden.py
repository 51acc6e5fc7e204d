"""What an archive shows to one program and hides from another is refused."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput
from pliant.files.archive import inspect, unpack
from pliant.files.gzipped import GzipStream


def tarred(name: str, data: bytes = b"print()") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def zipped(name: str, comment: bytes = b"") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, b"print()")
        archive.comment = comment
    return out.getvalue()


ONE, OTHER = tarred("train.py"), tarred("hidden.py")
HIDING: dict[str, tuple[Callable[[], bytes], str]] = {
    "a second gzip stream": (lambda: gzip.compress(ONE) + gzip.compress(OTHER), "follows the end of its gzip stream"),
    "an empty second one": (lambda: gzip.compress(ONE) + gzip.compress(b""), "follows the end of its gzip stream"),
    "text behind gzip": (lambda: gzip.compress(ONE) + b"more", "follows the end of its gzip stream"),
    "text after zeros": (lambda: gzip.compress(ONE) + bytes(70_000) + b"more", "follows the end of its gzip stream"),
    "a tar behind a tar": (lambda: ONE + OTHER, "follows the end of the tar"),
    "both in one gzip": (lambda: gzip.compress(ONE + OTHER), "follows the end of the tar"),
    "what is no header": (lambda: ONE[:1024] + b"x" * 512 + OTHER, "is none"),
    "half a header": (lambda: ONE[:1024] + b"x" * 100, "is none"),
    "a zip behind a zip": (lambda: zipped("train.py") + zipped("hidden.py"), "before its first member"),
    "text behind a zip": (lambda: zipped("train.py") + b"more", "follows its directory"),
    "text behind the comment": (lambda: zipped("train.py", b"said") + b"more", "follows its directory"),
}


@pytest.mark.parametrize(("content", "why"), HIDING.values(), ids=HIDING.keys())
def test_what_hides_something_is_refused_in_words(tmp_path: Path, content: Callable[[], bytes], why: str) -> None:
    path, target = tmp_path / "code", tmp_path / "target"
    path.write_bytes(content())
    target.mkdir()
    with pytest.raises(InvalidInput, match=why):
        inspect(path)
    with pytest.raises(InvalidInput, match=why):
        unpack(path, target)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        ONE,
        gzip.compress(ONE),
        gzip.compress(ONE) + bytes(100_000),
        gzip.compress(ONE + bytes(1 << 20)),
        zipped("train.py"),
        zipped("train.py", b"a comment"),
    ],
    ids=["tar", "tar.gz", "padded for a tape", "long padding inside", "zip", "zip with a comment"],
)
def test_what_hides_nothing_is_taken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "code").write_bytes(content)
    inspect(tmp_path / "code")


@given(st.binary(max_size=3000), st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 500)), max_size=20))
def test_a_stream_reads_like_the_librarys(data: bytes, reads: list[tuple[int, int]]) -> None:
    packed = gzip.compress(data)
    mine, theirs = GzipStream(io.BytesIO(packed)), gzip.GzipFile(fileobj=io.BytesIO(packed))
    for offset, size in reads:
        assert mine.seek(offset) == theirs.seek(offset)
        assert (mine.read(size), mine.tell()) == (theirs.read(size), theirs.tell())


@given(st.binary(max_size=300), st.integers(0, 400))
def test_one_that_breaks_off_is_never_whole(data: bytes, cut: int) -> None:
    packed = gzip.compress(data)
    stream = GzipStream(io.BytesIO(packed[: min(cut, len(packed) - 1)]))
    with pytest.raises(EOFError):
        stream.read(1 << 16)
