"""What a zip may hold, bombs of every format, and that nothing of a refused archive gets onto the disk."""

import gzip
import io
import stat
import struct
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.core.errors import InvalidInput, TooLarge
from pliant.files.archive import CODE_LIMITS, kind_of, unpack

BOMBS = replace(CODE_LIMITS, free_bytes=1 << 20)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def zipped(folder: Path, *members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for member, content in members:
            archive.writestr(member, content)
    return path


def info(name: str, mode: int = 0, **fields: object) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_zip_comes_out_as_it_went_in(tmp_path: Path, target: Path) -> None:
    path = zipped(tmp_path, ("a/é.txt", b"x" * 100_000), (info("run", 0o100755), b"#!"), ("empty/", b""))
    listing = unpack(path, target)
    assert (listing.num_files, listing.num_bytes) == (2, 100_002)
    assert files(target) == {"a/é.txt": b"x" * 100_000, "run": b"#!"}
    assert (target / "run").stat().st_mode & 0o777 == 0o755
    assert (target / "empty").is_dir()


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (info("../evil"), "points outside"),
        (info("/etc/evil"), "points outside"),
        (info("link", stat.S_IFLNK | 0o777), "is a link"),
        (info("pipe", stat.S_IFIFO | 0o600), "neither a file nor a folder"),
        (info("a\\b"), "backslash"),
        (info("n" * 256), "too long"),
        (info("/".join(["n" * 200] * 20)), "too long"),
    ],
)
def test_what_leads_elsewhere_is_refused_before_anything_is_written(
    tmp_path: Path, target: Path, member: zipfile.ZipInfo, why: str
) -> None:
    path = zipped(tmp_path, ("good", b"x"), (member, b"x"))
    with pytest.raises(InvalidInput, match=why):
        unpack(path, target)
    assert list(target.iterdir()) == []


def test_a_bad_member_at_the_end_of_a_tar_keeps_the_good_ones_from_the_disk(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        good = tarfile.TarInfo("good")
        good.size = 3
        tar.addfile(good, io.BytesIO(b"abc"))
        tar.addfile(tarfile.TarInfo("../bad"))
    assert kind_of(path) == "tar"
    with pytest.raises(InvalidInput, match="points outside"):
        unpack(path, target)
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b"), ("a/b", "a"), ("a", "./a")])
def test_names_that_cannot_stand_beside_each_other_are_refused(
    tmp_path: Path, target: Path, names: tuple[str, str]
) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(InvalidInput, match="twice"):
        unpack(path, target)
    assert list(target.iterdir()) == []


def test_names_that_are_not_utf8_are_refused(tmp_path: Path, target: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w", encoding="latin-1", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("größe"))
    with pytest.raises(InvalidInput, match="not UTF-8"):
        unpack(path, target)
    raw = zipped(tmp_path, ("gr__e", b"x")).read_bytes().replace(b"gr__e", b"gr\xf6\xdfe")
    (tmp_path / "b.zip").write_bytes(raw)
    with pytest.raises(InvalidInput, match="not UTF-8"):
        unpack(tmp_path / "b.zip", target)
    utf8 = zipped(tmp_path, ("gr____e", b"x")).read_bytes().replace(b"gr____e", "größe".encode())
    (tmp_path / "c.zip").write_bytes(utf8)
    unpack(tmp_path / "c.zip", target)
    assert files(target) == {"größe": b"x"}


def test_bombs_are_refused_by_their_ratio_and_by_their_total(tmp_path: Path, target: Path) -> None:
    path = zipped(tmp_path, ("zeros", bytes(2 << 20)))
    with pytest.raises(TooLarge, match="250 times its size"):
        unpack(path, target, limits=BOMBS)
    with pytest.raises(TooLarge, match="more than 1 MiB"):
        unpack(path, target, limits=replace(CODE_LIMITS, max_bytes=1 << 20))
    tar = tmp_path / "a.tar.gz"
    with tarfile.open(tar, "w:gz") as archive:
        member = tarfile.TarInfo("zeros")
        member.size = 8 << 20
        archive.addfile(member, io.BytesIO(bytes(8 << 20)))
    with pytest.raises(TooLarge, match="250 times its size"):
        unpack(tar, target, limits=BOMBS)
    assert list(target.iterdir()) == []


def test_a_tail_of_zeros_behind_a_tar_is_a_bomb_too(tmp_path: Path, target: Path) -> None:
    empty = io.BytesIO()
    with tarfile.open(fileobj=empty, mode="w"):
        pass
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(empty.getvalue() + bytes(20 << 20)))
    with pytest.raises(TooLarge):
        unpack(path, target, limits=replace(BOMBS, max_files=10))


def test_members_that_share_their_bytes_are_refused(tmp_path: Path, target: Path) -> None:
    raw = bytearray(zipped(tmp_path, ("a", b"x" * 50), ("b", b"x" * 50), method=zipfile.ZIP_STORED).read_bytes())
    second = raw.rindex(b"PK\x01\x02")
    raw[second + 42 : second + 46] = struct.pack("<L", 10)
    (tmp_path / "b.zip").write_bytes(raw)
    with pytest.raises(InvalidInput):
        unpack(tmp_path / "b.zip", target)
    assert list(target.iterdir()) == []


def test_a_zip_that_lies_or_is_locked_is_refused(tmp_path: Path, target: Path) -> None:
    raw = zipped(tmp_path, ("a", b"x" * 5000), method=zipfile.ZIP_STORED).read_bytes()
    (tmp_path / "b.zip").write_bytes(raw.replace(b"xxxx", b"yyyy", 1))
    with pytest.raises(InvalidInput, match="not a whole zip"):
        unpack(tmp_path / "b.zip", target)
    locked = bytearray(raw)
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "c.zip").write_bytes(locked)
    with pytest.raises(InvalidInput, match="encrypted"):
        unpack(tmp_path / "c.zip", target)
    zipped(tmp_path, ("a", b"x" * 5000), method=zipfile.ZIP_LZMA)
    with pytest.raises(InvalidInput, match="not known here"):
        unpack(tmp_path / "a.zip", target)
    (tmp_path / "d.zip").write_bytes(raw[:-30])
    with pytest.raises(InvalidInput, match="not a whole zip"):
        unpack(tmp_path / "d.zip", target)
    assert list(target.iterdir()) == []


@settings(max_examples=150)
@given(
    noise=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    format=st.sampled_from(["zip", "gz", "tar"]),
)
def test_damage_is_refused_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, noise: list[tuple[int, int]], format: str
) -> None:
    made = io.BytesIO()
    if format == "zip":
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a/b", b"content")
            archive.writestr("c", b"more")
    else:
        with tarfile.open(fileobj=made, mode="w:gz" if format == "gz" else "w") as tar:
            member = tarfile.TarInfo("a/b")
            member.size = 7
            tar.addfile(member, io.BytesIO(b"content"))
    raw = bytearray(made.getvalue())
    for position, value in noise:
        raw[position % len(raw)] = value
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "archive").write_bytes(raw)
    (folder / "out").mkdir()
    try:
        unpack(folder / "archive", folder / "out")
    except (InvalidInput, TooLarge):
        assert list((folder / "out").iterdir()) == []
    assert {path.name for path in folder.iterdir()} == {"archive", "out"}
