"""What an archive may hold, and that a result is packed without holding it in memory."""

import gzip
import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pliant.core.errors import InvalidInput, TooLarge
from pliant.files.archive import CODE_LIMITS, read_texts, unpack
from pliant.files.ignore import Patterns
from pliant.files.untrusted.packing import LEFT_OUT, PackedFolder, pack
from pliant.files.untrusted.path import UntrustedPath

Add = Callable[[tarfile.TarFile], None]


def archive(folder: Path, add: Add) -> Path:
    path = folder / "code.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        add(tar)
    return path


def member(name: str, data: bytes = b"", **fields: object) -> Add:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        for field, value in fields.items():
            setattr(info, field, value)
        tar.addfile(info, io.BytesIO(data))

    return add


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


def test_files_and_folders_come_out_as_they_went_in(tmp_path: Path, target: Path) -> None:
    def add(tar: tarfile.TarFile) -> None:
        member("./", type=tarfile.DIRTYPE)(tar)
        member("./train.py", b"print()", mode=0o600)(tar)
        member("pkg/deep/run.sh", b"x" * 200_000, mode=0o4755)(tar)
        member("é" * 120 + ".py", b"1")(tar)

    unpack(archive(tmp_path, add), target)
    found = {p.relative_to(target).as_posix(): p.read_bytes() for p in target.rglob("*") if p.is_file()}
    assert found == {"train.py": b"print()", "pkg/deep/run.sh": b"x" * 200_000, "é" * 120 + ".py": b"1"}
    assert (target / "pkg/deep/run.sh").stat().st_mode & 0o7777 == 0o755
    assert (target / "train.py").stat().st_mode & 0o7777 == 0o644


@pytest.mark.parametrize(
    ("add", "why"),
    [
        (member("../evil.py", b"x"), "points outside"),
        (member("a/../../evil.py", b"x"), "points outside"),
        (member("/etc/evil.py", b"x"), "points outside"),
        (member("link", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link"),
        (member("link", type=tarfile.LNKTYPE, linkname="train.py"), "is a link"),
        (member("pipe", type=tarfile.FIFOTYPE), "neither a file nor a folder"),
        (member("tty", type=tarfile.CHRTYPE), "neither a file nor a folder"),
    ],
)
def test_what_leads_elsewhere_is_refused(tmp_path: Path, target: Path, add: Add, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        unpack(archive(tmp_path, add), target)
    assert not (tmp_path / "evil.py").exists()


def test_every_bad_member_is_named_at_once(tmp_path: Path, target: Path) -> None:
    def add(tar: tarfile.TarFile) -> None:
        member("../a", b"x")(tar)
        member("b", type=tarfile.SYMTYPE, linkname="c")(tar)

    with pytest.raises(InvalidInput) as refused:
        unpack(archive(tmp_path, add), target)
    assert len(refused.value.problems) == 2


def test_a_file_that_is_there_twice_is_refused(tmp_path: Path, target: Path) -> None:
    def add(tar: tarfile.TarFile) -> None:
        member("a", b"1")(tar)
        member("a", b"2")(tar)

    with pytest.raises(InvalidInput, match="twice"):
        unpack(archive(tmp_path, add), target)


@pytest.mark.parametrize("content", [b"", b"no archive at all", gzip.compress(b"x" * 2000, mtime=0), b"\x1f\x8b\x08"])
def test_what_is_no_archive_is_refused(tmp_path: Path, target: Path, content: bytes) -> None:
    path = tmp_path / "code.tar.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match="not a whole tar"):
        unpack(path, target)


def test_an_archive_that_breaks_off_is_refused(tmp_path: Path, target: Path) -> None:
    path = archive(tmp_path, member("a", bytes(range(256)) * 4000))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InvalidInput, match="not a whole tar"):
        unpack(path, target)


def test_too_many_bytes_are_refused_before_they_are_written(tmp_path: Path, target: Path) -> None:
    path = archive(tmp_path, member("zeros", bytes(5 << 20)))
    with pytest.raises(TooLarge, match="more than 4 MiB"):
        unpack(path, target, limits=replace(CODE_LIMITS, max_bytes=4 << 20))
    assert not list(target.iterdir())


def test_too_many_files_are_refused(tmp_path: Path, target: Path) -> None:
    def add(tar: tarfile.TarFile) -> None:
        for i in range(11):
            member(f"f{i}")(tar)

    with pytest.raises(TooLarge, match="more than 10 files"):
        unpack(archive(tmp_path, add), target, limits=replace(CODE_LIMITS, max_files=10))


def test_a_header_of_gigabytes_is_not_read_into_memory(tmp_path: Path, target: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type = tarfile.XHDTYPE
    info.size = 8 << 30
    path = tmp_path / "code.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf() + bytes(1 << 20)))
    with pytest.raises((InvalidInput, TooLarge)):
        unpack(path, target)


def test_small_files_are_read_without_unpacking(tmp_path: Path) -> None:
    def add(tar: tarfile.TarFile) -> None:
        for name in ("model.json", "one/model.json", "one/two/model.json", "one/other.json"):
            member(name, name.encode())(tar)

    names = ("model.json",)
    packed = archive(tmp_path, add)
    found = {name: name.encode() for name in ("model.json", "one/model.json")}
    assert read_texts(packed, names, max_bytes=14) == found
    with pytest.raises(TooLarge, match=r"one/model\.json is longer"):
        read_texts(packed, names, max_bytes=13)
    (tmp_path / "none").write_bytes(b"none")
    with pytest.raises(InvalidInput, match="not a whole"):
        read_texts(tmp_path / "none", names, max_bytes=14)


def test_a_result_is_packed_without_what_is_excluded(tmp_path: Path) -> None:
    result = tmp_path / "result"
    for name, data in {
        "model/model.pt": b"m" * 300_000,
        "checkpoint/1": b"c",
        "log/a/stdout": b"",
        "x.json": b"{}",
    }.items():
        (result / name).parent.mkdir(parents=True, exist_ok=True)
        (result / name).write_bytes(data)
    (result / "link").symlink_to("/etc/passwd")
    source = PackedFolder(folder=UntrustedPath(tmp_path, "result"), ignore=Patterns(("/checkpoint",)).fit)
    chunks = list(pack([source]))
    assert max(map(len, chunks)) < 200_000
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks)), mode="r:gz") as tar:
        assert sorted(tar.getnames()) == [LEFT_OUT, "log/a/stdout", "model/model.pt", "x.json"]
        model = tar.extractfile("model/model.pt")
        assert model is not None
        assert model.read() == b"m" * 300_000
