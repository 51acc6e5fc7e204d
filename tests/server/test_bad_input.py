"""What people send wrongly, and what goes wrong under it: a clear answer, nothing half kept, and it works again."""

import io
import json
import random
import resource
import socket
import struct
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from pydantic import BaseModel
from tests.server.conftest import wait_for
from tests.server.world import NAME, code, makes

from pliant.core.access import Role
from pliant.server.middleware.limits import MAX_BODY_BYTES, is_upload
from pliant.server.middleware.problems import MEDIA_TYPE

Served = Any
Eventually = Callable[..., Any]
IBM: Final = "/platform/rest/deeplearning/v1"
OPEN_ENDED: Final = frozenset({"accelerators", "batchSizes", "validation", "transfer"})


@pytest.fixture(scope="module")
def server(module_server: Served) -> Served:
    for make in makes(module_server):
        made = make.send(module_server.http)
        assert made.status_code == 201, made.text
    checked(module_server)
    return module_server


def checked(server: Served) -> None:
    """Wait until nothing of what was made is still being looked at in the background."""
    wait_for(lambda: server.http.get(f"/datasets/{NAME}").json()["state"] == "ready", 40.0)
    wait_for(lambda: server.http.get(f"/environments/{NAME}").json()["state"] != "building", 40.0)


def ibm(server: Served, method: str, path: str, **more: Any) -> httpx.Response:
    answer: httpx.Response = server.http.request(method, f"http://{server.address}{IBM}{path}", **more)
    return answer


# A name that exists


@pytest.mark.parametrize("number", range(8))
def test_a_name_that_exists_is_refused_and_what_has_it_stays(server: Served, number: int) -> None:
    make = makes(server)[number]
    before = server.http.get(make.one).json()
    again = make.send(server.http)
    assert (again.status_code, again.json()["title"]) == (409, "Conflict"), make.kind
    assert make.body["name"] in again.json()["detail"]
    assert server.http.get(make.one).json() == before


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/datasets", {"name": NAME, "datasourcetype": "OTHER", "trainpath": "digits"}),
        ("/models", {"name": NAME, "templatename": NAME}),
    ],
)
def test_a_name_that_exists_is_refused_in_ibms_form(server: Served, path: str, body: Mapping[str, Any]) -> None:
    again = ibm(server, "POST", path, json=body)
    assert (again.status_code, again.headers["content-type"]) == (400, "text/plain; charset=utf-8"), again.text
    assert NAME in again.text
    assert not again.text.startswith("{")


def test_a_data_set_that_an_unfinished_job_uses_stays(server: Served) -> None:
    before = server.http.get(f"/datasets/{NAME}").json()
    job = server.submit(dataset=NAME).json()["id"]
    refused = server.http.delete(f"/datasets/{NAME}")
    assert (refused.status_code, job in refused.json()["detail"]) == (409, True)
    of_ibm = ibm(server, "DELETE", f"/datasets/{NAME}")
    assert (of_ibm.status_code, job.replace("job-", "wmla-") in of_ibm.text) == (400, True)
    assert server.http.get(f"/datasets/{NAME}").json() == before
    server.http.post(f"/jobs/{job}/stop")
    server.tick()
    assert server.http.delete(f"/datasets/{NAME}").status_code == 204
    (again,) = [make for make in makes(server) if make.kind == "data set"]
    assert again.send(server.http).status_code == 201
    checked(server)


# Bodies


class Body:
    """What a route takes."""

    def __init__(self, method: str, path: str, content: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
        self.method = method
        self.path = path.replace("{name}", "ada" if path.startswith("/v1/users") else NAME).replace("{job_id}", "job-1")
        self.is_json = "application/json" in content
        described = content["application/json" if self.is_json else "multipart/form-data"]["schema"]
        described = schemas.get(described.get("$ref", "").rpartition("/")[2], described)
        self.part = ""
        if not self.is_json:
            self.part, described = next((n, p) for n, p in described["properties"].items() if "properties" in p)
        self.fields = set(described["properties"])
        self.required = set(described.get("required", ()))

    def send(self, server: Served, body: object) -> httpx.Response:
        """Send a body, in a form if need be."""
        url = f"http://{server.address}{self.path}"
        if self.is_json:
            answer: httpx.Response = server.http.request(self.method, url, json=body)
            return answer
        files = {self.part: (None, json.dumps(body)), "code": ("c", code())}
        found: httpx.Response = server.http.request(self.method, url, files=files)
        return found


def bodies(server: Served) -> list[Body]:
    """Return every body that a route takes, but the bytes of a chunk, and what is passed on to an endpoint as it is."""
    server.submit()
    description = server.http.get(f"http://{server.address}/openapi.json").json()
    return [
        Body(method.upper(), path, operation["requestBody"]["content"], description["components"]["schemas"])
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
        if "requestBody" in operation and "application/octet-stream" not in operation["requestBody"]["content"]
        if operation["requestBody"]["content"] != {"application/json": {"schema": {}}}
    ]


REFUSED = (422, MEDIA_TYPE)
FORESEEN = (200, "application/json")
"""How a preview says what would be wrong: in its answer, field by field as well."""


def how_told(path: str) -> tuple[int, str]:
    """Return the status and the media type with which a route tells what is wrong with a body."""
    return FORESEEN if path.endswith("/preview") else REFUSED


def named(answer: httpx.Response) -> set[str]:
    assert (answer.status_code, answer.headers["content-type"]) == how_told(answer.url.path), answer.text
    problems = answer.json()["problems"]
    assert all(len(problem["message"]) > 5 for problem in problems)
    return {problem["field"].partition(".")[0] for problem in problems}


def test_every_body_is_told_all_its_errors_at_once(server: Served) -> None:
    found = bodies(server)
    assert len(found) >= 20
    for body in found:
        every_wrong: dict[str, object] = {name: [[]] for name in body.fields} | {"nonsense": 1}
        assert named(body.send(server, every_wrong)) == body.fields | {"nonsense"}, body.path
        missing = named(body.send(server, {"nonsense": 1}))
        assert missing == body.required | {"nonsense"}, body.path
        nothings: tuple[object, ...] = (None, [], "x", 7)
        for nothing in nothings:
            assert named(body.send(server, nothing)) == {""}, body.path


def test_what_does_not_fit_together_and_what_is_wrong_with_the_code_is_told_with_the_rest(server: Served) -> None:
    clashing = {"min_tasks": 3, "max_tasks": 2, "data_dir": "/a", "dataset": "b", "max_restarts": 7}
    said = server.submit(**clashing).json()["detail"]
    expected = ("min_tasks 3 is above", "data_dir and dataset both", "max_restarts is for")
    assert [words for words in expected if words not in said] == []
    for path, part in (("/jobs", "job"), ("/templates", "template")):
        files = {part: (None, '{"nonsense": 1}'), "code": ("c", b"no archive")}
        assert {"nonsense", "code"} <= named(server.http.post(path, files=files)), path


def test_what_is_no_json_or_of_another_type_is_told(server: Served) -> None:
    for body in bodies(server):
        url = f"http://{server.address}{body.path}"
        for content in (b"{", b"", b"\xff\xfe", b'{"a":' * 20_000):
            for media_type in (
                "application/json",
                "text/plain",
                "multipart/form-data",
                "multipart/form-data; boundary=x",
            ):
                answer = server.http.request(body.method, url, content=content, headers={"Content-Type": media_type})
                assert (answer.status_code, answer.headers["content-type"]) == how_told(body.path), (
                    body.path,
                    answer.text,
                )
                assert answer.json()["problems"], body.path


def test_ibms_bodies_are_told_all_their_errors_at_once_in_ibms_form(server: Served) -> None:
    found = [
        (method, route.path, kind.model_fields)
        for route in iter_route_contexts(server.app.routes)
        if route.path is not None and route.path.startswith(IBM)
        for taken in route.dependant.body_params
        for kind in [taken.field_info.annotation]
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for method in route.methods or ()
    ]
    assert len(found) >= 6
    for method, path, fields in found:
        url = f"http://{server.address}{path.replace('{model}', NAME).replace('{template}', NAME)}"
        typed = [name for name, field in fields.items() if field.annotation is not Any and name not in OPEN_ENDED]
        answer = server.http.request(method, url, json={name: [[]] for name in fields})
        assert (answer.status_code, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8"), path
        assert [name for name in typed if name not in answer.text] == [], path
        answer = server.http.request(method, url, content=b"{", headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (400, 400), path


def test_bodies_over_the_limit_are_refused_by_every_route(server: Served) -> None:
    body = bytes(MAX_BODY_BYTES + 1)
    routes = [
        (method, route.path)
        for route in iter_route_contexts(server.app.routes)
        if route.path is not None
        for method in (route.methods or ())
        if method in ("POST", "PUT", "PATCH") and not is_upload(method, route.path)
    ]
    assert len(routes) > 40
    for method, path in routes:
        answer = server.http.request(method, f"http://{server.address}{path}", content=body)
        media_type = MEDIA_TYPE if path.startswith("/v1/") else "text/plain; charset=utf-8"
        assert (answer.status_code, answer.headers["content-type"]) == (413, media_type), path
        assert "1 MiB" in answer.text, path


def test_a_method_that_is_not_possible_is_told_in_the_form_of_the_route(server: Served) -> None:
    ours = server.http.put("/jobs")
    assert (ours.status_code, ours.headers["content-type"]) == (405, MEDIA_TYPE)
    text = ibm(server, "PATCH", "/execs")
    assert (text.status_code, text.headers["content-type"]) == (405, "text/plain; charset=utf-8")
    as_json = ibm(server, "PATCH", "/execs", headers={"Accept": "application/json"})
    assert as_json.json() == {"code": 405, "message": text.text}


def test_headers_without_end_are_refused_and_the_server_goes_on(server: Served) -> None:
    answer = server.http.get("/me", headers={"X-Large": "x" * (1 << 20)})
    assert answer.is_client_error
    assert server.http.get("/me").status_code == 200


# A connection that is cut


def cut(server: Served, path: str, headers: Mapping[str, str], body: bytes, missing: int) -> None:
    """Send a request whose last bytes never come, and reset the connection."""
    method, _, target = path.partition(" ")
    given = {"Host": "x", "Authorization": "Bearer the-token", "Content-Length": str(len(body) + missing), **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    host, _, port = server.address.partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"{method} {target} HTTP/1.1\r\n{head}\r\n".encode() + body)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def form(parts: Mapping[str, bytes]) -> bytes:
    return b"".join(
        f'--cut\r\nContent-Disposition: form-data; name="{name}"; filename="x"\r\n\r\n'.encode() + content + b"\r\n"
        for name, content in parts.items()
    )


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("POST /v1/jobs", {"job": b'{"script": "train.py"}', "code": code()}),
        ("POST /v1/templates", {"template": b'{"name": "cut"}', "code": code()}),
        (f"PUT /v1/templates/{NAME}", {"template": b'{"name": "small"}', "code": code()}),
        (f"POST /v1/models/{NAME}/trainings", {"training": b'{"name": "cut"}', "weights": bytes(1 << 17)}),
        (f"POST {IBM}/execs?args=--exec-start%20PyTorch%20--model-main%20train.py", {"file": code()}),
        (f"POST {IBM}/models/weightfile", {"file": bytes(1 << 17)}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_upload_that_is_cut_leaves_nothing(
    server: Served, eventually: Eventually, path: str, parts: Mapping[str, bytes]
) -> None:
    before = everything(server)
    uploads = server.home / "uploads"
    last = newest(server)
    cut(server, path, {"Content-Type": "multipart/form-data; boundary=cut"}, form(parts), missing=1000)
    entry = eventually(lambda: found if (found := newest(server)).seq > last.seq else None)
    assert (entry.action, entry.status) == (path.partition("?")[0], 503)
    assert not list(uploads.iterdir())
    assert everything(server) == before


def newest(server: Served) -> Any:
    """Return the newest entry of the audit log: a request that is cut has no answer that could be read."""
    return server.store.audit.entries(limit=1)[0]


def everything(server: Served) -> dict[str, Any]:
    """Return all that there is by name."""
    paths = ("/jobs", "/templates", "/models", f"/models/{NAME}/trainings", "/users", "/queues", "/uploads")
    return {path: server.http.get(path).json() for path in paths}


def test_a_chunk_that_is_cut_is_sent_again_from_where_it_began(server: Served, eventually: Eventually) -> None:
    content = random.Random(2).randbytes(50_000)
    upload = server.http.post("/uploads", json={"num_bytes": len(content)}).json()["id"]
    path = f"/uploads/{upload}"
    server.http.put(path, params={"offset": 0}, content=content[:20_000])
    last = newest(server)
    cut(server, f"PUT /v1{path}?offset=20000", {}, content[20_000:40_000], missing=10_000)
    entry = eventually(lambda: found if (found := newest(server)).seq > last.seq else None)
    assert (entry.action, entry.status) == (f"PUT /v1{path}", 503)
    assert server.http.head(path).headers["Upload-Offset"] == "20000"
    rest = server.http.put(path, params={"offset": 20_000}, content=content[20_000:])
    assert (rest.status_code, rest.json()["offset"]) == (200, 50_000)
    kept = [file for file in (server.home / "incoming").rglob("*") if file.is_file() and file.stat().st_size >= 50_000]
    assert [file.read_bytes()[:50_000] for file in kept] == [content]
    assert server.http.delete(path).status_code == 204


# A disk that is full

SMALL: Final = 30_000
"""Bytes that a file may have on a disk that is full; what is sent is larger."""


@contextmanager
def full_disk() -> Iterator[None]:
    """Let the kernel refuse every write beyond a file's first bytes, as it refuses those to a disk without room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def large_code() -> bytes:
    out = io.BytesIO()
    content = random.Random(3).randbytes(4 * SMALL)
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in (("train.py", b"print()"), ("main.py", b"print()"), ("noise", content)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _submit(server: Served) -> httpx.Response:
    files = {"job": (None, '{"script": "train.py"}'), "code": ("c", large_code())}
    return _answer(server.http.post("/jobs", files=files))


def _template(server: Served) -> httpx.Response:
    files = {"template": (None, '{"name": "large"}'), "code": ("c", large_code())}
    return _answer(server.http.post("/templates", files=files))


def _exec(server: Served) -> httpx.Response:
    args = {"args": "--exec-start PyTorch --model-main train.py"}
    return ibm(server, "POST", "/execs", params=args, files={"file": ("c", large_code())})


def _chunk(server: Served) -> httpx.Response:
    uploads = server.http.get("/uploads").json()["uploads"]
    assert uploads, "it was begun while there was room"
    path = f"/uploads/{uploads[0]['id']}"
    assert server.http.get(path).json()["offset"] == 0
    return _answer(server.http.put(path, params={"offset": 0}, content=bytes(2 * SMALL)))


def _backup(server: Served) -> httpx.Response:
    return _answer(server.http.get("/backup", params={"results": False, "data": False}))


def _user(server: Served) -> httpx.Response:
    return _answer(server.http.post("/users", json={"name": "new", "role": "user", "password": "correct horse"}))


def _answer(answer: Any) -> httpx.Response:
    assert isinstance(answer, httpx.Response)
    return answer


@pytest.mark.parametrize("ask", [_submit, _template, _exec, _chunk, _backup, _user], ids=lambda ask: ask.__name__)
def test_a_full_disk_is_told_leaves_nothing_and_hurts_nobody_afterwards(
    server: Served, ask: Callable[[Served], httpx.Response]
) -> None:
    if ask is _chunk:
        server.http.post("/uploads", json={"num_bytes": 2 * SMALL})
    if ask is _backup:
        for number in range(9):  # so that it has more to write than fits
            body = {"name": f"large-{number}", "template": NAME, "description": "x" * 4000}
            assert server.http.post("/models", json=body).status_code == 201
    before, files = everything(server), drafts(server)
    with full_disk():
        answer = ask(server)
        alive = server.http.get("/healthz")
    assert answer.status_code in (503, 507), answer.text
    assert "full" in answer.text
    assert alive.status_code == 200
    assert (everything(server), drafts(server)) == (before, files)
    assert ask(server).is_success
    if ask is _chunk:
        for upload in server.http.get("/uploads").json()["uploads"]:
            assert server.http.delete(f"/uploads/{upload['id']}").status_code == 204


def drafts(server: Served) -> list[str]:
    """Return the files and folders that uploads, backups and submissions are made in."""
    home = server.home
    folders = (home, home / "uploads", home / "jobs", home / "templates")
    return sorted(
        str(path) for folder in folders if folder.is_dir() for path in folder.iterdir() if path.name != "jobs"
    )


def test_two_users_of_a_name_at_once_are_one(server: Served) -> None:
    with closing(server.client_of("root", Role.ADMIN)) as other:
        answers = [
            http.post("/users", json={"name": "twice", "role": "user"}).status_code for http in (server.http, other)
        ]
    assert answers == [201, 409]
