"""Models that are deployed in tests, and clients that ask them without a pause and count what comes of it."""

import json
import ssl
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
from tests.plain_http import NO_TLS

from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message

DOUBLE = """
import time
from pathlib import Path


class Model:
    raw = True

    def load(self):
        self.factor = {factor}
        if {factor} == 0:
            raise RuntimeError("this model cannot be loaded")

    def predict(self, batch):
        time.sleep({seconds})
        return [{{"value": one["value"] * self.factor, "factor": self.factor}} for one in batch]
"""
TENSORS = """
class Model:
    def predict(self, batch):
        return [{"y": one["x"] * 2} for one in batch]
"""
PARTS = """
from pathlib import Path


class Model:
    inputs = [{{"name": "x", "datatype": "FP32", "shape": [-1]}}]

    def stream(self, one):
        try:
            for x in one["x"]:
                yield {{"y": x * 2}}
                while x < 0:
                    yield {{"y": x}}
        finally:
            Path({note!r}).touch()
"""
PINGPONG = """
import json

import redhareapiversion
from redhareapi import Kernel


class Pingpong(Kernel):
    def on_kernel_start(self, kernel_context):
        self.name = json.loads(kernel_context.get_model_description())["name"]
        print("started", self.name)

    def on_task_invoke(self, task_context):
        while task_context is not None:
            data = json.loads(task_context.get_input_data())
            task_context.set_output_data(json.dumps({"pong": data, "by": self.name}))
            task_context = task_context.next()

    def on_kernel_shutdown(self):
        pass


if __name__ == "__main__":
    Pingpong().run()
"""


def write_model(folder: Path, *, factor: int = 2, seconds: float = 0.0) -> Path:
    """Write a model that multiplies, and takes so long for a batch; factor 0 does not load."""
    folder.mkdir(exist_ok=True)
    (folder / "serve.py").write_text(DOUBLE.format(factor=factor, seconds=seconds))
    return folder


def write_tensor_model(folder: Path) -> Path:
    """Write a model that takes arrays and doubles them."""
    folder.mkdir(exist_ok=True)
    (folder / "serve.py").write_text(TENSORS)
    return folder


def write_model_of_parts(folder: Path, note: Path) -> Path:
    """Write a model that answers in parts, a number each, and from a negative one on for ever; its end is a file."""
    folder.mkdir(exist_ok=True)
    (folder / "serve.py").write_text(PARTS.format(note=str(note)))
    return folder


def write_pingpong(folder: Path) -> Path:
    """Write a kernel for IBM's API, with what IBM's packages have beside it."""
    folder.mkdir(exist_ok=True)
    (folder / "kernel.py").write_text(PINGPONG)
    model = {"name": "pingpong", "kernel_path": "kernel.py", "runtime": "python", "schema_version": "1"}
    (folder / "model.json").write_text(json.dumps(model))
    (folder / "README.md").write_text("It answers.\n")
    return folder


@dataclass(slots=True)
class Asked:
    """What became of the requests of a crowd."""

    wrong: list[Any] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    factors: list[tuple[float, int]] = field(default_factory=list)
    """When an answer came, and which factor it was multiplied by."""
    num_broken: int = 0
    """Connections that broke: the gateway was gone."""

    @property
    def num_answered(self) -> int:
        return len(self.factors)


@contextmanager
def crowd(url: str, token: str, name: str, *, num_clients: int, trust: ssl.SSLContext = NO_TLS) -> Iterator[Asked]:
    """Let so many clients ask an endpoint all the time; each waits for an answer before it asks again."""
    headers = {"Authorization": f"Bearer {token}"}
    asked, over, lock = Asked(), threading.Event(), threading.Lock()
    clients = [
        threading.Thread(
            target=_ask,
            args=(
                httpx.Client(base_url=url, headers=headers, verify=trust, timeout=60, trust_env=False),
                name,
                number,
                asked,
                over,
                lock,
            ),
        )
        for number in range(num_clients)
    ]
    for client in clients:
        client.start()
    try:
        yield asked
    finally:
        over.set()
        for client in clients:
            client.join(90)


def versions_of_answers(url: str, token: str, name: str, num: int) -> Counter[str]:
    """Ask an endpoint so often, one after the other; return how often which version answered."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, verify=NO_TLS, timeout=60, trust_env=False) as client:
        answers = (client.post(f"/dlim/v1/inference/{name}", json={"value": 1}) for _ in range(num))
        return Counter(answer.headers.get("pliant-version", str(answer.status_code)) for answer in answers)


def _ask(
    client: httpx.Client, name: str, number: int, asked: Asked, over: threading.Event, lock: threading.Lock
) -> None:
    with client:
        value = number * 1_000_000
        while not over.is_set():
            value += 1
            try:
                answer = client.post(f"/dlim/v1/inference/{name}", json={"value": value})
            except httpx.TransportError:
                with lock:
                    asked.num_broken += 1
                over.wait(0.1)
                continue
            with lock:
                _count(asked, answer, value)


def _count(asked: Asked, answer: httpx.Response, value: int) -> None:
    asked.statuses[answer.status_code] += 1
    if answer.status_code != 200:
        asked.wrong.append((answer.status_code, answer.text[:300]))
        return
    body: Mapping[str, int] = answer.json()
    asked.factors.append((time.monotonic(), body["factor"]))
    if body["value"] != value * body["factor"]:
        asked.wrong.append((value, body))


def call_model(
    address: str | None, token: str, name: str, values: list[float], *, certificate: bytes | None = None
) -> list[float]:
    """Ask a model over gRPC that takes `x`, over TLS if there is a certificate to trust; return its only output."""
    assert address is not None
    tensor = {"name": "x", "datatype": "FP32", "shape": [len(values)]}
    raw = struct.pack(f"<{len(values)}f", *values)
    request = {"model_name": name, "inputs": [tensor], "raw_input_contents": [raw]}
    trust = None if certificate is None else grpc.ssl_channel_credentials(certificate)
    with grpc.insecure_channel(address) if trust is None else grpc.secure_channel(address, trust) as channel:
        infer = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        body = encode_message("ModelInferRequest", request)
        answer = decode_message("ModelInferResponse", infer(body, metadata=(("x-auth-token", token),), timeout=60))
    (output,) = answer["raw_output_contents"]
    return [value for (value,) in struct.iter_unpack("<f", output)]
