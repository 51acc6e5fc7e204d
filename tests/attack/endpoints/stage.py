"""What the attacks on endpoints meet: Ada's, which nobody else may ask, and Bob's, whose model does as he says.

Ada's is `adas`, which answers with her secret and doubles arrays; Bob's is `bobs`, `tests/attack/inside/hostile.py`.
"""

import json
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import grpc
import httpx
from tests.attack.target import INSIDE, Target
from tests.attack.web import exchange

from pliant.api.endpoints import EndpointView
from pliant.api.people import TokenRequest
from pliant.client import Client
from pliant.core.errors import PliantError
from pliant.serve.gateway.gateway_files import RECORD
from pliant.serve.protocol.grpc import encode_message
from pliant.serve.protocol.grpc.messages import decode_message

ADAS: Final = "adas"
BOBS: Final = "bobs"
OTHERS: Final = "others"
"""A second one of Ada's, which her token for another endpoint is for."""
MAX_BODY_BYTES: Final = 1 << 20
"""Of a request to Ada's endpoint."""
EXECUTION_S: Final = 120.0
MEMORY_BYTES: Final = 1 << 30
"""Of a kernel of Bob's."""
SERVICE: Final = "/inference.GRPCInferenceService/"
_MODEL: Final = (INSIDE / "adas.py").read_text()
_stages: "WeakKeyDictionary[Target, Stage]" = WeakKeyDictionary()


def stage_of(target: Target) -> "Stage":
    """Return what is deployed on a target; it is deployed when the first attack on endpoints is played."""
    if target not in _stages:
        _stages[target] = Stage(target)
    return _stages[target]


class Stage:
    """Both endpoints, and ways to ask them."""

    def __init__(self, target: Target) -> None:
        self.target = target
        folder = target.folder / "adas-model"
        folder.mkdir(exist_ok=True)
        (folder / "serve.py").write_text(_MODEL)
        (folder / "secret.txt").write_text(target.secret)
        kept: dict[str, Any] = {"kernel_min": 1, "kernel_max": 1, "batch_size": 1, "release_delay_s": 3600.0}
        env = {"ADAS_SECRET": target.secret}
        target.ada.endpoints.deploy(ADAS, folder, env=env, max_body_bytes=MAX_BODY_BYTES, **kept)
        target.ada.endpoints.deploy(OTHERS, folder, env=env)
        bobs: dict[str, Any] = {"file": "hostile.py", "idempotent": False, "memory_bytes": MEMORY_BYTES, "pipe_size": 1}
        target.bob.endpoints.deploy(BOBS, INSIDE, execution_timeout_s=EXECUTION_S, **kept, **bobs)
        self.tokens = {
            "no token": "",
            "a wrong token": "plt_" + secrets.token_hex(20),
            "Bob's token": target.tokens["bob"],
            "Ada's token of another scope": self._token(target.ada, scopes=["jobs:read"]),
            "Ada's token for another endpoint": self._token(target.ada, scopes=["infer"], endpoints=[OTHERS]),
            "Ada's token, revoked": self._token(target.ada, revoked=True),
        }
        self.place(ADAS)
        self.place(BOBS)
        self._seen: dict[str, dict[str, str]] = {}

    @property
    def url(self) -> str:
        """Where the gateway speaks HTTP."""
        url = self.view(ADAS).http_url
        assert url is not None
        return url

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    @property
    def gateway_pid(self) -> int:
        record = json.loads((self.target.home / "gateway" / RECORD).read_text())
        return int(record["pid"])

    def view(self, name: str) -> EndpointView:
        client = self.target.ada if name == ADAS else self.target.bob
        return client.endpoints.get(name)

    def place(self, name: str) -> EndpointView:
        """Wait until a kernel of an endpoint is ready."""

        def ready() -> EndpointView | None:
            view = self.view(name)
            return view if any(one.num_ready for one in view.versions) else None

        found: EndpointView = self.target.until(ready, f"a kernel of {name} is ready")
        return found

    def kernel_of(self, name: str) -> tuple[str, int]:
        """Wait for a kernel of an endpoint that lives; return its task, and its process."""
        client = self.target.ada if name == ADAS else self.target.bob

        def living() -> tuple[str, int] | None:
            job_id = next(one.job_id for one in self.view(name).versions if one.job_id is not None)
            ready = [task for task in client.job(job_id).tasks if task.state == "training"]
            found = [
                (task.id, task.pid) for task in ready if task.pid is not None and Path(f"/proc/{task.pid}").exists()
            ]
            return found[0] if found else None

        kernel: tuple[str, int] = self.target.until(living, f"a kernel of {name} lives")
        return kernel

    def facts(self) -> dict[str, Any]:
        """Return what a stranger can find out, and what only a lucky one could."""
        task, pid = self.kernel_of(ADAS)
        job_id, home = task.rpartition(".")[0], self.target.home
        key = home / "tls" / "key.pem"
        key.parent.mkdir(mode=0o700, exist_ok=True)
        key.write_text("as `pliant up --tls` keeps it\n")
        hers = home / "jobs" / job_id
        for path in (key, hers / "code" / "secret.txt", hers / "result" / "secret", home / "gateway" / "lock"):
            assert path.exists(), f"{path} is not there, so nobody could read it"
        return self.target.facts() | {
            "server": self.gateway_pid,
            "victims": [pid],
            "adas_task": task,
            "adas_folder": str(home / "jobs" / job_id),
            "adas_archives": [str(path) for path in sorted(home.rglob("*")) if self._is_hers(path)][:5],
            "socket": str(home / "address" / "gateway"),
        }

    # -- asking --------------------------------------------------------------------------------------------------------

    def ask_bobs(self, timeout_s: float = 110.0, **what: Any) -> httpx.Response:
        """Let Bob's model do something; return the answer as it came."""
        return self.post(f"/dlim/v1/inference/{BOBS}", json.dumps(what).encode(), "Bob's token", timeout_s=timeout_s)

    def post(
        self,
        path: str,
        body: bytes = b"{}",
        token: str = "",
        headers: dict[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> httpx.Response:
        """Send a request to the gateway.

        Args:
            token: as it is called in `tokens`; empty: Ada's.
        """
        shown = self.tokens[token] if token else self.target.tokens["ada"]
        more = {**({"Authorization": f"Bearer {shown}"} if shown else {}), **(headers or {})}
        with httpx.Client(base_url=self.url, timeout=timeout_s, trust_env=False) as client:
            return client.post(path, content=body, headers=more)

    def answers(self) -> bool:
        """Tell whether Ada's endpoint answers Ada, within five seconds."""
        try:
            answer = self.post(f"/dlim/v1/inference/{ADAS}", b'{"value": 21}', timeout_s=5.0)
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and answer.json() == {"value": 42, "secret": self.target.secret}

    def exchange(self, request: bytes, timeout_s: float = 5.0) -> bytes:
        """Return all that the gateway answers to bytes, until it closes the connection or says no more."""
        return exchange(self.address, request, timeout_s)

    def call(self, name: str, message: bytes, token: str = "", metadata: tuple[tuple[str, str], ...] = ()) -> str:
        """Call the gateway over gRPC; return the code that it answers with."""
        shown = self.tokens[token] if token else self.target.tokens["ada"]
        given = (*((("authorization", f"Bearer {shown}"),) if shown else ()), *metadata)
        address = self.view(ADAS).grpc_address
        assert address is not None
        with grpc.insecure_channel(address) as channel:
            try:
                if name == f"{SERVICE}ModelStreamInfer":
                    answers = list(channel.stream_stream(name)(iter((message,)), metadata=given, timeout=20))
                    said = decode_message("ModelStreamInferResponse", answers[0])["error_message"]
                    return "NOT_FOUND" if "no endpoint is called" in said else f"OK {said}"
                channel.unary_unary(name)(message, metadata=given, timeout=20)
            except grpc.RpcError as error:
                return str(error.code().name)
        return "OK"

    def infer_over_grpc(self, request: dict[str, Any]) -> str:
        return self.call(f"{SERVICE}ModelInfer", encode_message("ModelInferRequest", {"model_name": ADAS, **request}))

    def seen_inside(self, script: str, name: str, more: Callable[[], dict[str, Any]] = dict) -> str:
        """Return what one probe of a script saw that Bob's model played; the script is played once.

        Args:
            more: what it is told besides `facts()`.
        """
        if script not in self._seen:
            answer = self.ask_bobs(how="play", script=script, facts=self.facts() | more())
            lines = answer.json()["said"] if answer.status_code == 200 else []
            said = [json.loads(line) for line in lines]
            self._seen[script] = {"": f"HTTP {answer.status_code}: {answer.text[:150]}"} | {
                str(one["probe"]): str(one["seen"]) for one in said
            }
        return self._seen[script].get(name, f"not tried: {self._seen[script]['']}")

    def meanwhile(self, act: Callable[[], object]) -> "Future[object]":
        """Do something in a thread of its own."""
        future: Future[object] = Future()

        def run() -> None:
            try:
                future.set_result(act())
            except Exception as error:  # noqa: BLE001 (whoever waits for it is told)
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    # -- tokens --------------------------------------------------------------------------------------------------------

    @staticmethod
    def _token(client: Client, *, revoked: bool = False, **settings: Any) -> str:
        asked = TokenRequest.model_validate({"label": secrets.token_hex(4), **settings})
        made = client.people.make_token(asked)
        if revoked:
            client.people.revoke_token(made.info.id)
        return made.token

    def _is_hers(self, path: Path) -> bool:
        try:
            return path.is_file() and self.target.secret.encode() in path.read_bytes()
        except OSError:
            return False


def refusal(act: Callable[[], object]) -> str:
    """Return what kind of refusal came of a call of the client; what it returned if it was none."""
    try:
        return f"done: {act()!r}"[:200]
    except PliantError as error:
        return type(error).__name__
