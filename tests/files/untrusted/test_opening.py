"""Only a plain file of its owner is opened, only below the folder, and nothing waits, whatever lies there."""

import errno
import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.hostile import PLANTS, exchanged, leased, petabyte

from pliant.files.untrusted import beneath, opening
from pliant.files.untrusted.beneath import OpenBelow, open_beneath, open_step_by_step, open_with_openat2
from pliant.files.untrusted.opening import UntrustedFile, copy, is_file, open_file, read_end
from pliant.files.untrusted.path import UntrustedPath

SECRET = b"the server's token"
NOBODY = 65534
pytestmark = pytest.mark.timeout(20)


@pytest.fixture(autouse=True, params=[open_with_openat2, open_step_by_step])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> OpenBelow:
    chosen: OpenBelow = request.param
    monkeypatch.setattr(beneath, "_opener", lambda: chosen)
    return chosen


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "token").write_bytes(SECRET)
    (tmp_path / "job" / "result" / "model").mkdir(parents=True)
    return tmp_path / "job"


@pytest.fixture
def weights(job: Path) -> UntrustedPath:
    return UntrustedPath(job, "result") / "model" / "model.pt"


def read(path: UntrustedPath) -> bytes:
    with open_file(path) as file:
        return file.read_at(0, 1000)


def test_a_plain_file_is_read(job: Path, weights: UntrustedPath) -> None:
    (job / "result" / "model" / "model.pt").write_bytes(b"weights")

    assert read(weights) == b"weights"
    assert is_file(weights)
    assert read_end(weights, 3)[0] == b"hts"
    assert (str(weights), weights.name) == (f"{job}/result/model/model.pt", "model.pt")


def test_it_is_no_path_that_others_open(weights: UntrustedPath) -> None:
    assert not isinstance(weights, os.PathLike)
    with pytest.raises(TypeError):
        Path(weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", PLANTS)
def test_nothing_else_is_read(job: Path, weights: UntrustedPath, kind: str) -> None:
    PLANTS[kind](job / "result" / "model" / "model.pt", job.parent / "token")

    assert not is_file(weights)
    with pytest.raises(OSError, match=r"link|plain file|second name|levels|folder|cross-device"):
        read(weights)


@pytest.mark.parametrize("kind", ["link", "relative link", "link to itself"])
@pytest.mark.parametrize("replaced", ["result/model", "result"])
def test_a_folder_on_the_way_that_is_a_link_leads_nowhere(
    job: Path, weights: UntrustedPath, replaced: str, kind: str
) -> None:
    elsewhere = job.parent / "elsewhere"
    for folder in (elsewhere, elsewhere / "model"):
        folder.mkdir()
        (folder / "model.pt").write_bytes(SECRET)
    (job / replaced).rename(job / "moved")
    PLANTS[kind](job / replaced, elsewhere)

    assert not is_file(weights)


@pytest.mark.parametrize("inside", ["result/../../token", "../token", "/etc/passwd", "result/\0", ""])
def test_no_name_leads_out(job: Path, inside: str) -> None:
    with pytest.raises(OSError, match=r"cross-device|NUL|plain file"):
        read(UntrustedPath(job, inside))


def test_what_was_renamed_on_the_way_is_told_from_what_is_missing(job: Path) -> None:
    root = os.open(job, os.O_PATH | os.O_DIRECTORY)
    try:
        with pytest.raises(FileNotFoundError):
            open_beneath(root, "result/none", os.O_PATH)
    finally:
        os.close(root)


def test_a_file_that_is_leased_is_not_waited_for(job: Path, weights: UntrustedPath) -> None:
    path = job / "result" / "model" / "model.pt"
    path.write_bytes(b"weights")
    with leased(path):
        with pytest.raises(BlockingIOError) as error:
            read(weights)
        assert error.value.errno == errno.EAGAIN
    assert read(weights) == b"weights"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads files of every mode")
def test_a_closed_file_is_not_read(job: Path, weights: UntrustedPath) -> None:
    (job / "result" / "model" / "model.pt").write_bytes(b"weights")
    (job / "result" / "model" / "model.pt").chmod(0)

    with pytest.raises(PermissionError):
        read(weights)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_in_the_folder_of_somebody_else_only_their_files_are_read(job: Path, weights: UntrustedPath) -> None:
    path = job / "result" / "model" / "model.pt"
    path.write_bytes(SECRET)
    os.chown(job / "result", NOBODY, -1)
    with pytest.raises(UntrustedFile, match="somebody else"):
        read(weights)

    os.chown(path, NOBODY, -1)
    assert read(weights) == SECRET


@pytest.fixture
def closed_fast() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("closed_fast")
@pytest.mark.parametrize("swapped", ["result/model", "result/model/model.pt"])
def test_what_is_swapped_for_a_link_never_leads_out(job: Path, weights: UntrustedPath, swapped: str) -> None:
    """A program swaps the folder on the way, or the file, for a link to secrets as fast as it can."""
    (job / "result" / "model" / "model.pt").write_bytes(b"weights")
    secrets = job.parent / "secrets"
    secrets.mkdir()
    (secrets / "model.pt").write_bytes(SECRET)
    (job / "result" / "link").symlink_to(secrets if swapped == "result/model" else secrets / "model.pt")
    found = set()
    with exchanged(job / swapped, job / "result" / "link"):
        for _ in range(3000):
            with suppress(OSError):
                found.add(read(weights))
    assert found <= {b"weights"}


def test_a_copy_is_what_the_file_was(job: Path, weights: UntrustedPath) -> None:
    content = os.urandom(3 << 20)
    (job / "result" / "model" / "model.pt").write_bytes(content)
    with tempfile.TemporaryFile() as target, open_file(weights) as file:
        with (job / "result" / "model" / "model.pt").open("ab") as more:
            more.write(b"it grows")
        assert copy(file, target, max_bytes=4 << 20) == len(content)
        target.seek(0)
        assert target.read() == content


def test_a_file_that_shrinks_is_copied_as_far_as_it_goes(job: Path, weights: UntrustedPath) -> None:
    path = job / "result" / "model" / "model.pt"
    path.write_bytes(b"x" * 1000)
    with tempfile.TemporaryFile() as target, open_file(weights) as file:
        os.truncate(path, 10)
        assert copy(file, target, max_bytes=1000) == 10


def test_holes_stay_holes(job: Path, weights: UntrustedPath) -> None:
    path = job / "result" / "model" / "model.pt"
    with path.open("wb") as out:
        out.truncate(32 << 20)
        out.seek(20 << 20)
        out.write(b"data")
    target = job.parent / "copy"
    with target.open("wb") as out, open_file(weights) as file:
        copy(file, out, max_bytes=64 << 20)
    assert target.read_bytes() == path.read_bytes()
    assert target.stat().st_blocks * 512 < 8 << 20


def test_a_petabyte_of_nothing_is_not_copied(job: Path, weights: UntrustedPath) -> None:
    petabyte(job / "result" / "model" / "model.pt")
    with open_file(weights) as file, pytest.raises(UntrustedFile, match="without holes"):
        copy(file, io.BytesIO(), max_bytes=1 << 60)
    assert len(read_end(weights, 100)[0]) == 100


def test_no_more_is_copied_than_allowed(job: Path, weights: UntrustedPath) -> None:
    (job / "result" / "model" / "model.pt").write_bytes(b"x" * 11)
    with open_file(weights) as file, pytest.raises(UntrustedFile, match="more than 10"):
        copy(file, io.BytesIO(), max_bytes=10)


def test_what_was_looked_at_is_what_is_opened(
    job: Path, weights: UntrustedPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the opening the name is given to a pipe: the file that was looked at is read."""
    path = job / "result" / "model" / "model.pt"
    path.write_bytes(b"weights")

    def look_and_swap(facts: os.stat_result, owner: int | None) -> str:
        if path.is_file():
            path.rename(job / "moved")
            os.mkfifo(path)
        return refusal(facts, owner)

    refusal = opening.refusal
    monkeypatch.setattr(opening, "refusal", look_and_swap)
    assert read(weights) == b"weights"
