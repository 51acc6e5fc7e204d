"""Who may ask an endpoint, and who may change it: every route of gateway and server, with tokens that may not."""

from collections.abc import Callable
from typing import Any, Final

import httpx
from tests.attack.attack import Attack
from tests.attack.endpoints.stage import ADAS, SERVICE, Stage, refusal, stage_of
from tests.attack.target import INSIDE, Target

from pliant.serve.protocol.grpc import encode_message, inference_schema

_GATEWAY: Final = (
    ("GET", f"/v2/models/{ADAS}"),
    ("GET", f"/v2/models/{ADAS}/versions/1"),
    ("GET", f"/v2/models/{ADAS}/ready"),
    ("GET", f"/v2/models/{ADAS}/config"),
    ("GET", f"/v2/models/{ADAS}/stats"),
    ("POST", f"/v2/models/{ADAS}/infer"),
    ("POST", f"/v2/models/{ADAS}/versions/1/infer"),
    ("POST", f"/v2/models/{ADAS}/generate"),
    ("POST", f"/v2/models/{ADAS}/versions/1/generate_stream"),
    ("POST", f"/dlim/v1/inference/{ADAS}"),
)
"""Every route of the gateway that names an endpoint."""
_LOAD, _UNLOAD = (("POST", f"/v2/repository/models/{ADAS}/{verb}") for verb in ("load", "unload"))
_LISTS: Final = (("GET", "/v2/models/stats"), ("POST", "/v2/repository/index"), ("GET", "/v2"))
_IBM: Final = (
    ("POST", f"inference/{ADAS}"),
    ("POST", "deployment/model"),
    ("POST", f"deployment/model/{ADAS}"),
    ("GET", f"model/{ADAS}"),
    ("PUT", f"model/{ADAS}"),
    ("DELETE", f"model/{ADAS}"),
    ("PUT", f"model/{ADAS}/operation/start"),
    ("PUT", f"model/{ADAS}/operation/stop"),
    ("GET", f"model/{ADAS}/instance"),
    ("GET", f"model/{ADAS}/readme"),
    ("PUT", f"model/{ADAS}/readme"),
    ("GET", f"model/{ADAS}/appprofile"),
    ("PUT", f"model/{ADAS}/appprofile"),
    ("GET", f"model/{ADAS}/streaming"),
)
_MESSAGES: Final = {
    **dict.fromkeys(("ModelInfer", "ModelStreamInfer", "RepositoryModelLoad", "RepositoryModelUnload"), "model_name"),
    "RepositoryIndex": "",
}
_OPEN_CALLS: Final = ("ServerLive", "ServerReady")
_OF_ALL_CALLS: Final = ("ServerMetadata", "RepositoryIndex")
_MAY_ASK: Final = ("Bob's token", "Ada's token for another endpoint")
"""They may ask what there is; it is not Ada's endpoint."""
TOKENS: Final = (
    "no token",
    "a wrong token",
    "Bob's token",
    "Ada's token of another scope",
    "Ada's token for another endpoint",
    "Ada's token, revoked",
)


def _over_http(token: str) -> Callable[[Target], str]:
    """Return what tries every route of the gateway; it names the first that answered."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        with _client(stage.url, stage.tokens[token]) as client:
            for method, path in (*_GATEWAY, _LOAD, _UNLOAD):
                answer = client.request(method, path, json={"value": 1})
                if answer.status_code not in (401, 403, 404) or target.secret in answer.text:
                    return f"{method} {path}: {answer.status_code} {answer.text[:80]}"
            for method, path in _LISTS:
                answer = client.request(method, path)
                if ADAS in answer.text:
                    return f"{method} {path} names it"
        return "refused"

    return play


def _as_ada(target: Target) -> str:
    """Try the same routes with Ada's own token, which must open them; else the others would prove nothing."""
    stage = stage_of(target)
    with _client(stage.url, target.tokens["ada"]) as client:
        routes = (*_GATEWAY, *_LISTS, _LOAD)
        said = {client.request(method, path, json={"value": 1}).status_code for method, path in routes}
    calls = inference_schema().calls
    names = [(path, call) for path, call in calls.items() if path != f"{SERVICE}RepositoryModelUnload"]  # it would work
    codes = {stage.call(path, _message(path.removeprefix(SERVICE), call.request)) for path, call in names}
    refused = said & {401, 403, 404} or codes & {"UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"}
    return f"refused: {refused}" if refused else "opens them"


def _over_grpc(token: str) -> Callable[[Target], str]:
    """Return the same with every call of gRPC."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        for path, call in inference_schema().calls.items():
            name = path.removeprefix(SERVICE)
            if name in _OPEN_CALLS or (token in _MAY_ASK and name in _OF_ALL_CALLS):
                continue
            code = stage.call(path, _message(name, call.request), token)
            if code not in ("UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "UNIMPLEMENTED"):
                return f"{name}: {code}"
        return "refused"

    return play


def _message(call: str, kind: str) -> bytes:
    """Return a request that names Ada's endpoint, if it can name one."""
    field = _MESSAGES.get(call, "name")
    named = bool(field) and field in inference_schema().messages[kind].by_name
    return encode_message(kind, {field: ADAS}) if named else b""


def _over_ibm(token: str) -> Callable[[Target], str]:
    """Return the same with every route of IBM's at the server that names a model."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        host, port = target.address
        with _client(f"http://{host}:{port}", stage.tokens[token]) as client:
            for method, path in _IBM:
                answer = client.request(method, f"/dlim/v1/{path}", json={"value": 1})
                if answer.status_code < 400 or answer.status_code >= 500 or target.secret in answer.text:
                    return f"{method} {path}: {answer.status_code} {answer.text[:80]}"
        return "refused" if stage.answers() else "it does not answer any more"

    return play


def _client(url: str, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.Client(base_url=url, headers=headers, timeout=20.0, trust_env=False)


def _as_bob(act: Callable[[Stage, Target], object]) -> Callable[[Target], str]:
    """Return what lets Bob do something with Ada's endpoint; it says how he was refused, if it answers afterwards."""

    def play(target: Target) -> str:
        stage = stage_of(target)
        came = refusal(lambda: act(stage, target))
        return came if stage.answers() else f"{came}, and it does not answer any more"

    return play


def _job_of(stage: Stage) -> str:
    return stage.kernel_of(ADAS)[0].rpartition(".")[0]


def _first_log(stage: Stage, target: Target) -> Any:
    task, _ = stage.kernel_of(ADAS)
    return list(target.bob.read_log(_job_of(stage), task, "stdout"))


_BOBS_TRIES: Final[dict[str, Callable[[Stage, Target], object]]] = {
    "shown": lambda _, target: target.bob.endpoints.get(ADAS),
    "its address": lambda _, target: target.bob.endpoints.address(ADAS),
    "changed": lambda _, target: target.bob.endpoints.change(ADAS, kernel_max=2),
    "shared with oneself": lambda _, target: target.bob.endpoints.change(ADAS, shared_with=["bob"]),
    "given another version": lambda _, target: target.bob.endpoints.deploy(ADAS, INSIDE, file="hostile.py"),
    "stopped": lambda _, target: target.bob.endpoints.stop(ADAS),
    "started": lambda _, target: target.bob.endpoints.start(ADAS),
    "rolled back": lambda _, target: target.bob.endpoints.rollback(ADAS, 1),
    "its traffic split": lambda _, target: target.bob.endpoints.split(ADAS, {1: 100}),
    "removed": lambda _, target: target.bob.endpoints.remove(ADAS),
    "asked": lambda _, target: target.bob.endpoints.infer(ADAS, {"value": 1}, raw=True),
    "its kernels' logs": _first_log,
    "the job of its kernels shown": lambda stage, target: target.bob.job(_job_of(stage)),
    "the job of its kernels stopped": lambda stage, target: target.bob.stop(_job_of(stage)),
    "deployed as one's own, as its job": lambda stage, target: target.bob.endpoints.deploy("mine", job=_job_of(stage)),
    "Ada's training deployed as one's own": lambda _, target: target.bob.endpoints.deploy("mine", job=target.victim),
}


def _hidden(target: Target) -> str:
    """Say whether Bob is told anything else of Ada's endpoint than of one that is not there."""
    stage = stage_of(target)
    answers = [stage.post(f"/v2/models/{name}/infer", b"{}", "Bob's token") for name in (ADAS, "nono")]
    words = [answer.text.replace(ADAS, "NAME").replace("nono", "NAME") for answer in answers]
    same = words[0] == words[1] and answers[0].status_code == answers[1].status_code
    listed = [one.name for one in target.bob.endpoints.list().endpoints]
    return "nothing" if same and ADAS not in listed else f"{words}, lists {listed}"


def _deployment_by_asker(target: Target) -> str:
    """Let a token that may only ask deploy a version at the server."""
    host, port = target.address
    with _client(f"http://{host}:{port}", stage_of(target).tokens["Ada's token for another endpoint"]) as client:
        said = [
            client.request(method, f"/v1/endpoints/{ADAS}{path}", json={}).status_code
            for method, path in (("POST", "/versions"), ("PATCH", ""), ("POST", "/stop"), ("DELETE", ""), ("GET", ""))
        ]
    return "refused" if set(said) <= {403, 404} else f"answered {said}"


def _attack(name: str, expected: str, play: Callable[[Target], str]) -> Attack:
    return Attack(group="endpoints", name=name, expected=expected, play=play)


ATTACKS: Final = (
    _attack("every route and call, with Ada's own token", "opens them", _as_ada),
    *(_attack(f"every route of the gateway, with {token}", "refused", _over_http(token)) for token in TOKENS),
    *(_attack(f"every call of gRPC, with {token}", "refused", _over_grpc(token)) for token in TOKENS),
    *(_attack(f"every route of IBM's, with {token}", "refused", _over_ibm(token)) for token in TOKENS),
    *(_attack(f"another's endpoint: {name}", "NotFound", _as_bob(act)) for name, act in _BOBS_TRIES.items()),
    _attack("whether another's endpoint is there", "nothing", _hidden),
    _attack("changes with a token that may ask another endpoint", "refused", _deployment_by_asker),
)
