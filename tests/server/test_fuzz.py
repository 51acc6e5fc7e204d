"""Whatever is sent, the answer is one that the description names, and never that the server has failed.

`FUZZ_EXAMPLES` in the environment asks for more than the few examples of every operation that the tests run.
"""

import http.client
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

import httpx
import pytest
import requests
import schemathesis
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from schemathesis import Case, CheckContext, CheckFunction, GenerationMode, Response
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.server.world import code, makes

from pliant.api.datasets import DatasetRequest
from pliant.api.environments import EnvironmentRequest
from pliant.api.jobs import JobRequest
from pliant.api.link import LINK_PATH
from pliant.api.models import ModelRequest, TemplateRequest, TrainingRequest
from pliant.api.people import UserRequest
from pliant.api.queues import GroupRequest, QueueRequest
from pliant.ibm.rest.api import IBM
from pliant.ibm.rest.errors import DEEP_LEARNING
from pliant.ibm.rest.routes import absent
from pliant.server.middleware.limits import is_upload
from pliant.server.middleware.problems import MEDIA_TYPE

Served = Any
TOKEN: Final = {"Authorization": "Bearer the-token"}
NUM_EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES", "4"))
NOT_HERE: Final = 501
"""What IBM's server has and this one has not."""


def did_not_fail(_: CheckContext, response: Response, case: "Case[Any]") -> None:
    """See that the server knew what to answer."""
    assert response.status_code < 500 or response.status_code == NOT_HERE, f"{case.method} {case.path}: {response.text}"


CHECKS: Final = [
    did_not_fail,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
READING: Final = ("GET", "HEAD")
ENDLESS: Final = ("/v1/events/stream",)
"""Sends until the caller goes away."""


class World:
    """A server with one of each thing, so that not everything that is asked for is missing."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.url = f"http://{server.address}"
        self.http: httpx.Client = server.http
        self.makes = makes(server)
        self.upload_id = self.exec_id = ""
        self.fill()

    def fill(self) -> None:
        """Make again what requests have removed."""
        for make in self.makes:
            if self.http.get(make.one).status_code != 200:
                make.send(self.http)
        if not self.server.http.get("/jobs").json()["jobs"]:
            self.server.submit()
        execs = f"{self.url}{DEEP_LEARNING}/execs"
        if not self.exec_id or self.http.get(f"{execs}/{self.exec_id}").status_code != 200:
            args, file = "--exec-start PyTorch --model-main main.py", ("main.py", b"print()")
            self.exec_id = self.http.post(execs, params={"args": args}, files={"file": file}).json()["id"]
        if not self.upload_id or self.http.get(f"/uploads/{self.upload_id}").status_code != 200:
            self.upload_id = self.http.post("/uploads", json={"num_bytes": 1000}).json().get("id", self.upload_id)

    def names(self, path: str) -> dict[str, str]:
        """Return what the parameters of a path may be called so that something is there."""
        return {
            **dict.fromkeys(("name", "model", "template", "dataset", "training"), "small"),
            **({"name": "ada"} if path.startswith("/v1/users") else {}),
            **dict.fromkeys(("exec_id", "application_id"), self.exec_id),
            "sig_id": "default" if "/applications" in path else "small",  # which may be closed
            "executor": "0",
            "kind": "stdout",
            "job_id": "job-1",
            "task_id": "job-1.1",
            "stream": "stdout",
            "upload_id": self.upload_id,
            "token_id": "0",
        }


@pytest.fixture(scope="module")
def world(module_server: Served) -> World:
    return World(module_server)


def operations(world: World) -> Iterator[Any]:
    """Yield every operation that ends by itself and leaves the server on."""
    description = httpx.get(f"{world.url}/openapi.json", timeout=30).json()
    for path in ENDLESS:
        del description["paths"][path]
    del description["paths"]["/v1/shutdown"]
    for found in schemathesis.openapi.from_dict(description).get_all_operations():
        assert isinstance(found, Ok), found
        yield found.ok()


def ibm_operations() -> Iterator[Any]:
    """Yield IBM's operations, whose description is nowhere but in their code."""
    app = FastAPI()
    for routes in IBM.routes:
        if routes in (absent.deep_learning, absent.conductor):
            continue
        for route in routes.router.routes:
            if isinstance(route, APIRoute) and not route.path.endswith("/logon"):
                app.add_api_route(route.path, route.endpoint, methods=list(route.methods or ()))
    for found in schemathesis.openapi.from_dict(app.openapi()).get_all_operations():
        assert isinstance(found, Ok), found
        yield found.ok()


@st.composite
def cases(draw: st.DrawFn, operation: Any, world: World) -> "Case[Any]":
    """Draw a request: right or wrong by its description, and half of the time about something that is there."""
    mode = draw(st.sampled_from((GenerationMode.POSITIVE, GenerationMode.POSITIVE, GenerationMode.NEGATIVE)))
    case: Case[Any] = draw(operation.as_strategy(mode))
    if draw(st.booleans()) and case.path_parameters:
        case.path_parameters = {**case.path_parameters, **_some(world.names(operation.path), case.path_parameters)}
    case.query = {name: value for name, value in (case.query or {}).items() if name != "follow"}
    if isinstance(case.body, dict) and operation.path == "/v1/environments" and "requirements" in case.body:
        case.body["requirements"] = ""  # what is drawn would be looked for in a package registry
    return case


def _some(names: dict[str, str], wanted: dict[str, Any]) -> dict[str, str]:
    return {name: names[name] for name in wanted if name in names}


def wrong_bodies_are_refused(context: CheckContext, response: Response, case: "Case[Any]") -> bool | None:
    """See that a body against the description is refused.

    Of a query and of headers this cannot be said: all is text there, one is as good as a list of one, and what is empty
    is not sent. `test_what_must_be_a_number_in_a_query_is_one` is about them.
    """
    assert case.meta is not None
    body = case.meta.components.get(ParameterLocation.BODY)
    if body is None or body.mode is GenerationMode.POSITIVE:
        return None
    if case.operation.path.endswith("/preview") and response.status_code == 200:  # its answer says what would be wrong
        assert response.json()["problems"], response.content
        return None
    return bool(negative_data_rejection(context, response, case))


def answered(world: World, operation: Any, num_examples: int, checks: Sequence[CheckFunction]) -> None:
    @settings(
        max_examples=num_examples,
        derandomize="FUZZ_EXAMPLES" not in os.environ,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(operation, world))
    def one(case: "Case[Any]") -> None:
        response = case.call(base_url=world.url, headers=TOKEN, session=session, timeout=30)
        case.validate_response(response, checks=list(checks))

    with requests.Session() as session:
        one()


def failures(world: World, operations: Iterator[Any], checks: Sequence[CheckFunction]) -> list[str]:
    """Return what was found wrong with every operation."""
    found = []
    for operation in operations:
        if operation.method.upper() not in READING:
            world.fill()
        try:
            answered(world, operation, NUM_EXAMPLES, checks)
        except (Failure, FailureGroup, AssertionError) as error:
            found.append(f"{operation.label}: {error}")
    return found


@pytest.mark.timeout(120 + 30 * NUM_EXAMPLES)
def test_every_answer_is_one_that_the_description_names(world: World) -> None:
    checks = [*CHECKS, wrong_bodies_are_refused]
    assert not (found := failures(world, operations(world), checks)), "\n\n".join(found)


@pytest.mark.timeout(120 + 30 * NUM_EXAMPLES)
def test_ibms_routes_never_fail(world: World) -> None:
    assert not (found := failures(world, ibm_operations(), [did_not_fail])), "\n\n".join(found)


def no_numbers(parameter: dict[str, Any]) -> Iterator[str]:
    """Yield words that a parameter of a query must not be, if it is a number."""
    schema = parameter["schema"]
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    if parameter["in"] == "query" and len(kinds) == 1 and kinds[0].get("type") in ("integer", "number"):
        yield "x"
        yield "1 2"
        if "minimum" in kinds[0]:
            yield str(kinds[0]["minimum"] - 1)
        if "maximum" in kinds[0]:
            yield str(kinds[0]["maximum"] + 1)


def test_what_must_be_a_number_in_a_query_is_one(world: World) -> None:
    wrong, num_sent = [], 0
    for operation in operations(world):
        path = operation.path.removeprefix("/v1")
        for parameter in operation.definition.raw.get("parameters", ()):
            for word in no_numbers(parameter):
                there = path.format_map(world.names(operation.path))
                answer = world.http.request(operation.method, there, params={parameter["name"]: word})
                num_sent += 1
                if answer.status_code != 422 or parameter["name"] not in answer.text:
                    wrong.append(
                        f"{operation.label} {parameter['name']}={word}: {answer.status_code} {answer.text:.200}"
                    )
    assert not wrong, "\n".join(wrong)
    assert num_sent > 20


ODD_WORDS: Final = (
    "%00",
    "a%00b",
    "%FF%FE",
    "%ED%A0%80",
    "a%2Fb",
    "%2E%2E",
    "..%2F..%2Fetc%2Fpasswd",
    "%0A",
    "%0D%0Ax:1",
    "%F0%9F%92%A9",
    "%25",
    "%",
    "-1",
    "1e999",
    "nan",
    "9" * 30,
    "x" * 5000,
    "small",
    "",
)
"""Values of a path or a query, as they are sent: NUL, what is no UTF-8, a lone surrogate, ways out, lines, numbers."""
ODD_NUMBERS: Final = ("%00", "%FF%FE", "1e999", "nan", "9" * 30, "")
"""Those that are sent where a query must have a number or one of a few words: all others are refused like these."""
DEEP: Final = 50_000
ODD_VALUES: Final = (
    "null",
    "true",
    "-1",
    "0.5",
    "1e999",
    "NaN",
    "1" + "0" * 400,
    "9223372036854775808",
    '""',
    '"\\u0000"',
    '"\\ud800"',
    '"../../etc"',
    '"' + "x" * 70_000 + '"',
    "[]",
    "{}",
    '[["small"]]',
    '{"\\u0000": "\\ud800"}',
)
"""Values of a field, as they are sent."""
ODD_BODIES: Final = (
    b"",
    b" ",
    b"null",
    b"[]",
    b"7",
    b"{",
    b'{"name": "a", "name": "b"}',
    b'{"\\ud800": 1}',
    b"\xff\xfe{}",
    b"\xef\xbb\xbf{}",
    b"{} {}",
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"[" * DEEP + b"]" * DEEP,
    b"a=b&c=d",
)
ODD_TYPES: Final = (
    "application/json",
    "text/plain",
    "multipart/form-data",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "no/such; charset=no-such",
    "\xff",
    "",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request as it stands on the wire."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


_PARAMETER: Final = re.compile(r"\{(\w+)[^}]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A route with the names that it reads."""

    method: str
    path: str
    query: tuple[tuple[str, bool], ...]
    """Each with whether it takes any text."""
    fields: tuple[str, ...]


def known(world: World) -> list[Known]:
    """Return every route of the server that ends by itself and leaves it on, IBM's too."""
    return [
        Known(method=method, path=route.path, query=tuple(_query(dependant)), fields=tuple(_fields(dependant)))
        for route in iter_route_contexts(world.server.app.routes)
        if route.path is not None and route.path not in (LINK_PATH, "/v1/shutdown", *ENDLESS, *MEANINGLESS)
        for dependant in [getattr(route, "dependant", Dependant())]
        for method in (route.methods or ())
    ]


MEANINGLESS: Final = frozenset(f"{DEEP_LEARNING}{path}" for _, path in absent.ABSENT)
"""Routes that read nothing of a request."""


def _query(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    for field in dependant.query_params:
        if field.alias != "follow":
            yield field.alias, _takes_text(field.field_info.annotation)
    for inner in dependant.dependencies:
        yield from _query(inner)


def _takes_text(annotation: object) -> bool:
    if parts := get_args(annotation):
        return get_origin(annotation) is not Literal and any(map(_takes_text, parts))
    return not isinstance(annotation, type) or (issubclass(annotation, str) and not issubclass(annotation, Enum))


def _fields(dependant: Dependant) -> Iterator[str]:
    for body in dependant.body_params:
        kind = body.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from kind.model_fields


def asks(world: World, route: Known) -> Iterator[Ask]:
    """Yield odd requests for a route."""
    names, literal = world.names(route.path), _PARAMETER.split(route.path)
    there = _PARAMETER.sub(lambda found: names.get(found[1], "small"), route.path)
    if "{" in route.path:
        for word in ODD_WORDS:
            yield Ask(method=route.method, path=word.join(literal[::2]))
    for name, takes_text in route.query:
        for word in (*(ODD_WORDS if takes_text else ODD_NUMBERS), f"1&{name}=%00"):
            yield Ask(method=route.method, path=f"{there}?{name}={word}")
    for tag in ('"x"', "9" * 30, "\xb2", '"1", "2"', 'W/"1"', "") if route.method not in READING else ():
        yield Ask(method=route.method, path=there, headers=(("If-Match", tag), ("Last-Event-ID", tag)))
    if route.fields:
        yield from _bodies(route, there)
    if is_upload(route.method, route.path):
        yield from _forms(route, there)


def _bodies(route: Known, path: str) -> Iterator[Ask]:
    for body in ODD_BODIES:
        yield Ask(method=route.method, path=path, body=body)
    for content_type in ODD_TYPES:
        yield Ask(method=route.method, path=path, body=b'{"name": "x"}', content_type=content_type)
    for value in ODD_VALUES:
        text = ", ".join(f'"{name}": {value}' for name in (*route.fields, "name"))
        yield Ask(method=route.method, path=path, body=f"{{{text}}}".encode())


def _forms(route: Known, path: str) -> Iterator[Ask]:
    for content_type in ODD_TYPES:
        yield Ask(method=route.method, path=path, body=b"--x\r\n", content_type=content_type)
    for value in ODD_VALUES:
        parts = "".join(f'--x\r\nContent-Disposition: form-data; name="{part}"\r\n\r\n{value}\r\n' for part in PARTS)
        form = f"{parts}--x--\r\n".encode()
        yield Ask(method=route.method, path=path, body=form, content_type="multipart/form-data; boundary=x")


PARTS: Final = ("job", "template", "training", "data", "args", "file", "code", "weights")
HEADERS: Final = (("Authorization", "Bearer the-token"),)


def status_of(connection: http.client.HTTPConnection, ask: Ask) -> tuple[int, str]:
    """Send a request as it stands; return the status and the media type of the answer."""
    connection.putrequest(ask.method, ask.path, skip_accept_encoding=True)
    for name, value in (*HEADERS, *ask.headers):
        connection.putheader(name, value.encode("latin-1"))
    connection.putheader("Content-Type", ask.content_type.encode("latin-1"))
    connection.putheader("Content-Length", str(len(ask.body)))
    connection.endheaders(ask.body)
    answer = connection.getresponse()
    answer.read()
    return answer.status, answer.headers.get_content_type()


@pytest.mark.timeout(600)
def test_nothing_odd_makes_the_server_fail(world: World) -> None:
    """Not every path is that of the route it was made for: `..` and what is empty lead to others, which may answer."""
    connection = http.client.HTTPConnection(world.server.address, timeout=30)
    routes, wrong = known(world), []
    assert len(routes) > 100
    for route in routes:
        for ask in asks(world, route):
            try:
                status, media_type = status_of(connection, ask)
            except (OSError, http.client.HTTPException) as error:
                wrong.append(f"{ask!r:.300}: {error!r}")
                connection.close()
                continue
            if status >= 500 and status != NOT_HERE:
                wrong.append(f"{ask!r:.300}: {status}")
                connection.close()
            if status >= 400 and route.path.startswith("/v1/") and route.method != "HEAD" and media_type != MEDIA_TYPE:
                wrong.append(f"{ask!r:.300}: {status} is told as {media_type}")
        if route.method not in READING:
            world.fill()
    connection.close()
    assert not wrong, "\n".join(wrong)


NOT_DRAWN: Final = ("requirements",)
"""What is in it would be looked for in a package registry."""
KINDS: Final[dict[str, tuple[type[BaseModel], str]]] = {
    "user": (UserRequest, ""),
    "resource group": (GroupRequest, ""),
    "queue": (QueueRequest, ""),
    "data set": (DatasetRequest, ""),
    "environment": (EnvironmentRequest, ""),
    "template": (TemplateRequest, "template"),
    "model": (ModelRequest, ""),
    "training": (TrainingRequest, ""),
    "job": (JobRequest, "job"),
}
"""The bodies, and the part of a form that they come in."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", KINDS)
def test_one_odd_value_among_right_ones_makes_nothing_fail(world: World, kind: str) -> None:
    request, part = KINDS[kind]
    bases: dict[str, tuple[str, Any]] = {make.kind: (make.path, make.body) for make in world.makes}
    path, base = (bases | {"job": ("/jobs", {"script": "main.py"})})[kind]
    wrong = []
    for field in set(request.model_fields) - set(NOT_DRAWN):
        for number, value in enumerate(ODD_VALUES):
            right = {**base, "name": f"odd-{field.replace('_', '-')}-{number}"[:40]}
            right.pop(field, None)
            body = f'{{"{field}": {value}, {json.dumps(right)[1:]}'.encode()
            if part:
                answer = world.http.post(path, files={part: (None, body), "code": ("c", code())})
            else:
                answer = world.http.post(path, content=body, headers={"Content-Type": "application/json"})
            if answer.status_code >= 500 or (answer.is_error and answer.headers["content-type"] != MEDIA_TYPE):
                wrong.append(f"{body!r:.200}: {answer.status_code} {answer.text:.200}")
            world.server.tick(0.0)
    assert not wrong, "\n".join(wrong)
