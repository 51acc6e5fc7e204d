"""The systems that answer requests, each behind the same verb: start, and say where to ask."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.serve.install import python_of
from bench.serve.load import Target, ask_once
from bench.serve.payload import CNN, ECHO, cnn_target, echo_target
from bench.serve.place import SCRIPTS, Place
from bench.serve.pliant_server import PliantServer, port_of

START_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One protocol of a side."""

    key: str
    label: str
    path: str = "/"
    """`{}` stands for the model's name."""
    is_grpc: bool = False


@dataclass(frozen=True, slots=True)
class Ports:
    """Where a side that was started is asked."""

    http: int
    grpc: int = 0
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One system in one setting."""

    key: str
    peer: str
    """Its environment; empty for what runs in Pliant's own."""
    ways: tuple[Way, ...]
    serve: Callable[[Place, str], Iterator[Ports]]
    models: tuple[str, ...] = (ECHO, CNN)

    @contextmanager
    def serving(self, place: Place, model: str) -> Iterator[Ports]:
        """Have it serve, in the block; every way has answered once when that begins.

        Raises:
            TimeoutError: it did not answer.
        """
        with contextmanager(self.serve)(place, model) as ports:
            for way in self.ways:
                if not way.is_grpc:
                    wait_for_answer(target_of(way, ports, model, 100), place)
            yield ports


def target_of(way: Way, ports: Ports, model: str, num_bytes: int) -> Target:
    """Return what to ask a side, in one of its ways."""
    port, path = ports.grpc if way.is_grpc else ports.http, way.path.format(model)
    if model == CNN:
        return cnn_target(port, path, ports.token)
    return echo_target(port, path, ports.token, num_bytes, is_grpc=way.is_grpc)


def wait_for_answer(target: Target, place: Place) -> None:
    """Wait until it answers well.

    Raises:
        TimeoutError: it did not.
    """
    give_up_at, last = time.monotonic() + START_S, "nothing"
    while time.monotonic() < give_up_at and all(process.poll() is None for process in place.processes.started):
        try:
            answer = asyncio.run(ask_once(target))
        except (OSError, TimeoutError) as error:
            last = repr(error)
        else:
            if answer.is_good:
                return
            last = f"status {answer.status}"
        time.sleep(0.1)
    raise TimeoutError(f"no answer ({last}); its last words: {place.processes.tail(6)[-600:]!r}")


def _pliant(place: Place, model: str) -> Iterator[Ports]:
    with PliantServer(place) as server:
        view = server.deploy_usual(model)
        yield Ports(port_of(view.http_url), port_of(view.grpc_address), server.token)


def _uvicorn(kind: str) -> Callable[[Place, str], Iterator[Ports]]:
    def serve(place: Place, model: str) -> Iterator[Ports]:  # noqa: ARG001 - it has no model
        yield _start(place, "uvicorn", lambda python, port: [python, SCRIPTS / "by_uvicorn.py", port, kind])

    return serve


def _litserve(place: Place, model: str) -> Iterator[Ports]:
    yield _start(place, "litserve", lambda python, port: [python, SCRIPTS / "by_litserve.py", port, model])


def _bentoml(place: Place, model: str) -> Iterator[Ports]:
    service = f"by_bentoml:{model.capitalize()}"
    env = {"BENTOML_HOME": str(place.folder), "BENTOML_DO_NOT_TRACK": "True", "PYTHONPATH": str(SCRIPTS)}
    yield _start(
        place,
        "bentoml",
        lambda python, port: [
            python, "-m", "bentoml", "serve", service, "--working-dir", SCRIPTS, "--host", "127.0.0.1", "--port", port,
        ],
        env,
    )  # fmt: skip


def _mlserver(place: Place, model: str) -> Iterator[Ports]:
    http, grpc, metrics = (place.port() for _ in range(3))
    settings = {
        "host": "127.0.0.1", "http_port": http, "grpc_port": grpc, "metrics_port": metrics, "debug": False,
        "environments_dir": str(place.folder / "environments"),
    }  # fmt: skip
    about: dict[str, object] = {"name": model, "implementation": f"by_mlserver.{model.capitalize()}"}
    if model == CNN:
        about |= {"max_batch_size": 8, "max_batch_time": 0.002}
    folder = place.folder / "mlserver"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(about))
    env = {"PYTHONPATH": str(SCRIPTS), "MLSERVER_LOGGING_SETTINGS": ""}
    started = _start(place, "mlserver", lambda python, _: [python.parent / "mlserver", "start", folder], env)
    yield replace(started, http=http, grpc=grpc)


def _ray(**variables: str) -> Callable[[Place, str], Iterator[Ports]]:
    def serve(place: Place, model: str) -> Iterator[Ports]:
        env = {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # it is what lets Ray stay on the loopback interface
            "RAY_TMPDIR": str(place.folder),
            **variables,
        }
        tuned = ["tuned"] if variables else []
        yield _start(place, "ray", lambda python, port: [python, SCRIPTS / "by_ray_serve.py", port, model, *tuned], env)

    return serve


def _start(
    place: Place,
    peer: str,
    argv: Callable[[Path, str], list[str | Path]],
    env: dict[str, str] | None = None,
) -> Ports:
    port = place.port()
    with place.as_server():
        own = {"PYTHONPATH": str(SCRIPTS)}  # nothing of Pliant
        python = python_of(place.environments, peer)
        path = f"{python.parent}:/usr/bin:/bin"
        place.processes.start(argv(python, str(port)), env={**own, "PATH": path, **(env or {})})
    return Ports(port)


INFER = "/v2/models/{}/infer"
PLIANT = Side(
    key="pliant",
    peer="",
    ways=(
        Way(key="v2", label="Pliant, v2 over HTTP", path=INFER),
        Way(key="grpc", label="Pliant, v2 over gRPC", is_grpc=True),
        Way(key="dlim", label="Pliant, `/dlim`", path="/dlim/v1/inference/{}"),
    ),
    serve=_pliant,
)
SIDES = (
    PLIANT,
    Side(
        key="uvicorn",
        peer="uvicorn",
        ways=(Way(key="uvicorn", label="plain uvicorn (h11, asyncio)"),),
        serve=_uvicorn("h11"),
        models=(ECHO,),
    ),
    Side(
        key="uvicorn-c",
        peer="uvicorn",
        ways=(Way(key="uvicorn-c", label="plain uvicorn (httptools, uvloop)"),),
        serve=_uvicorn("httptools"),
        models=(ECHO,),
    ),
    Side(
        key="litserve",
        peer="litserve",
        ways=(Way(key="litserve", label="LitServe", path="/predict"),),
        serve=_litserve,
    ),
    Side(key="bentoml", peer="bentoml", ways=(Way(key="bentoml", label="BentoML", path="/infer"),), serve=_bentoml),
    Side(
        key="mlserver",
        peer="mlserver",
        ways=(
            Way(key="mlserver", label="MLServer, v2 over HTTP", path=INFER),
            Way(key="mlserver-grpc", label="MLServer, v2 over gRPC", is_grpc=True),
        ),
        serve=_mlserver,
    ),
    Side(key="ray", peer="ray", ways=(Way(key="ray", label="Ray Serve, as shipped"),), serve=_ray()),
    Side(
        key="ray-tuned",
        peer="ray",
        ways=(Way(key="ray-tuned", label="Ray Serve, throughput-optimised, HAProxy"),),
        serve=_ray(RAY_SERVE_THROUGHPUT_OPTIMIZED="1", RAY_SERVE_ENABLE_HA_PROXY="1"),
    ),
)
"""A bare echo is what an HTTP server in Python can do at most; it is no peer."""
CEILINGS = ("uvicorn", "uvicorn-c")
