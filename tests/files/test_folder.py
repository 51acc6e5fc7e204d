"""Folders published whole, made read-only and removed; room on the disk; checksums."""

import errno
import hashlib
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pliant.core.errors import NoSpace, Unavailable
from pliant.files import folder as folders
from pliant.files.digest import content_digest, digest_of_file, digest_of_names, read_content_digest
from pliant.files.space import check_room, translate_disk_errors

NOBODY = 65534
WRITES = """
import os, sys
folder, user = sys.argv[1], int(sys.argv[2])
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(user)
tried = {
    "append": lambda: open(f"{folder}/a/file", "a"),
    "add": lambda: open(f"{folder}/a/new", "w"),
    "remove": lambda: os.unlink(f"{folder}/a/file"),
    "rename": lambda: os.rename(f"{folder}/a", f"{folder}/b"),
}
for name, write in tried.items():
    try:
        write()
    except PermissionError:
        print(name)
print(open(f"{folder}/a/file").read())
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users reach; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folders.remove(folder / "data")


def test_who_is_not_root_cannot_write_in_a_folder_that_is_read_only(open_folder: Path) -> None:
    data = open_folder / "data"
    (data / "a").mkdir(parents=True)
    (data / "a" / "file").write_text("content")
    user = NOBODY if os.geteuid() == 0 else os.geteuid()
    for path in (data, data / "a", data / "a" / "file"):
        os.chown(path, user, -1)
    folders.make_read_only(data)
    command = [sys.executable, "-I", "-c", WRITES, str(data), str(user)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["append", "add", "remove", "rename", "content"]


def test_a_read_only_folder_is_removed_and_what_links_lead_to_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "data" / "a").mkdir(parents=True)
    (tmp_path / "data" / "a" / "file").touch()
    folders.make_read_only(tmp_path / "data")
    (tmp_path / "data").chmod(0o755)
    (tmp_path / "data" / "link").symlink_to(tmp_path / "kept")
    folders.remove(tmp_path / "data")
    folders.remove(tmp_path / "data")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept", "file"]


def test_a_folder_is_published_whole_and_over_nothing(tmp_path: Path) -> None:
    for name in ("draft", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    with pytest.raises(OSError, match="not empty"):
        folders.publish(tmp_path / "draft", tmp_path / "there")
    folders.publish(tmp_path / "draft", tmp_path / "new")
    assert (tmp_path / "new" / "file").read_text() == "draft"
    assert not (tmp_path / "draft").exists()


def test_a_full_disk_is_told_in_words(tmp_path: Path) -> None:
    with pytest.raises(NoSpace, match="10 MiB free"):
        check_room(tmp_path, 5 << 20, margin=6 << 20, free=lambda _: 10 << 20)
    check_room(tmp_path, 4 << 20, margin=6 << 20, free=lambda _: 10 << 20)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(NoSpace, match="is full"), translate_disk_errors(tmp_path):
            (tmp_path / "file").write_bytes(bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(NoSpace), translate_disk_errors(tmp_path), Path("/dev/full").open("wb") as full:
        full.write(b"x")
    with pytest.raises(Unavailable, match="No such file"), translate_disk_errors(tmp_path):
        (tmp_path / "no" / "file").write_bytes(b"")


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    folders.write_whole(tmp_path / "file", b"one")
    folders.write_whole(tmp_path / "file", b"two")
    assert (tmp_path / "file").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_links_that_lead_out_are_found(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "in" / "deep").mkdir(parents=True)
    (root / "file").touch()
    (root / "in" / "fine").symlink_to("../file")
    (root / "in" / "deep" / "out").symlink_to(tmp_path)
    (root / "in" / "gone").symlink_to("nowhere")
    found = [path.relative_to(root).as_posix() for path in folders.find_outside(root / "in", root.resolve())]
    assert found == ["in/gone", "in/deep/out"]


def test_checksums(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    digest = hashlib.sha256(b"content")
    assert digest_of_file(tmp_path / "file") == digest.hexdigest()
    lines = f"{digest.hexdigest()}  a\n{digest.hexdigest()}  b\n".encode()
    assert digest_of_names([("b", digest.hexdigest()), ("a", digest.hexdigest())]) == hashlib.sha256(lines).hexdigest()
    assert read_content_digest(content_digest(digest.digest())) == digest.digest()
    assert read_content_digest(f"md5=:abc:, {content_digest(digest.digest())}") == digest.digest()
    assert read_content_digest("md5=:abc:") is None


def test_a_folder_is_copied_with_modes_and_times(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a/b").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "a/b/run").write_bytes(os.urandom(200_000))
    (source / "a/b/run").chmod(0o755)
    (source / "none").touch()
    os.utime(source / "a/b/run", ns=(1, 123_456_789))

    folders.copy_folder(source, tmp_path / "copy")

    copy = tmp_path / "copy"
    assert sorted(path.relative_to(copy) for path in copy.rglob("*")) == sorted(
        path.relative_to(source) for path in source.rglob("*")
    )
    assert (copy / "a/b/run").read_bytes() == (source / "a/b/run").read_bytes()
    facts = (copy / "a/b/run").stat()
    assert (facts.st_mode & 0o777, facts.st_mtime_ns) == (0o755, 123_456_789)
    assert facts.st_ino != (source / "a/b/run").stat().st_ino


def test_a_folder_is_copied_where_the_file_system_does_not_copy_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "no")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (tmp_path / "source").mkdir()
    (tmp_path / "source/file").write_bytes(b"content" * 100_000)

    folders.copy_folder(tmp_path / "source", tmp_path / "copy")

    assert (tmp_path / "copy/file").read_bytes() == b"content" * 100_000


def test_a_full_disk_ends_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    (tmp_path / "source").mkdir()
    (tmp_path / "source/file").write_bytes(b"content")

    with pytest.raises(OSError, match="no"):
        folders.copy_folder(tmp_path / "source", tmp_path / "copy")
