"""The program that asks the endpoint: `python -m examples.serve_demo.load`, a process of its own.

The first line of its input is a `Target`; every other line changes the rate (`{"rate": 20, "within_s": 3}`), and the
end of the input ends the load: what was sent is still awaited. Every answer is compared with what the same model said
beforehand, and told as a line, the fields of `Answer`; the last line is `{"num_sent"}`.
"""

import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
from numpy.typing import NDArray

from examples.demo.recording import Answer
from examples.serve_demo.arrivals import Arrivals
from pliant.client.nouns.tensors import decode_outputs, encode_inputs
from pliant.core.errors import PliantError

SEED: Final = 4
TIMEOUT_S: Final = 120.0
POLL_S: Final = 0.004
TOLERANCE: Final = 1e-3
"""Of a score: sums in another order, in a batch with other requests, differ in the last bits."""
_HEAD_LENGTH: Final = "Inference-Header-Content-Length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom to ask, and what."""

    url: str
    """Of the gateway."""
    token: str = field(repr=False)
    name: str
    sheets: str
    """A file of arrays: `images` (sheets, digits, …) to ask for, and the right `scores` (sheets, digits, classes)."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A request, ready to be sent, and the right answer."""

    body: bytes
    num_json_bytes: int
    scores: NDArray[np.float32]


def read_sheets(path: Path) -> list[Sheet]:
    """Return the requests of a file."""
    with np.load(path) as arrays:
        pairs = zip(arrays["images"], arrays["scores"], strict=True)
        return [Sheet(*encode_inputs({"input": images}, {}), scores) for images, scores in pairs]


def fault_of(outputs: dict[str, NDArray[Any]], scores: NDArray[np.float32]) -> str:
    """Return what is wrong with an answer; empty if it is right."""
    if len(outputs) != 1:
        return f"{len(outputs)} outputs came: {', '.join(outputs):.100}"
    (got,) = outputs.values()
    if got.shape != scores.shape:
        return f"scores of shape {got.shape} came, not {scores.shape}"
    wrong = ~np.isclose(got, scores, rtol=TOLERANCE, atol=TOLERANCE)
    return f"{int(wrong.any(axis=-1).sum())} of {len(scores)} digits have other scores" if wrong.any() else ""


class Asker:
    """Sends requests, each on a connection that no other one uses meanwhile, however many are under way.

    One client of httpx for them all would look through all of its connections at every request.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._path = f"/v2/models/{target.name}/infer"
        self._idle: list[httpx.AsyncClient] = []
        self._trust = ssl.create_default_context()

    async def ask(self, sheet: Sheet, intended_at: float) -> Answer:
        """Send one request and return what became of it."""
        client = self._idle.pop() if self._idle else self._connect()
        headers = {_HEAD_LENGTH: str(sheet.num_json_bytes), "Content-Type": "application/octet-stream"}
        sent_at = time.time()
        try:
            response = await client.post(self._path, content=sheet.body, headers=headers)
            status, fault = response.status_code, _fault_in(response, sheet)
        except httpx.HTTPError as error:
            status, fault = 0, f"{type(error).__name__}: {error}"
        done_at = time.time()
        self._idle.append(client)
        return Answer(intended_at=intended_at, sent_at=sent_at, done_at=done_at, status=status, fault=fault)

    async def close(self) -> None:
        """Close all connections."""
        for client in self._idle:
            await client.aclose()

    def _connect(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self._target.token}"}
        return httpx.AsyncClient(
            base_url=self._target.url, headers=headers, verify=self._trust, timeout=TIMEOUT_S, trust_env=False
        )


def _fault_in(response: httpx.Response, sheet: Sheet) -> str:
    if response.status_code != HTTPStatus.OK:
        return response.text[:300]
    length = response.headers.get(_HEAD_LENGTH)
    try:
        outputs = decode_outputs(response.content, None if length is None else int(length))
    except (PliantError, ValueError) as error:
        return f"no answer of this protocol: {error}"
    return fault_of(outputs, sheet.scores)


async def follow(lines: AsyncIterator[bytes], arrivals: Arrivals) -> None:
    """Change the rate as the input says, until it ends."""
    async for line in lines:
        wish = json.loads(line)
        arrivals.turn(float(wish["rate"]), within_s=float(wish["within_s"]), now=time.time())


async def load() -> None:
    """Send what is due until the input ends, and tell of every answer."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    target = Target(**json.loads(await lines.readline()))
    sheets, asker = read_sheets(Path(target.sheets)), Asker(target)
    arrivals = Arrivals(seed=SEED, now=time.time())
    asked: list[asyncio.Task[None]] = []

    async def tell(sheet: Sheet, intended_at: float) -> None:
        say(asdict(await asker.ask(sheet, intended_at)))

    following = asyncio.create_task(follow(lines, arrivals))
    while not following.done():
        for intended_at in arrivals.until(time.time()):
            asked.append(asyncio.create_task(tell(sheets[len(asked) % len(sheets)], intended_at)))
        await asyncio.sleep(POLL_S)
    await following
    await asyncio.gather(*asked)
    await asker.close()
    say({"num_sent": len(asked)})


def say(fields: dict[str, Any]) -> None:
    """Write one line for whoever started this program."""
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):  # the demo was stopped
        asyncio.run(load())
