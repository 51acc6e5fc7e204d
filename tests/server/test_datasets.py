"""Data sets and uploads over a real server, with real processes that import."""

import hashlib
import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from pliant.control.jobs.kind import TaskStart
from pliant.control.jobs.orders import start_order
from pliant.core.access import Role
from pliant.core.plan import Placement
from pliant.files.digest import content_digest

Served = Any
Eventually = Callable[..., Any]
PATIENCE_S = 40.0
"""For a busy machine; an import takes half a second."""


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def sent(http: httpx.Client, content: bytes, **more: object) -> str:
    """Upload something in chunks; return its id."""
    upload = http.post("/uploads", json={"num_bytes": len(content), **more}).json()
    for offset in range(0, len(content), 1 << 16):
        chunk = content[offset : offset + (1 << 16)]
        answer = http.put(f"/uploads/{upload['id']}", params={"offset": offset}, content=chunk)
        assert answer.status_code == 200, answer.text
    return str(upload["id"])


def imported(server: Served, eventually: Eventually, http: httpx.Client | None = None, **request: object) -> Any:
    """Add a data set and wait for the end of its import."""
    http = http or server.http
    made = http.post("/datasets", json=request)
    assert made.status_code == 201, made.text
    assert made.json()["state"] == "importing"
    return eventually(lambda: finished(http, str(request["name"])), PATIENCE_S)


def finished(http: httpx.Client, name: str) -> Any:
    found = http.get(f"/datasets/{name}").json()
    return found if found["state"] != "importing" else None


@pytest.fixture
def user(server: Served) -> Iterator[httpx.Client]:
    with closing(server.client_of("ada")) as http:
        yield http


def test_an_upload_becomes_a_data_set_that_a_job_reads_and_that_cannot_be_removed_meanwhile(
    server: Served, eventually: Eventually
) -> None:
    content = zipped({"train/a.txt": b"one", "val/b.txt": b"two", "readme": b"!"})
    upload_id = sent(server.http, content, sha256=hashlib.sha256(content).hexdigest())
    found = imported(server, eventually, name="letters", kind="any", source={"upload_id": upload_id})
    assert (found["state"], found["reason"]) == ("ready", "")
    folder = Path(found["folder"])
    assert folder == server.home / "datasets" / "letters"
    assert found["content"]["splits"] == {"train": 1, "validation": 1}
    assert (found["content"]["num_files"], found["content"]["num_bytes"]) == (3, 7)
    assert (folder / "train" / "a.txt").read_bytes() == b"one"
    eventually(lambda: server.http.get(f"/uploads/{upload_id}").status_code == 404)  # after it is ready
    assert list((server.home / "incoming").iterdir()) == []

    job = server.submit(dataset="letters").json()
    assert job["spec"]["data_dir"] == str(folder)
    server.tick()
    detail = server.control.queries.detail("job-1")
    start = TaskStart(placement=Placement(node_id=detail.tasks[0].node_id, slots=detail.tasks[0].slots))
    order = start_order(detail.job, detail.tasks[0], server.control.settings, start)
    names = ("PLIANT_DATASET", "DATA_DIR", "TRAIN_DATA_DIR", "VALIDATION_DATA_DIR", "VAL_DATA_DIR", "TEST_DATA_DIR")
    assert [order.env.get(name) for name in names] == [
        "letters",
        str(folder),
        str(folder / "train"),
        str(folder / "val"),
        str(folder / "val"),
        None,
    ]
    assert str(folder) in order.confinement.reads
    around = replace(detail.job, spec=replace(detail.job.spec, data_dir=str(server.home)))
    around_order = start_order(around, detail.tasks[0], server.control.settings, start)
    assert str(server.home) not in around_order.confinement.reads, "its results, and the server's secrets, lie in there"
    refused = server.http.delete("/datasets/letters")
    assert refused.status_code == 409
    assert "in use by job-1" in refused.json()["detail"]
    assert folder.is_dir()
    server.http.post("/jobs/job-1/stop")
    server.tick()
    server.tick(2)
    assert server.http.delete("/datasets/letters").status_code == 204
    assert not folder.exists()
    assert server.http.get("/datasets/letters").status_code == 404


def test_files_and_folders_of_a_managed_data_set_are_read_only(server: Served, eventually: Eventually) -> None:
    upload_id = sent(server.http, zipped({"a/b.txt": b"one"}))
    folder = Path(imported(server, eventually, name="one", kind="any", source={"upload_id": upload_id})["folder"])
    modes = [path.stat().st_mode & 0o777 for path in (folder, folder / "a", folder / "a" / "b.txt")]
    assert modes == [0o555, 0o555, 0o444]


def test_a_data_set_that_cannot_be_used_is_told_with_what_else_is_wrong(
    server: Served, user: httpx.Client, eventually: Eventually
) -> None:
    (server.home / "data" / "mine").mkdir()
    imported(server, eventually, name="hidden", kind="any", source={"path": "mine"})
    with closing(server.client_of("ada")) as http:
        body = {"job": (None, json.dumps({"script": "nowhere.py", "dataset": "hidden"}))}
        answer = http.post("/jobs", files={**body, "code": ("c.tar.gz", _code())})
    assert answer.status_code == 422
    assert {problem["field"] for problem in answer.json()["problems"]} == {"script", "dataset"}
    assert "there is no data set 'hidden'" in answer.text
    both = server.submit(dataset="hidden", data_dir="/tmp")
    assert "data_dir and dataset both" in both.text
    failed = imported(server, eventually, name="empty", kind="images", source={"path": "mine"})
    assert (failed["state"], "holds no pictures" in failed["reason"]) == ("failed", True)
    refused = server.submit(dataset="empty")
    assert "the import of the data set 'empty' failed" in refused.text
    assert not (server.home / "datasets" / "empty").exists()
    everything = server.submit(dataset="empty", queue="nowhere", environment="nothing").json()["problems"]
    assert {problem["field"] for problem in everything} == {"dataset", "queue", "environment"}


def test_an_import_that_failed_does_not_keep_its_name_from_who_made_it(
    server: Served, user: httpx.Client, eventually: Eventually
) -> None:
    (server.home / "data" / "again").mkdir()
    assert imported(server, eventually, name="again", kind="images", source={"path": "again"})["state"] == "failed"
    with closing(server.client_of("ada")) as http:
        taken = http.post("/datasets", json={"name": "again", "kind": "any", "source": {"path": "again"}})
    assert taken.status_code == 409
    assert imported(server, eventually, name="again", kind="any", source={"path": "again"})["state"] == "ready"
    ready = server.http.post("/datasets", json={"name": "again", "kind": "any", "source": {"path": "again"}})
    assert ready.status_code == 409


def _code() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("train.py"))
    return out.getvalue()


def test_a_chunk_that_begins_elsewhere_is_told_where_to_go_on(server: Served) -> None:
    upload = server.http.post("/uploads", json={"num_bytes": 10}).json()
    path = f"/uploads/{upload['id']}"
    digest = content_digest(hashlib.sha256(b"01234").digest())
    put = server.http.put(path, params={"offset": 0}, content=b"01234", headers={"Content-Digest": digest})
    assert (put.status_code, put.json()["offset"], put.headers["Upload-Offset"]) == (200, 5, "5")
    again = server.http.put(path, params={"offset": 0}, content=b"01234")
    assert (again.status_code, again.headers["Upload-Offset"]) == (409, "5")
    assert "begins at 5, not at 0" in again.json()["detail"]
    wrong = server.http.put(path, params={"offset": 5}, content=b"56789", headers={"Content-Digest": digest})
    assert wrong.status_code == 422
    assert "send it again" in wrong.text
    assert server.http.head(path).headers["Upload-Offset"] == "5"
    over = server.http.put(path, params={"offset": 5}, content=b"567890")
    assert over.status_code == 413
    early = server.http.post("/datasets", json={"name": "x", "kind": "any", "source": {"upload_id": upload["id"]}})
    assert (early.status_code, "5 of its 10 bytes" in early.text) == (409, True)
    assert server.http.get("/datasets/x").status_code == 404
    assert server.http.delete(path).status_code == 204
    assert server.http.get(path).status_code == 404


def test_a_connection_that_is_cut_in_a_chunk_loses_nothing_that_was_acknowledged(
    server: Served, eventually: Eventually
) -> None:
    content = zipped({"a": os.urandom(100_000)})
    upload = server.http.post("/uploads", json={"num_bytes": len(content)}).json()
    first = content[: 1 << 16]
    server.http.put(f"/uploads/{upload['id']}", params={"offset": 0}, content=first)

    def half() -> Iterator[bytes]:
        yield content[1 << 16 : 80_000]
        raise ConnectionAbortedError

    headers = {"Content-Length": str(len(content) - len(first))}
    with closing(server.client({"Authorization": "Bearer the-token"})) as http:  # noqa: SIM117
        with pytest.raises(ConnectionAbortedError):
            http.put(f"/uploads/{upload['id']}", params={"offset": 1 << 16}, content=half(), headers=headers)
    assert server.http.get(f"/uploads/{upload['id']}").json()["offset"] == 1 << 16
    rest = server.http.put(f"/uploads/{upload['id']}", params={"offset": 1 << 16}, content=content[1 << 16 :])
    assert rest.json()["offset"] == len(content)
    found = imported(server, eventually, name="cut", kind="any", source={"upload_id": upload["id"]})
    assert (found["state"], found["content"]["num_bytes"]) == ("ready", 100_000)


def test_an_upload_with_another_checksum_is_not_imported_and_stays(server: Served, eventually: Eventually) -> None:
    upload_id = sent(server.http, zipped({"a": b"one"}))
    source = {"upload_id": upload_id, "sha256": "0" * 64}
    found = imported(server, eventually, name="wrong", kind="any", source=source)
    assert (found["state"], "not 000" in found["reason"]) == ("failed", True)
    eventually(lambda: server.http.get(f"/uploads/{upload_id}").json()["taken_by"] == "")
    assert [path.name for path in (server.home / "datasets").iterdir()] == []


def test_limits_of_uploads_are_told(server: Served) -> None:
    refused = server.http.post("/uploads", json={"num_bytes": (1 << 20) + 1})
    assert (refused.status_code, "data root" in refused.text) == (413, True)
    for _ in range(3):
        assert server.http.post("/uploads", json={"num_bytes": 5}).status_code == 201
    many = server.http.post("/uploads", json={"num_bytes": 5})
    assert (many.status_code, "3 open uploads" in many.text) == (409, True)
    ids = [upload["id"] for upload in server.http.get("/uploads").json()["uploads"]]
    large = server.http.put(f"/uploads/{ids[0]}", params={"offset": 0}, content=bytes((1 << 16) + 1))
    assert large.status_code == 413
    server.clock.advance(86_401)
    assert server.http.get(f"/uploads/{ids[0]}").status_code == 404
    assert server.http.get("/uploads").json()["uploads"] == []
    assert server.http.post("/uploads", json={"num_bytes": 5}).status_code == 201
    assert len(list((server.home / "incoming").iterdir())) == 1


def test_a_path_of_the_data_root_is_used_in_place_if_nothing_leads_out_of_it(
    server: Served, eventually: Eventually, tmp_path: Path
) -> None:
    root = server.home / "data"
    (root / "flowers" / "train").mkdir(parents=True)
    (root / "flowers" / "train" / "a").write_bytes(b"x")
    found = imported(server, eventually, name="flowers", kind="any", source={"path": "flowers"})
    assert (found["in_place"], found["folder"]) == (True, str(root / "flowers"))
    assert server.http.delete("/datasets/flowers").status_code == 204
    assert (root / "flowers" / "train" / "a").read_bytes() == b"x"
    (root / "out").symlink_to(tmp_path)
    for path in ("../x", "/etc", "a/../../x", "nothing", "out"):
        refused = server.http.post("/datasets", json={"name": "bad", "kind": "any", "source": {"path": path}})
        assert (refused.status_code, refused.json()["problems"][0]["field"]) == (422, "source.path"), path
    (root / "flowers" / "train" / "b").symlink_to("/etc/passwd")
    failed = imported(server, eventually, name="linked", kind="any", source={"path": "flowers"})
    assert (failed["state"], "train/b" in failed["reason"]) == ("failed", True)


def test_a_path_that_cannot_be_read_is_refused_without_the_place_of_the_data_root(server: Served) -> None:
    (server.home / "data" / "ring").symlink_to("ring")
    for path, why in (("x" * 300, "File name too long"), ("ring", "Too many levels of symbolic links")):
        refused = server.http.post("/datasets", json={"name": "bad", "kind": "any", "source": {"path": path}})

        assert f"cannot be read ({why}); check the path" in refused.text
        assert str(server.home) not in refused.text


def test_people_see_their_own_data_sets_and_those_that_are_shared(
    server: Served, user: httpx.Client, eventually: Eventually
) -> None:
    (server.home / "data" / "mine").mkdir()
    source = {"path": "mine"}
    imported(server, eventually, http=user, name="adas", kind="any", source=source)
    with closing(server.client_of("bob")) as bob, closing(server.client_of("op", Role.OPERATOR)) as operator:
        assert bob.get("/datasets/adas").status_code == 404
        assert bob.get("/datasets").json() == {"datasets": [], "next": None}
        assert operator.get("/datasets/adas").status_code == 200
        shown = user.get("/datasets/adas")
        tag = shown.headers["ETag"]
        shared = user.patch("/datasets/adas", json={"shared_with": ["bob"]}, headers={"If-Match": tag})
        assert (shared.status_code, shared.json()["shared_with"]) == (200, ["bob"])
        assert [found["name"] for found in bob.get("/datasets").json()["datasets"]] == ["adas"]
        assert bob.patch("/datasets/adas", json={"description": "mine"}).status_code == 403
        assert bob.delete("/datasets/adas").status_code == 403
        stale = user.patch("/datasets/adas", json={"description": "new"}, headers={"If-Match": tag})
        assert stale.status_code == 412
        assert user.delete("/datasets/adas", headers={"If-Match": tag}).status_code == 412
        taken = bob.post("/datasets", json={"name": "adas", "kind": "any", "source": source})
        assert taken.status_code == 409
        upload = user.post("/uploads", json={"num_bytes": 5}).json()
        assert bob.get(f"/uploads/{upload['id']}").status_code == 404
        assert bob.delete(f"/uploads/{upload['id']}").status_code == 404


def test_an_import_is_stopped_and_leaves_nothing(server: Served, eventually: Eventually) -> None:
    root = server.home / "data" / "many"
    picture = io.BytesIO()
    Image.new("RGB", (600, 600), (9, 8, 7)).save(picture, format="PNG")
    for number in range(3000):  # more than are written while the test is held up
        path = root / f"class-{number % 3}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture.getvalue())
    request = {"name": "slow", "kind": "images", "source": {"path": "many"}, "images": {"width": 900, "height": 900}}
    assert server.http.post("/datasets", json=request).status_code == 201

    def writing() -> bool:
        progress = server.http.get("/datasets/slow").json()["progress"]
        return bool(progress and progress["phase"] == "writing pictures" and progress["files_done"] > 0)

    eventually(writing, PATIENCE_S)
    refused = server.submit(dataset="slow")
    assert "still being imported" in refused.text
    assert server.http.delete("/datasets/slow").status_code == 409
    stopped = server.http.post("/datasets/slow/stop")
    assert (stopped.status_code, stopped.json()["state"]) == (200, "stopped")
    assert list((server.home / "datasets").iterdir()) == []
    assert server.http.post("/datasets/slow/stop").status_code == 200
    assert "was stopped" in server.submit(dataset="slow").text
    assert server.http.delete("/datasets/slow").status_code == 204


def test_every_wrong_field_is_told_at_once(server: Served) -> None:
    body = {
        "name": "../x",
        "kind": "images",
        "source": {},
        "split": {"validation_percent": 60, "test_percent": 40},
        "images": {"width": 0},
        "more": 1,
    }
    answer = server.http.post("/datasets", json=body)
    assert answer.status_code == 422
    fields = {problem["field"] for problem in answer.json()["problems"]}
    assert {"name", "source", "split", "images.width", "more"} <= fields
    for path in ("/datasets/none", "/datasets/none/stop", "/uploads/none"):
        method = "POST" if path.endswith("stop") else "GET"
        assert server.http.request(method, path).status_code == 404
    assert server.http.patch("/datasets/none", json={}).status_code == 422


def test_many_chunks_at_one_place_count_once(server: Served) -> None:
    upload = server.http.post("/uploads", json={"num_bytes": 60_000}).json()
    answers: list[int] = []

    def put() -> None:
        with closing(server.client({"Authorization": "Bearer the-token"})) as http:
            answer = http.put(f"/uploads/{upload['id']}", params={"offset": 0}, content=bytes(30_000))
            answers.append(answer.status_code)

    threads = [threading.Thread(target=put) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 409, 409, 409, 409, 409]
    assert server.http.get(f"/uploads/{upload['id']}").json()["offset"] == 30_000


def test_names_that_no_data_set_can_have_are_not_found(server: Served) -> None:
    assert server.http.get("/datasets/%00").status_code == server.http.delete("/datasets/%00").status_code == 422
    for name in ("..", "%2e%2e%2fx", "n" * 500, "%F0%9F%98%80"):
        assert server.http.get(f"/datasets/{name}").status_code == 404, name
        assert server.http.delete(f"/datasets/{name}").status_code in (404, 405), name
    assert server.http.get("/datasets", params={"after": "\0"}).status_code == 422
    assert "no data set 'a\\x00b'" in server.submit(dataset="a\0b").json()["problems"][0]["message"]


def test_a_data_set_is_looked_at_as_it_was_imported(server: Served, eventually: Eventually, user: httpx.Client) -> None:
    for part, num in (("train", 3), ("val", 1)):
        for number in range(num):
            path = server.home / "data" / "birds" / part / "owl" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 10)).save(path)
    imported(server, eventually, user, name="birds", kind="images", source={"path": "birds"})
    found = user.get("/datasets/birds/preview", params={"limit": 2}).json()
    assert (found["kind"], found["splits"], found["split"]) == ("images", ["train", "validation"], "train")
    assert [(one["label"], one["width"]) for one in found["images"]] == [("owl", 20), ("owl", 20)]
    assert len(user.get("/datasets/birds/preview?split=validation").json()["images"]) == 1
    assert user.get("/datasets/birds/preview?split=other").status_code == 422
    with server.client_of("ben") as ben:
        assert ben.get("/datasets/birds/preview").status_code == 404
    assert user.delete("/datasets/birds").status_code == 204
    assert list((server.home / "datasets").iterdir()) == []


def test_a_preview_is_there_after_the_server_was_started_again(server: Served, eventually: Eventually) -> None:
    (server.home / "data" / "t").mkdir()
    (server.home / "data" / "t" / "t.csv").write_text("a,b\n1,2\n")
    imported(server, eventually, name="t", kind="any", source={"path": "t"})
    server.datasets.start()
    found = server.http.get("/datasets/t/preview").json()
    assert (found["kind"], found["columns"], found["rows"]) == ("table", ["a", "b"], [["1", "2"]])
