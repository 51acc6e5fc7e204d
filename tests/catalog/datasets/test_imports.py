"""Imports over servers that are killed: nothing half done is left, and they begin again; uploads over full disks."""

import os
import resource
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from tests.catalog.unconfined import Unconfined
from tests.catalog.waiting import until

from pliant.catalog.children.reach import ChildIsolation
from pliant.catalog.datasets.imports import ImportSettings
from pliant.catalog.datasets.uploads import UploadLimits, Uploads, WrongOffset
from pliant.catalog.datasets.use_cases import DatasetCatalog, make_datasets
from pliant.core.access import Principal, Role
from pliant.core.dataset import Dataset, DatasetState, Source
from pliant.core.errors import Conflict, NoSpace, NotFound
from pliant.entry.server.rooms.children import ConfinedChildren
from pliant.entry.server.rooms.datasets import IMPORTER
from pliant.isolation import landlock
from pliant.isolation.variables import allowed
from pliant.store.sql import SqlStore

ADA = Principal(name="ada", role=Role.USER)
HANGS = (sys.executable, "-c", "import sys; open(sys.argv[1], 'w').close(); sys.stdin.read()")
"""A process that never answers, and ends with its server."""
SERVER = """
import sys, time
from pathlib import Path
from tests.catalog.datasets.test_imports import ADA, opened
from pliant.core.dataset import Dataset, Source
from pliant.store.sql import SqlStore
home = Path(sys.argv[1])
datasets = opened(home, SqlStore(f"sqlite:///{home / 'pliant.db'}"))
datasets.start()
datasets.add(Dataset(name="one", owner="", kind="images", source=Source(path="many")), ADA)
time.sleep(60)
"""


def opened(
    home: Path,
    store: SqlStore,
    command: tuple[str, ...] = IMPORTER,
    isolation: ChildIsolation = Unconfined(),  # noqa: B008 (it has no state)
) -> DatasetCatalog:
    (home / "data").mkdir(exist_ok=True)
    settings = ImportSettings(
        folder=home / "datasets", data_root=home / "data", command=command, isolation=isolation, max_running=1
    )
    return make_datasets(
        store.registry,
        settings,
        uploads=home / "incoming",
        limits=UploadLimits(max_bytes=1 << 20),
        now=time.time,
        users=lambda _: (),
    )


def slow(folder: Path) -> list[Path]:
    """Make a folder of pictures whose import takes half a minute; return those without which it takes a second."""
    picture = folder.with_suffix(".png")
    picture.parent.mkdir()
    Image.effect_noise((600, 600), 90).save(picture, compress_level=1)
    paths = [folder / f"class-{number % 2}" / f"{number}.png" for number in range(800)]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.hardlink_to(picture)
    return paths[24:]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = SqlStore(f"sqlite:///{tmp_path / 'pliant.db'}")
    yield store
    store.close()


def ended(datasets: DatasetCatalog, name: str = "one") -> Dataset | None:
    found = datasets.get(name, ADA)
    return found if found.state is not DatasetState.IMPORTING else None


@pytest.mark.slow
def test_an_import_whose_server_is_killed_begins_again_with_the_next_one(tmp_path: Path, store: SqlStore) -> None:
    more = slow(tmp_path / "data" / "many")
    root = Path(__file__).parents[3]
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], cwd=root)
    until(lambda: list(tmp_path.glob("datasets/.new-*/data/train/*/*.png")) or server.poll())
    server.send_signal(signal.SIGKILL)
    server.wait()
    assert store.registry.get(Dataset, "one") is not None
    (cut,) = (tmp_path / "datasets").iterdir()
    for path in more:
        path.unlink()
    datasets = opened(tmp_path, store)
    try:
        datasets.start()
        assert not cut.exists()
        assert datasets.get("one", ADA).state is DatasetState.IMPORTING
        ready = until(lambda: ended(datasets))
        assert (ready.state, ready.content.num_files) == (DatasetState.READY, 24)
        until(lambda: {path.name for path in (tmp_path / "datasets").iterdir()} == {"one", ".preview-one"})
    finally:
        datasets.close()


@pytest.mark.parametrize("becomes", [DatasetState.READY, DatasetState.FAILED])
def test_an_upload_that_a_killed_server_had_not_let_go_of_is_let_go_of(
    tmp_path: Path, store: SqlStore, becomes: DatasetState
) -> None:
    datasets = opened(tmp_path, store)
    datasets.start()
    upload = datasets.uploads.create("ada", 4)
    put(datasets.uploads, upload.id, 0, b"0123")
    datasets.uploads.take(upload.id, ADA, "one")
    noun = Dataset(name="one", owner="ada", kind="any", source=Source(upload_id=upload.id), state=becomes)
    store.registry.add(noun, at=1.0)
    datasets.close()

    following = opened(tmp_path, store)
    following.start()
    left = [] if becomes is DatasetState.READY else [(upload.id, "")]
    assert [(one.id, one.taken_by) for one in following.uploads.list(ADA)] == left
    following.close()


def test_the_end_of_a_server_ends_its_imports_and_keeps_them_for_the_next(tmp_path: Path, store: SqlStore) -> None:
    (tmp_path / "data" / "x").mkdir(parents=True)
    datasets = opened(tmp_path, store, (*HANGS, str(tmp_path / "runs")))
    datasets.start()
    for name in ("one", "two"):
        datasets.add(Dataset(name=name, owner="", kind="any", source=Source(path="x")), ADA)
    until((tmp_path / "runs").exists)
    waiting = datasets.get("two", ADA)
    assert waiting.progress is not None
    assert waiting.progress.phase == "waiting for its turn"
    assert datasets.stop("two", ADA).reason == "ada stopped its import"
    datasets.close()
    assert list((tmp_path / "datasets").iterdir()) == []
    following = opened(tmp_path, store)
    following.start()
    assert until(lambda: ended(following)).state is DatasetState.READY
    assert following.get("two", ADA).state is DatasetState.STOPPED
    following.close()


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9, perhaps for lack of memory"),
        ("import sys; sys.stdin.readline(); raise SystemExit('no such thing')", "ended with code 1; it said: no such"),
        ("print('what'); print('{}')", "ended with code 0"),
    ],
)
def test_a_process_that_dies_is_a_failed_import(tmp_path: Path, store: SqlStore, program: str, why: str) -> None:
    (tmp_path / "data" / "x").mkdir(parents=True)
    datasets = opened(tmp_path, store, (sys.executable, "-c", program))
    datasets.start()
    datasets.add(Dataset(name="one", owner="", kind="any", source=Source(path="x")), ADA)
    failed = until(lambda: ended(datasets))
    datasets.close()
    assert (failed.state, why in failed.reason) == (DatasetState.FAILED, True), failed.reason
    assert list((tmp_path / "datasets").iterdir()) == []


def test_what_a_killed_server_left_is_removed_and_what_is_ready_stays(tmp_path: Path, store: SqlStore) -> None:
    folder = tmp_path / "datasets"
    for name in (".new-1", ".gone-2", "orphan", "kept"):
        (folder / name / "data").mkdir(parents=True)
    (folder / "stray").touch()
    state = {"state": DatasetState.READY, "folder": str(folder / "kept")}
    noun = Dataset(name="kept", owner="ada", kind="any", source=Source(path="x"), **state)  # type: ignore[arg-type]
    store.registry.add(noun, at=1.0)
    datasets = opened(tmp_path, store)
    datasets.start()
    until(lambda: [path.name for path in folder.iterdir()] == ["kept"])
    datasets.close()


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "incoming", now=lambda: 1000.0)


def put(uploads: Uploads, upload_id: str, offset: int, content: bytes) -> int:
    chunk = uploads.chunk(upload_id, ADA, offset)
    try:
        chunk.write(content)
        chunk.check(None)
        return uploads.commit(chunk, ADA).offset
    finally:
        chunk.close()


def test_a_disk_that_is_full_loses_nothing_that_was_acknowledged(uploads: Uploads) -> None:
    upload = uploads.create("ada", 10_000)
    assert put(uploads, upload.id, 0, b"a" * 2000) == 2000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))
    try:
        with pytest.raises(NoSpace, match="is full"):
            put(uploads, upload.id, 2000, b"b" * 8000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert uploads.get(upload.id, ADA).offset == 2000
    assert put(uploads, upload.id, 2000, b"c" * 8000) == 10_000
    assert uploads.content(upload.id).read_bytes() == b"a" * 2000 + b"c" * 8000


def test_what_was_begun_is_counted_before_more_is_promised(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "incoming", now=lambda: 1000.0, free=lambda _: 300 << 20)
    uploads.create("ada", 30 << 20)
    with pytest.raises(NoSpace, match="300 MiB free"):
        uploads.create("ada", 30 << 20)
    assert len(uploads.list(ADA)) == 1


def test_an_upload_outlives_its_server_with_what_was_acknowledged(uploads: Uploads, tmp_path: Path) -> None:
    upload = uploads.create("ada", 10)
    put(uploads, upload.id, 0, b"0123")
    chunk = uploads.chunk(upload.id, ADA, 4)
    chunk.write(b"xx")  # the server is killed here
    chunk.close()
    (tmp_path / "incoming" / "half-made").mkdir()
    following = Uploads(tmp_path / "incoming", now=lambda: 2000.0)
    following.sweep()
    assert following.list(ADA) == (uploads.get(upload.id, ADA),)
    with pytest.raises(WrongOffset, match="begins at 4, not at 6"):
        following.chunk(upload.id, ADA, 6)
    assert put(following, upload.id, 4, b"456789") == 10
    assert following.content(upload.id).read_bytes() == b"0123456789"
    assert sorted(os.listdir(tmp_path / "incoming")) == [upload.id]


def test_an_upload_that_is_taken_is_not_changed_nor_does_it_expire(tmp_path: Path) -> None:
    times = [1000.0]
    uploads = Uploads(tmp_path / "incoming", now=lambda: times[0])
    upload = uploads.create("ada", 4)
    put(uploads, upload.id, 0, b"0123")
    uploads.take(upload.id, ADA, "one")
    for change in (lambda: uploads.remove(upload.id, ADA), lambda: uploads.take(upload.id, ADA, "two")):
        with pytest.raises(Conflict, match="is being imported as the data set 'one'"):
            change()
    times[0] += 1e6
    uploads.sweep()
    assert uploads.require_held(upload.id, "one").num_bytes == 4
    uploads.release(upload.id)
    times[0] += 1e6
    uploads.sweep()
    with pytest.raises(NotFound):
        uploads.get(upload.id, ADA)
    assert os.listdir(tmp_path / "incoming") == []


def test_an_import_that_fills_the_disk_fails_in_words_and_leaves_nothing(tmp_path: Path, store: SqlStore) -> None:
    (tmp_path / "data").mkdir()
    with zipfile.ZipFile(tmp_path / "data" / "a.zip", "w") as archive:
        archive.writestr("large", os.urandom(100_000))
    small_disk = ("sh", "-c", 'ulimit -f 64; export PYTHONDONTWRITEBYTECODE=1; exec "$@"', "sh", *IMPORTER)
    datasets = opened(tmp_path, store, small_disk)
    datasets.start()
    datasets.add(Dataset(name="one", owner="", kind="any", source=Source(path="a.zip")), ADA)
    failed = until(lambda: ended(datasets))
    datasets.close()
    assert (failed.state, "is full" in failed.reason) == (DatasetState.FAILED, True), failed.reason
    assert list((tmp_path / "datasets").iterdir()) == []


LOOKS_AROUND = """
import json, os, sys
spec = json.loads(sys.stdin.readline())
reached = []
for what, attempt in {
    "source": lambda: os.listdir(spec["source"]),
    "work": lambda: open(os.path.join(spec["work"], "made"), "w").close(),
    "token": lambda: open(sys.argv[1]),
    "data root": lambda: open(os.path.join(spec["data_root"], "made"), "w"),
    "others": lambda: os.listdir(os.path.dirname(sys.argv[1])),
    "environment": lambda: os.environ["AWS_SECRET_ACCESS_KEY"],
    "signal": lambda: os.kill(os.getppid(), 0),
}.items():
    try:
        attempt()
        reached.append(what)
    except (OSError, KeyError):
        pass
print(json.dumps({"kind": "refusal", "reason": " ".join(reached)}))
"""
"""A process of an import that was misled by what it reads."""


@pytest.mark.skipif(not landlock.scopes_signals(landlock.abi()), reason="this kernel has no walls for one user")
@pytest.mark.parametrize("walls", [True, False])
def test_an_import_that_is_misled_reaches_its_source_and_its_own_folder_and_nothing_else(
    tmp_path: Path, store: SqlStore, monkeypatch: pytest.MonkeyPatch, *, walls: bool
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    (tmp_path / "token").write_text("the-token")
    confined = ConfinedChildren(home=tmp_path, env=allowed(os.environ), user_of=lambda _: None)
    command = (sys.executable, "-c", LOOKS_AROUND, str(tmp_path / "token"))
    datasets = opened(tmp_path, store, command, confined if walls else Unconfined())
    (tmp_path / "data" / "many").mkdir()
    datasets.start()
    datasets.add(Dataset(name="one", owner="", kind="any", source=Source(path="many")), ADA)
    reason = until(lambda: datasets.get("one", ADA).reason)
    datasets.close()
    everything = "source work token data root others environment signal"
    assert reason == ("source work" if walls else everything)
