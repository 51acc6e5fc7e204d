"""Folders are hidden in every way of writing them, and nothing else of an answer changes."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from pliant.server.middleware.places import HiddenPlaces

HOME = Path("/home/ada/.pliant")
NAMES = st.text(st.sampled_from("ab_é\"\\'"), min_size=1, max_size=8)


def hidden(body: bytes, folder: Path = HOME, *, status: int = 200, kind: bytes = b"application/json") -> bytes:
    """Return what becomes of an answer to somebody who does not run the server."""
    sent: list[Message] = []

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    asyncio.run(HiddenPlaces(app, folders=[folder])(scope, receive, send))
    start, end = sent
    assert int(dict(start["headers"])[b"content-length"]) == len(end["body"])
    return bytes(end["body"])


@pytest.mark.parametrize(
    ("told", "left"),
    [
        ("in /home/ada/.pliant/jobs/job-1: no", "in jobs/job-1: no"),
        ("in /home/ada/.pliant: no", "in .: no"),
        ("'/home/ada/.pliant/.hidden'", "'.hidden'"),
        ("/home/ada/.pliant2/jobs and /home/ada/.pliant-old", "/home/ada/.pliant2/jobs and /home/ada/.pliant-old"),
        ("/srv/home/ada/.pliantly", "/srv/home/ada/.pliantly"),
        ("/etc/passwd", "/etc/passwd"),
    ],
)
def test_what_is_in_the_folder_is_told_by_its_place_there(told: str, left: str) -> None:
    assert hidden(told.encode(), kind=b"text/plain", status=404) == left.encode()
    assert hidden(json.dumps({"at": told}).encode()) == json.dumps({"at": left}).encode()


@given(NAMES, NAMES)
def test_a_folder_of_any_name_is_hidden_in_json_that_stays_json(name: str, inside: str) -> None:
    folder = Path("/srv") / name
    for ensure_ascii in (True, False):
        body = json.dumps({"at": f"{folder}/x{inside}", "is": str(folder)}, ensure_ascii=ensure_ascii)
        assert json.loads(hidden(body.encode(), folder)) == {"at": f"x{inside}", "is": "."}


@given(st.binary(max_size=200))
def test_what_holds_no_place_stays_as_it_is(body: bytes) -> None:
    assert hidden(body) == body


def test_files_of_people_pass_as_they_are() -> None:
    log = b"loading /home/ada/.pliant/jobs/job-1/code"
    assert hidden(log, kind=b"text/plain; charset=utf-8") == log
    assert hidden(log, kind=b"text/plain; charset=utf-8", status=404) == b"loading jobs/job-1/code"


@pytest.mark.parametrize("status", [500, 503, 507])
def test_what_fails_at_the_servers_side_tells_no_place_and_no_url_at_all(status: int) -> None:
    told = b"the disk of /srv/data/x is full; postgresql://pliant@db:5432/pool?a=b; 3 of 4/5 left; sqlite:////a/b.db"
    assert hidden(told, status=status) == (b"the disk of [left out] is full; [left out]; 3 of 4/5 left; [left out]")
