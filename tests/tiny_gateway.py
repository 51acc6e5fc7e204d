"""A gateway of one model, for tests of those who ask: doubles the numbers of `x`, and gives back all other inputs.

It speaks the Open Inference Protocol as far as that takes, with binary tensors and with JSON, and is written from the
protocol's text, not with the client's code. `/dlim/v1/inference/…` gives back what it gets. Who accepts lines of JSON
gets one for each element of `x`, or of what was sent.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import numpy as np

_HEAD: Final = "Inference-Header-Content-Length"
_SIZES: Final = {"FP32": "<f4", "FP64": "<f8", "INT64": "<i8", "INT32": "<i4", "UINT8": "u1", "BOOL": "?"}


@dataclass(slots=True, kw_only=True)
class Gateway:
    """What a test says of it, and sees of what came."""

    url: str = ""
    token: str
    refusal: tuple[int, str] | None = None
    """Status and error of every answer, while it is set."""
    paths: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Their JSON."""


@contextmanager
def tiny_gateway(token: str) -> Iterator[Gateway]:
    """Serve on a port of loopback while the block runs."""
    gateway = Gateway(token=token)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            gateway.paths.append(self.path)
            if self.headers.get("Authorization") != f"Bearer {gateway.token}":
                self._send(401, json.dumps({"error": "no such token"}).encode(), {})
            elif gateway.refusal is not None:
                status, message = gateway.refusal
                self._send(status, json.dumps({"error": message}).encode(), {"Retry-After": "7"})
            elif self.headers.get("Accept") == "application/x-ndjson":
                self._stream(body)
            elif self.path.startswith("/dlim/v1/inference/"):
                gateway.requests.append(json.loads(body))
                self._send(200, body, {})
            else:
                self._infer(body)

        def _infer(self, body: bytes) -> None:
            end = int(self.headers.get(_HEAD, len(body)))
            request = json.loads(body[:end])
            gateway.requests.append(request)
            answers, raw = [], b""
            for one in request["inputs"]:
                size = one.get("parameters", {}).get("binary_data_size")
                if size is None:
                    answers.append(one | {"data": [2 * value for value in one["data"]] if one["name"] == "x" else []})
                    continue
                content, end = body[end : end + size], end + size
                raw += _doubled(content, one["datatype"]) if one["name"] == "x" else content
                answers.append(one)
            head = json.dumps({"model_name": "m", "outputs": answers}).encode()
            self._send(200, head + raw, {_HEAD: str(len(head))} if raw else {})

        def _stream(self, body: bytes) -> None:
            end = int(self.headers.get(_HEAD, len(body)))
            request = json.loads(body[:end])
            gateway.requests.append(request)
            parts = request
            if not self.path.startswith("/dlim/v1/inference/"):
                (x,) = request["inputs"]
                values = x["data"] if "data" in x else np.frombuffer(body[end:], dtype=_SIZES[x["datatype"]]).tolist()
                parts = [{"outputs": [x | {"shape": [1], "data": [2 * value], "parameters": {}}]} for value in values]
            self._send(200, b"".join(json.dumps(part).encode() + b"\n" for part in parts), {})

        def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        gateway.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield gateway
        finally:
            server.shutdown()
            thread.join(10.0)


def _doubled(content: bytes, datatype: str) -> bytes:
    values = np.frombuffer(content, dtype=_SIZES[datatype])
    return (values * 2).astype(values.dtype).tobytes()
