"""The client and the command line of data sets, against a real server."""

import hashlib
import os
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.client.wires import Cutter

from pliant.api.datasets import DatasetPatch, DatasetRequest
from pliant.cli.app import main
from pliant.client import Client
from pliant.client.folders.data_source import source_of
from pliant.core.dataset import DatasetState
from pliant.core.errors import InvalidInput, TooLarge

Served = Any


@pytest.fixture
def client(server: Served) -> Iterator[Client]:
    with Client(f"http://{server.address}", "the-token") as client:
        yield client


def a_folder(folder: Path, num_bytes: int = 200_000) -> Path:
    (folder / "train" / "deep").mkdir(parents=True)
    (folder / "train" / "deep" / ("é" * 100)).write_bytes(os.urandom(num_bytes))
    (folder / "train" / "run").write_bytes(b"#!")
    (folder / "train" / "run").chmod(0o755)
    (folder / "test").mkdir()
    (folder / "test" / "empty").touch()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_is_a_whole_tar_of_the_length_that_was_told(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "data")
    source = source_of(folder)
    made = b"".join(source.pieces())
    assert len(made) == source.num_bytes
    assert made == b"".join(source_of(folder).pieces())
    (tmp_path / "made.tar").write_bytes(made)
    with tarfile.open(tmp_path / "made.tar") as tar:
        found = {file.name: content.read() for file in tar if (content := tar.extractfile(file)) is not None}
    assert found == contents(folder)
    before = source.fingerprint
    os.utime(folder / "test" / "empty", ns=(1, 1))
    assert source_of(folder).fingerprint != before


def test_what_cannot_be_sent_is_told_at_once(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "data")
    (folder / "gone").symlink_to("nowhere")
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "again").symlink_to("train")
    os.mkfifo(folder / "pipe")
    with pytest.raises(InvalidInput) as refused:
        source_of(folder)
    assert len(refused.value.problems) == 4
    for nothing in (tmp_path / "none", tmp_path / "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(InvalidInput):
            source_of(nothing)


def test_an_upload_goes_on_over_connections_that_break(server: Served, client: Client, tmp_path: Path) -> None:
    source = source_of(a_folder(tmp_path / "data", 600_000))
    port = int(server.address.rpartition(":")[2])
    seen: list[int] = []
    with (
        closing(Cutter(port, [150_000, 90_000, 100_000])) as cutter,
        Client(cutter.url, "the-token") as cut,
    ):
        sent = cut.datasets.upload(source, lambda done, _: seen.append(done))
        assert cutter.cuts == []
    assert seen == sorted(seen)
    assert seen[-1] == source.num_bytes
    assert sent.sha256 == hashlib.sha256(b"".join(source.pieces())).hexdigest()
    stored = server.datasets.uploads.content(sent.upload_id).read_bytes()
    assert hashlib.sha256(stored).hexdigest() == sent.sha256


def test_an_upload_that_was_begun_is_gone_on_with(server: Served, client: Client, tmp_path: Path) -> None:
    source = source_of(a_folder(tmp_path / "data", 300_000))

    class Ended(Exception):
        pass

    def end(done: int, _: int) -> None:
        if done >= 1 << 17:
            raise Ended

    with pytest.raises(Ended):
        client.datasets.upload(source, end)
    (begun,) = client.datasets.uploads().uploads
    assert begun.offset == 1 << 17
    seen: list[int] = []
    sent = client.datasets.upload(source_of(tmp_path / "data"), lambda done, _: seen.append(done))
    assert (sent.upload_id, seen[0]) == (begun.id, 1 << 17)
    request = {"name": "x", "kind": "any", "source": {"upload_id": sent.upload_id, "sha256": sent.sha256}}
    client.datasets.add(DatasetRequest.model_validate(request))
    ready = client.datasets.wait("x", timeout_s=30)
    assert ready.state is DatasetState.READY
    assert contents(Path(ready.folder)) == contents(tmp_path / "data")
    changed = client.datasets.change("x", DatasetPatch.model_validate({"description": "two"}), revision=ready.revision)
    assert (changed.description, changed.revision) == ("two", ready.revision + 1)
    assert [dataset.name for dataset in client.datasets.list(states=[DatasetState.READY])] == ["x"]
    client.datasets.remove("x")
    assert client.datasets.list() == ()


def test_an_upload_that_is_too_large_is_told_before_a_byte_is_sent(client: Client, tmp_path: Path) -> None:
    with pytest.raises(TooLarge, match="data root"):
        client.datasets.upload(source_of(a_folder(tmp_path / "data", 2 << 20)))
    assert client.datasets.uploads().uploads == ()


def test_the_commands_add_show_share_and_remove(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLIANT_URL", f"http://{server.address}")
    monkeypatch.setenv("PLIANT_TOKEN", "the-token")

    def run(*args: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(("data", *args))
        said = capsys.readouterr()
        assert (ended.value.code or 0) == code, said
        return said.out if code == 0 else said.err

    assert "no data sets yet" in run("list")
    table = tmp_path / "houses.csv"
    table.write_text("rooms,price\n" + "".join(f"{i},{i * 1.5}\n" for i in range(20)))
    assert "houses is ready" in run("add", str(table), "--validation", "25", "--test", "0", "--seed", "3")
    shown = run("show", "houses")
    assert "15 train, 5 validation" in shown
    assert "rooms" in shown
    assert "ready" in run("list")
    assert "shared with ann, everybody" in run("share", "houses", "ann", "*")
    assert "shared with ann" in run("share", "houses", "*", "--remove")
    assert "already" in run("add", str(table), code=5)
    assert "give width and height" in run("add", str(table), "--kind", "images", "--size", "big", code=2)
    assert "say where the data are" in run("add", code=2)
    assert "failed: source" in run("add", str(table), "--kind", "images", "--name", "pictures", code=1)
    assert '"name": "houses"' in run("list", "--json")
    for name in ("houses", "pictures"):
        assert f"{name} is removed" in run("remove", name)
    assert "list" in run("show", "houses", code=3)
