"""Long answers of JSON are packed for who takes it; streams, files, changes and short ones are left as they are."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.plain_http import NO_TLS
from tests.server.played import Played

from pliant.server.middleware.packing import MIN_BYTES, PackedAnswers

LONG = {"values": list(range(MIN_BYTES))}
VERY_LONG = {"values": list(range(40 * MIN_BYTES))}
DISPOSITION = {"Content-Disposition": "attachment; filename=values.json"}


def answering(make: Callable[[], Response]) -> TestClient:
    async def answer(_: Request) -> Response:
        return make()

    return TestClient(PackedAnswers(Starlette(routes=[Route("/", answer, methods=["GET", "POST"])])))


def ask(client: TestClient, method: str = "GET", takes: str = "gzip, br") -> Any:
    return client.request(method, "/", headers={"Accept-Encoding": takes})


@pytest.mark.parametrize("values", [LONG, VERY_LONG], ids=["long", "very long"])
def test_a_long_answer_is_packed_and_says_so(values: dict[str, Any]) -> None:
    answer = ask(answering(lambda: JSONResponse(values)))

    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.json() == values
    assert int(answer.headers["content-length"]) < len(answer.content) / 2


@pytest.mark.parametrize("takes", ["identity", "br", "gzip;q=0", ""])
def test_who_does_not_take_it_gets_it_as_it_is(takes: str) -> None:
    answer = ask(answering(lambda: JSONResponse(LONG)), takes=takes)

    assert "content-encoding" not in answer.headers
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.json() == LONG


async def _pieces() -> Any:
    for _ in range(3):
        yield b" " * MIN_BYTES


@pytest.mark.parametrize(
    ("method", "make"),
    [
        ("POST", lambda: JSONResponse(LONG)),
        ("GET", lambda: JSONResponse({"short": 1})),
        ("GET", lambda: JSONResponse(LONG, status_code=404)),
        ("GET", lambda: JSONResponse(LONG, headers=DISPOSITION)),
        ("GET", lambda: Response(b" " * MIN_BYTES, media_type="text/plain")),
        ("GET", lambda: StreamingResponse(_pieces(), media_type="application/json")),
        ("GET", lambda: StreamingResponse(_pieces(), media_type="text/event-stream")),
    ],
    ids=["a change", "short", "an error", "a file", "a text", "in pieces", "events"],
)
def test_what_is_left_as_it_is(method: str, make: Callable[[], Response]) -> None:
    answer = ask(answering(make), method)

    assert answer.content == ask(answering(make), method, "identity").content
    assert "content-encoding" not in answer.headers


def test_pieces_of_a_known_length_come_as_they_are() -> None:
    length = {"Content-Length": str(3 * MIN_BYTES)}
    answer = ask(answering(lambda: StreamingResponse(_pieces(), headers=length, media_type="application/json")))

    assert "content-encoding" not in answer.headers
    assert answer.content == b" " * 3 * MIN_BYTES


def test_what_is_packed_already_is_not_packed_again() -> None:
    packed = gzip.compress(b" " * 10_000_000)
    assert len(packed) >= MIN_BYTES
    headers = {"Content-Encoding": "gzip"}
    answer = ask(answering(lambda: Response(packed, headers=headers, media_type="application/json")))

    assert answer.headers["content-length"] == str(len(packed))


def test_the_server_packs_its_answers(tmp_path: Path) -> None:
    pool = Played(tmp_path)
    try:
        with httpx.Client(base_url=pool.url, verify=NO_TLS, timeout=30) as client:
            packed = client.get("/openapi.json", headers={"Accept-Encoding": "gzip"})
            plain = client.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    finally:
        pool.close()

    assert packed.headers["content-encoding"] == "gzip"
    assert packed.json() == plain.json()
    assert 5 * int(packed.headers["content-length"]) < int(plain.headers["content-length"])
