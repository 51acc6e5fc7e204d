"""Whatever route an archive comes in by: one that could do harm is refused, and nothing of it gets onto the disk."""

import gzip
import io
import json
import random
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

Served = Any
Eventually = Callable[..., Any]
IBM: Final = "/platform/rest/deeplearning/v1"
NOT_WATCHED: Final = ("pliant.db", "incoming", "uploads")
"""The database, and the folders that uploads are kept in until they are checked."""


def member(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def tar(*members: tarfile.TarInfo, **options: Any) -> bytes:
    """Return a tar.gz whose first member is a program that could run."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", **options) as archive:
        for name in ("train.py", "main.py"):
            info = tarfile.TarInfo(name)
            info.size = 7
            archive.addfile(info, io.BytesIO(b"print()"))
        for info in members:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return out.getvalue()


def bomb() -> bytes:
    return tar(member("zeros", size=80 << 20))


def broken_off() -> bytes:
    out = io.BytesIO()
    content = random.Random(1).randbytes(20_000)
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = member("train.py", size=len(content))
        archive.addfile(info, io.BytesIO(content))
    return out.getvalue()[:-5000]


ARCHIVES: Final[dict[str, bytes]] = {
    "a symbolic link": tar(member("link", tarfile.SYMTYPE, linkname="/etc/passwd")),
    "a hard link": tar(member("link", tarfile.LNKTYPE, linkname="train.py")),
    "a device": tar(member("null", tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "a disk": tar(member("disk", tarfile.BLKTYPE, devmajor=8)),
    "a pipe": tar(member("pipe", tarfile.FIFOTYPE)),
    "an absolute name": tar(member("/tmp/pliant-evil.py")),
    "a name above": tar(member("../evil.py")),
    "a name above further on": tar(member("a/../../evil.py")),
    "a name twice": tar(member("train.py")),
    "a bomb": bomb(),
    "a name in another encoding": tar(member("größe"), encoding="latin-1", format=tarfile.GNU_FORMAT),
    "one that breaks off": broken_off(),
    "no archive": gzip.compress(b"print()\n" * 100, mtime=0),
}

Answer = tuple[int, str]
"""A status, and what was said."""
Way = Callable[[Served, bytes, Eventually], Answer]


def told(response: httpx.Response) -> Answer:
    return response.status_code, response.text


def as_job(server: Served, archive: bytes, _: Eventually) -> Answer:
    files = {"job": (None, '{"script": "train.py"}'), "code": ("c.tar.gz", archive)}
    return told(server.http.post("/jobs", files=files))


def as_template(server: Served, archive: bytes, _: Eventually) -> Answer:
    files = {"template": (None, '{"name": "new"}'), "code": ("c.tar.gz", archive)}
    return told(server.http.post("/templates", files=files))


def as_template_anew(server: Served, archive: bytes, _: Eventually) -> Answer:
    files = {"template": (None, '{"name": "old"}'), "code": ("c.tar.gz", archive)}
    return told(server.http.put("/templates/old", files=files))


def as_dataset(server: Served, archive: bytes, eventually: Eventually) -> Answer:
    http = server.http
    upload = http.post("/uploads", json={"num_bytes": len(archive)}).json()["id"]
    for offset in range(0, len(archive), 1 << 16):
        http.put(f"/uploads/{upload}", params={"offset": offset}, content=archive[offset : offset + (1 << 16)])
    http.post("/datasets", json={"name": "new", "kind": "any", "source": {"upload_id": upload}})
    found = eventually(lambda: _imported(http), 40.0)
    assert http.delete("/datasets/new").status_code == 204
    eventually(lambda: http.get(f"/uploads/{upload}").json()["taken_by"] == "", 40.0)  # the import has let go of it
    assert http.delete(f"/uploads/{upload}").status_code == 204
    return (422 if found["state"] == "failed" else 201), found["reason"]


def _imported(http: httpx.Client) -> Any:
    found = http.get("/datasets/new").json()
    return found if found["state"] != "importing" else None


def as_exec(server: Served, archive: bytes, _: Eventually) -> Answer:
    args = "--exec-start PyTorch --model-main train.py"
    url = f"http://{server.address}{IBM}/execs"
    return told(server.http.post(url, params={"args": args}, files={"file": ("c.tar.gz", archive)}))


WAYS: Final[tuple[Way, ...]] = (as_job, as_template, as_template_anew, as_dataset, as_exec)


@pytest.fixture(scope="module")
def server(module_server: Served) -> Served:
    files = {"template": (None, '{"name": "old"}'), "code": ("c.tar.gz", tar())}
    assert module_server.http.post("/templates", files=files).status_code == 201
    assert module_server.http.post("/models", json={"name": "old", "template": "old"}).status_code == 201
    return module_server


def listing(home: Path) -> dict[str, tuple[int, int]]:
    """Return every file below and beside the home with its size and when it was changed; folders without."""
    found = {}
    for path in home.parent.rglob("*"):
        if not path.relative_to(home.parent).as_posix().startswith(tuple(f"{home.name}/{n}" for n in NOT_WATCHED)):
            status = path.lstat()
            found[str(path)] = (0, 0) if path.is_dir() else (status.st_size, status.st_mtime_ns)
    return found


@pytest.mark.timeout(180)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_an_archive_that_could_do_harm_is_refused_and_nothing_of_it_is_kept(
    server: Served, way: Way, eventually: Eventually
) -> None:
    way(server, ARCHIVES["no archive"], eventually)  # makes the folders that are made once
    before = listing(server.home)
    for name, archive in ARCHIVES.items():
        status, said = way(server, archive, eventually)
        assert status in (400, 413, 422), (name, status, said)
        assert "archive" in said, (name, said)
        assert listing(server.home) == before, name
    assert list((server.home / "uploads").iterdir()) == []
    assert list((server.home / "incoming").iterdir()) == []
    assert server.http.get("/templates/old").json()["revision"] == 1
    assert not Path("/tmp/pliant-evil.py").exists()


def weights(*names: str, mode: int = 0, content: bytes = b"x") -> bytes:
    """Return a zip that looks like a file of torch's, with these members besides."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
        for name in names:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return out.getvalue()


WEIGHTS: Final[dict[str, bytes]] = {
    "a link": weights("archive/link", mode=0o120777),
    "a pipe": weights("archive/pipe", mode=0o010600),
    "an absolute name": weights("/etc/evil"),
    "a name above": weights("../evil"),
    "a name in another encoding": weights("archive/gr__e").replace(b"gr__e", b"gr\xf6\xdfe"),
    "a bomb": weights("archive/data/0", content=bytes(80 << 20)),
    "one that breaks off": weights("archive/data/0")[:-10],
    "a tar": tar(),
    "no archive": b"0123456789" * 10,
}


def test_weights_that_torch_has_not_written_are_refused_and_not_kept(server: Served) -> None:
    before = listing(server.home)
    for name, content in WEIGHTS.items():
        training = {"training": (None, json.dumps({"name": "new"})), "weights": ("w.pt", content)}
        started = server.http.post("/models/old/trainings", files=training)
        kept = server.http.post(f"http://{server.address}{IBM}/models/weightfile", files={"file": ("w.pt", content)})
        assert (started.status_code, kept.status_code) in ((422, 400), (413, 413)), (name, started.text, kept.text)
        assert "weights" in started.text, name
        assert listing(server.home) == before, name
    with closing(server.client_of("ada")) as ada:
        assert ada.get("/models/old/trainings/new").status_code == 404
    assert list((server.home / "uploads").iterdir()) == []
