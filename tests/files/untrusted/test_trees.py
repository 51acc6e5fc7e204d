"""Trees of strangers are listed, measured, packed and removed, however deep, large, closed or changing they are."""

import io
import os
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from tests.hostile import PLANTS, deep_tree, exchanged, petabyte

from pliant.core.errors import InvalidInput
from pliant.files.archive import unpack
from pliant.files.untrusted import packing
from pliant.files.untrusted.names import escape, shown
from pliant.files.untrusted.opening import open_folder
from pliant.files.untrusted.packing import LEFT_OUT, PackedFolder, pack
from pliant.files.untrusted.path import UntrustedPath
from pliant.files.untrusted.removal import TRASH, empty_trash, remove
from pliant.files.untrusted.walking import FoundEntry, WalkLimits, files_below, list_folder, measure, walk

SECRET = b"the server's token"
HIDDEN_NAMES = [b"line\nbreak", "right\u202eleft".encode(), b"not \xff UTF-8", b"back\\slash", b"\x1b[2J"]
pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "token").write_bytes(SECRET)
    (tmp_path / "job" / "result" / "model").mkdir(parents=True)
    (tmp_path / "job" / "result" / "model" / "model.pt").write_bytes(b"weights")
    return tmp_path / "job"


@pytest.fixture
def result(job: Path) -> UntrustedPath:
    return UntrustedPath(job, "result")


def unpacked(chunks: "list[bytes]") -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks)), mode="r:gz") as tar:
        return {member.name: content.read() for member in tar if (content := tar.extractfile(member)) is not None}


def packed(result: UntrustedPath) -> dict[str, bytes]:
    return unpacked(list(pack([PackedFolder(folder=result)])))


def walked(folder: UntrustedPath, limits: WalkLimits) -> tuple[list[FoundEntry], list[str]]:
    left_out: list[str] = []
    with open_folder(folder) as top:
        return list(walk(top, limits=limits, leave_out=lambda name, why: left_out.append(f"{name}: {why}"))), left_out


def test_a_tree_is_packed_and_unpacked(job: Path, result: UntrustedPath, tmp_path: Path) -> None:
    (job / "result" / "deep" / "er").mkdir(parents=True)
    (job / "result" / "deep" / "er" / "run").write_bytes(b"#!")
    (job / "result" / "deep" / "er" / "run").chmod(0o755)
    archive, target = tmp_path / "archive", tmp_path / "target"
    archive.write_bytes(b"".join(pack([PackedFolder(folder=result)])))
    target.mkdir()

    unpack(archive, target)
    assert (target / "model" / "model.pt").read_bytes() == b"weights"
    assert os.access(target / "deep" / "er" / "run", os.X_OK)
    assert not (target / LEFT_OUT).exists()


@pytest.mark.parametrize("kind", sorted(set(PLANTS) - {"folder"}))
def test_what_is_no_plain_file_is_left_out_and_that_is_said(job: Path, result: UntrustedPath, kind: str) -> None:
    PLANTS[kind](job / "result" / "strange", job.parent / "secrets" / "token")
    found = packed(result)

    assert set(found) == {"model/model.pt", LEFT_OUT}
    assert found[LEFT_OUT].startswith(b"strange: it ")
    assert SECRET not in b"".join(found.values())
    assert measure(result) == len(b"weights") + (len(SECRET) if kind == "second name" else 0)
    assert set(files_below(result)) - {"strange"} == {"model/model.pt"}


@pytest.mark.parametrize("kind", sorted(set(PLANTS) - {"folder"}))
def test_whatever_lies_there_is_removed_and_nothing_else(job: Path, result: UntrustedPath, kind: str) -> None:
    PLANTS[kind](job / "result" / "strange", job.parent / "secrets" / "token")
    PLANTS[kind](job / "result" / "model" / "strange", job.parent / "secrets" / "token")

    remove(result / "strange")
    assert os.listdir(job / "result") == ["model"]
    remove(result)
    assert os.listdir(job) == []
    assert (job.parent / "secrets" / "token").read_bytes() == SECRET


@pytest.mark.parametrize("inside", ["result", "result/model"])
def test_a_folder_that_is_a_link_is_not_entered(job: Path, inside: str) -> None:
    path = UntrustedPath(job, inside)
    (job / inside).rename(job / "moved")
    (job / inside).symlink_to(job.parent / "secrets")

    assert set(packed(path)) == {LEFT_OUT}
    assert (measure(path), files_below(path), list_folder(path)) == (0, [], [])
    remove(path)
    assert not (job / inside).is_symlink()
    assert (job.parent / "secrets" / "token").exists()


def test_what_is_missing_is_empty_and_removed(job: Path) -> None:
    gone = UntrustedPath(job, "gone") / "deeper"

    assert packed(gone) == {}
    assert (measure(gone), list_folder(gone)) == (0, [])
    remove(gone)


def test_the_list_of_what_is_left_out_takes_no_name_of_the_persons(job: Path, result: UntrustedPath) -> None:
    (job / "result" / LEFT_OUT).write_bytes(b"mine")
    os.mkfifo(job / "result" / "pipe")
    found = packed(result)

    assert found[LEFT_OUT] == b"mine"
    assert found[f"{LEFT_OUT}~"] == b"pipe: it is a pipe, not a plain file\n"


@pytest.mark.parametrize("name", HIDDEN_NAMES)
def test_a_name_that_does_not_show_as_what_it_is_is_escaped(
    job: Path, result: UntrustedPath, tmp_path: Path, name: bytes
) -> None:
    (job / "result" / os.fsdecode(name)).write_bytes(b"content")
    found = packed(result)

    (new,) = set(found) - {"model/model.pt", LEFT_OUT}
    assert found[new] == b"content"
    assert new.isprintable()
    assert new == escape(os.fsdecode(name)) == shown(os.fsdecode(name))
    assert found[LEFT_OUT].decode().count("\n") == 1
    archive, target = tmp_path / "archive", tmp_path / "target"
    archive.write_bytes(b"".join(pack([PackedFolder(folder=result)])))
    target.mkdir()
    unpack(archive, target)


def test_no_two_names_become_one(job: Path, result: UntrustedPath) -> None:
    for name in ("a\n", "a\\x0a", "a\\x5cx0a"):
        (job / "result" / name).write_text(name)

    found = packed(result)
    assert len(set(found) - {"model/model.pt", LEFT_OUT}) == 3


def test_a_name_that_no_archive_takes_is_left_out(job: Path, result: UntrustedPath) -> None:
    (job / "result" / ("\n" * 200)).write_bytes(b"")
    found = packed(result)

    assert set(found) == {"model/model.pt", LEFT_OUT}
    assert b"too long" in found[LEFT_OUT]


def test_a_petabyte_of_nothing_is_left_out(job: Path, result: UntrustedPath) -> None:
    petabyte(job / "result" / "large")
    found = packed(result)

    assert set(found) == {"model/model.pt", LEFT_OUT}
    assert b"without holes" in found[LEFT_OUT]
    assert measure(result) < 1 << 20
    remove(result)


def test_many_files_of_holes_are_not_packed_as_terabytes(
    job: Path, result: UntrustedPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "MAX_HOLE_BYTES", 5 << 20)
    for number in range(8):
        with (job / "result" / f"hole-{number}").open("wb") as file:
            file.truncate(2 << 20)
    found = packed(result)

    assert sum(map(len, found.values())) < 6 << 20
    assert found[LEFT_OUT].count(b"too many holes") == 6


@pytest.mark.parametrize("depth", [120, 1100])
def test_folders_deeper_than_any_path_are_left_out_and_removed(job: Path, result: UntrustedPath, depth: int) -> None:
    deep_tree(job / "result" / "deep", depth)
    found = packed(result)

    assert set(found) == {"model/model.pt", LEFT_OUT}
    assert b"deep" in found[LEFT_OUT]
    assert measure(result) == len(b"weights")
    before = len(os.listdir("/proc/self/fd"))
    remove(result)
    assert os.listdir(job) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_so_much_of_a_tree_is_listed(job: Path, result: UntrustedPath) -> None:
    for folder in ("a", "b"):
        (job / "result" / folder).mkdir()
        for number in range(50):
            (job / "result" / folder / f"{number:02}").write_bytes(b"")
    entries, left_out = walked(result, WalkLimits(max_entries=60))
    assert len(entries) == 57
    assert left_out == ["b: the folder holds too much: 60 files and folders are taken"]

    entries, left_out = walked(result, WalkLimits(max_name_bytes=50))
    assert len(entries) < 25
    assert len(left_out) == 1
    assert len(list_folder(result / "a", max_entries=10)) == 10


def test_many_entries_need_little_memory(job: Path, result: UntrustedPath) -> None:
    folder = os.open(job / "result", os.O_PATH)
    for number in range(6_000):
        os.mknod(f"{number:0200}", dir_fd=folder)
    os.close(folder)
    tracemalloc.start()
    try:
        entries, left_out = walked(result, WalkLimits(max_entries=1000))
        assert len(entries) == 1000
        assert len(left_out) == 1
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    remove(result)
    assert os.listdir(job) == []


def test_a_file_that_grows_and_one_that_shrinks_keep_their_lengths(job: Path, result: UntrustedPath) -> None:
    """What the header says comes, whatever becomes of the file; what is missing is zeros, and that is said."""
    for name in ("grows", "shrinks"):
        (job / "result" / name).write_bytes(os.urandom(3 << 20))
    chunks = []
    for number, chunk in enumerate(pack([PackedFolder(folder=result)])):
        chunks.append(chunk)
        if number == 1:
            with (job / "result" / "grows").open("ab") as file:
                file.write(b"x" * 1000)
        if number > 1 and (job / "result" / "shrinks").stat().st_size and len(b"".join(chunks)) > 4 << 20:
            os.truncate(job / "result" / "shrinks", 0)
    found = unpacked(chunks)

    assert (len(found["grows"]), len(found["shrinks"])) == (3 << 20, 3 << 20)
    assert found["shrinks"].endswith(b"\0" * 1000)
    assert b"shrinks: it could not be read to its end" in found[LEFT_OUT]


@pytest.mark.parametrize("act", ["pack", "measure", "remove", "list"])
def test_a_folder_that_is_swapped_for_a_link_meanwhile_never_leads_out(
    job: Path, result: UntrustedPath, act: str
) -> None:
    (job / "result" / "link").symlink_to(job.parent / "secrets")
    for _ in range(40):
        (job / "result" / "model").mkdir(exist_ok=True)
        with exchanged(job / "result" / "model", job / "result" / "link"):
            for _ in range(20):
                if act == "pack":
                    assert SECRET not in b"".join(packed(result).values())
                elif act == "measure":
                    assert measure(result) % len(b"weights") == 0
                elif act == "list":
                    assert "token" not in [name for name, _ in list_folder(result / "model")]
                    assert not any(name.endswith("token") for name in files_below(result))
        if act == "remove":
            remove(result / "model")
            remove(result / "link")
            (job / "result" / "link").symlink_to(job.parent / "secrets")
        assert (job.parent / "secrets" / "token").exists()


def test_a_tree_that_is_swapped_while_it_is_removed_takes_nothing_with_it(job: Path, result: UntrustedPath) -> None:
    secrets = job.parent / "secrets"
    for _ in range(20):
        (job / "result" / "a" / "b").mkdir(parents=True)
        (job / "result" / "link").symlink_to(secrets)
        with exchanged(job / "result" / "a", job / "result" / "link"):
            remove(result / "a")
            remove(result / "a")
        remove(result / "a")
        remove(result / "link")
        assert (secrets / "token").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root enters folders of every mode")
def test_closed_folders_are_opened_to_be_removed(job: Path, result: UntrustedPath) -> None:
    (job / "result" / "a" / "b" / "c").mkdir(parents=True)
    for folder in ("a/b/c", "a/b", "a", "model", "."):
        (job / "result" / folder).chmod(0)
    assert LEFT_OUT in packed(result)

    remove(result / "model")
    remove(result)
    assert os.listdir(job) == []


def test_what_a_removal_that_was_killed_has_left_is_removed_later(job: Path, result: UntrustedPath) -> None:
    deep_tree(job / f"{TRASH}abc" / "0", 50)
    (job / f"{TRASH}abc" / "file").write_bytes(b"")

    empty_trash(job)
    assert os.listdir(job) == ["result"]


def test_what_cannot_be_removed_is_said_and_lies_apart(
    job: Path, result: UntrustedPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(PermissionError):
        remove(result)
    monkeypatch.undo()
    assert os.listdir(job) == ["result"]

    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(PermissionError):
        remove(result)
    monkeypatch.undo()
    assert [name[: len(TRASH)] for name in os.listdir(job)] == [TRASH]
    empty_trash(job)
    assert os.listdir(job) == []


def test_archives_do_not_nest_deeper_than_what_is_packed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "archive", "w") as tar:
        tar.addfile(tarfile.TarInfo("d/" * 1000 + "file"))
    (tmp_path / "target").mkdir()

    with pytest.raises(InvalidInput, match="deep"):
        unpack(tmp_path / "archive", tmp_path / "target")
