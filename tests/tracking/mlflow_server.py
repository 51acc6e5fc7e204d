"""A tracking server that speaks as much of MLflow's REST API 2.0 as logging takes, over real HTTP.

It keeps every point that it is sent, also one that comes twice, and refuses what MLflow 3 refuses: names with other
characters, a second value of a parameter. By hand the same clients were tried on `mlflow server` 3.17.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_NAME = re.compile(r"[\w\-. :/]{1,250}")


class Refused(Exception):
    """An answer that is none of success."""

    def __init__(self, status: int, code: str, message: str = "no") -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass
class SeenRun:
    """A run as the server knows it."""

    id: str
    name: str
    experiment_id: str
    tags: dict[str, str]
    statuses: list[str] = field(default_factory=list)
    points: list[tuple[str, int, float, int]] = field(default_factory=list)
    """Name, step, value, milliseconds."""
    params: dict[str, str] = field(default_factory=dict)

    def steps(self, name: str) -> list[int]:
        return [step for found, step, _, _ in self.points if found == name]

    def to_json(self) -> dict[str, Any]:
        latest: dict[str, tuple[int, float]] = {}
        for name, step, value, _ in self.points:
            latest[name] = max(latest.get(name, (step, value)), (step, value))
        return {
            "info": {"run_id": self.id, "experiment_id": self.experiment_id},
            "data": {"metrics": [{"key": name, "step": step} for name, (step, _) in latest.items()]},
        }


class MlflowServer(ThreadingHTTPServer):
    """The server; `down` lets it answer 503, `location` lets it send everybody elsewhere."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.experiments = {"Default": "0"}
        self.runs: dict[str, SeenRun] = {}
        self.asked: list[tuple[str, str]] = []
        """Path and Authorization of every request."""
        self.down = False
        self.location = ""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def run(self) -> SeenRun:
        (run,) = self.runs.values()
        return run

    def answer(self, what: str, given: dict[str, Any]) -> dict[str, Any]:
        match what:
            case "experiments/get-by-name":
                if given["experiment_name"] not in self.experiments:
                    raise Refused(404, "RESOURCE_DOES_NOT_EXIST")
                return {"experiment": {"experiment_id": self.experiments[given["experiment_name"]]}}
            case "experiments/create":
                self.experiments[given["name"]] = str(len(self.experiments))
                return {"experiment_id": self.experiments[given["name"]]}
            case "runs/create":
                tags = {tag["key"]: tag["value"] for tag in given["tags"]}
                run = SeenRun(f"run{len(self.runs)}", given["run_name"], given["experiment_id"], tags)
                self.runs[run.id] = run
                return {"run": run.to_json()}
            case "runs/search":
                key, value = re.fullmatch(r"tags\.`(.+)` = '(.+)'", given["filter"]).groups()  # type: ignore[union-attr]
                found = [run for run in self.runs.values() if run.tags.get(key) == value]
                return {"runs": [run.to_json() for run in found if run.experiment_id in given["experiment_ids"]]}
        if given.get("run_id") not in self.runs:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST")
        return self._of_run(self.runs[given["run_id"]], what, given)

    def _of_run(self, run: SeenRun, what: str, given: dict[str, Any]) -> dict[str, Any]:
        match what:
            case "runs/get":
                return {"run": run.to_json()}
            case "runs/update":
                run.statuses.append(given["status"])
            case "runs/log-batch":
                metrics, params, tags = (given.get(key, []) for key in ("metrics", "params", "tags"))
                if len(metrics) > 1000 or len(params) > 100 or len(tags) > 100:
                    raise Refused(400, "INVALID_PARAMETER_VALUE", "too many")
                for one in (*metrics, *params, *tags):
                    if not _NAME.fullmatch(one["key"]):
                        raise Refused(400, "INVALID_PARAMETER_VALUE", f"Invalid name {one['key']}")
                for one in params:
                    if run.params.get(one["key"], one["value"]) != one["value"]:
                        raise Refused(400, "INVALID_PARAMETER_VALUE", "Changing param values is not allowed")
                run.tags.update({one["key"]: one["value"] for one in tags})
                run.params.update({one["key"]: one["value"] for one in params})
                run.points += [(one["key"], one["step"], float(one["value"]), one["timestamp"]) for one in metrics]
            case _:
                raise Refused(404, "ENDPOINT_NOT_FOUND")
        return {}


class _Handler(BaseHTTPRequestHandler):
    server: MlflowServer

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self._serve({name: values[0] for name, values in query.items()})

    def do_POST(self) -> None:
        self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _serve(self, given: dict[str, Any]) -> None:
        server, path = self.server, urlsplit(self.path).path
        with server.lock:
            server.asked.append((path, self.headers.get("Authorization", "")))
            if server.location:
                self._send(302, {}, server.location)
            elif server.down:
                self._send(503, {"message": "down for a moment"})
            else:
                try:
                    self._send(200, server.answer(path.removeprefix("/api/2.0/mlflow/"), given))
                except Refused as refused:
                    self._send(refused.status, {"error_code": refused.code, "message": str(refused)})

    def _send(self, status: int, body: dict[str, Any], location: str = "") -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        if location:
            self.send_header("Location", location + self.path)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def mlflow_server() -> Iterator[MlflowServer]:
    """Run a server."""
    with MlflowServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
