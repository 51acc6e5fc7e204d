"""The Open Inference Protocol, and IBM's inference route, over HTTP: an ASGI application without a framework.

    GET  /v2  /v2/health/live  /v2/health/ready  /v2/models/stats
    GET  /v2/models/NAME[/versions/N][/ready | /config | /stats]
    POST /v2/models/NAME[/versions/N][/infer | /generate | /generate_stream]
    POST /v2/repository/index     /dlim/v1/inference/NAME
    POST /v2/repository/models/NAME/load        /v2/repository/models/NAME/unload
    GET  /openapi.json

All but health and the description wants a token (`EndpointAccess`).
The body goes to a kernel as it came, and the kernel's to the client: neither is looked into.
"""

import asyncio
import json
import math
import re
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, Final

from pliant.core.errors import Unauthorized, Unavailable
from pliant.serve.gateway.access import EndpointAccess, Headers, count
from pliant.serve.gateway.admission import Admission, AdmittedRequest
from pliant.serve.gateway.description import (
    SERVER,
    describe_config,
    describe_index,
    describe_model,
    describe_ready,
)
from pliant.serve.gateway.endpoint_table import EndpointService, EndpointTable, unknown
from pliant.serve.gateway.http_parts import PartWriter, Send, find_form
from pliant.serve.gateway.inference import InferenceRequest, KernelAnswer, await_answer
from pliant.serve.gateway.inferences import Inferences
from pliant.serve.gateway.model_repository import (
    DEPLOY,
    MAX_BODY,
    ModelChange,
    ModelRepository,
    read_parameters,
    refuse_overrides,
)
from pliant.serve.gateway.openapi import describe_routes
from pliant.serve.gateway.refused import TRY_AGAIN_S, ClientGone, Refused, not_here
from pliant.serve.gateway.request_body import BodyReader, Receive
from pliant.serve.gateway.route import ASKING, Route, RouteKind, find_route
from pliant.serve.gateway.statistics import ModelStatistics
from pliant.serve.gateway.version_service import VersionService

_JSON_LENGTH: Final = b"inference-header-content-length"
_TYPE: Final = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}(; ?[\w-]{1,50}=[\w.+-]{1,50})?", re.ASCII)
_LEFT_OVER_BYTES: Final = 64 << 10
"""An unread body up to this is read by the HTTP server; for a longer one the connection is closed."""


class HttpApi:
    """Answers HTTP.

    Args:
        table: what is served.
        access: who may ask which endpoints.
        admission: how much is taken in at once.
        inferences: the requests that are under way.
        bodies: reads bodies.
        repository: loads and unloads models.
        statistics: what was counted of models.
    """

    def __init__(
        self,
        *,
        table: EndpointTable,
        access: EndpointAccess,
        admission: Admission,
        inferences: Inferences,
        bodies: BodyReader,
        repository: ModelRepository,
        statistics: ModelStatistics,
    ) -> None:
        self._table = table
        self._access = access
        self._admission = admission
        self._inferences = inferences
        self._bodies = bodies
        self._repository = repository
        self._statistics = statistics

    async def answer(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers: Headers = dict(scope["headers"])
        try:
            route = find_route(scope["method"], scope["path"])
            if route.kind in ASKING:
                await self._infer(route, headers, receive, send)
            elif route.kind is RouteKind.DESCRIPTION:
                await _send_body(send, 200, describe_routes())
            elif route.kind in (RouteKind.LOAD, RouteKind.UNLOAD):
                await self._change(route, headers, receive, str((scope.get("client") or ("",))[0]))
                await _send_json(send, 200, {})
            else:
                status, value = await self._ask(route, headers)
                await _send_json(send, status, value)
        except ClientGone:
            return
        except Refused as refused:
            await _send_refusal(send, refused, headers)
        except Unauthorized as error:
            nobody = Refused(401, str(error), headers=((b"www-authenticate", b"Bearer"),))
            await _send_refusal(send, nobody, headers)
        except Unavailable as error:
            await _send_refusal(send, Refused(503, str(error), retry_after_s=TRY_AGAIN_S), headers)

    async def _ask(self, route: Route, headers: Headers) -> tuple[int, object]:
        """Return the answer to a question: its status and JSON."""
        if route.kind is RouteKind.LIVE:
            return 200, {"live": True}
        if route.kind is RouteKind.READY:
            ready = self._table.is_known and not self._admission.is_draining
            return 200 if ready else 503, {"ready": ready}
        rights = await self._access.authenticate(headers)
        match route.kind:
            case RouteKind.SERVER:
                return 200, SERVER
            case RouteKind.NOT_HERE:
                raise not_here()
            case RouteKind.INDEX:
                return 200, [entry for one in self._access.visible(rights) for entry in describe_index(one)]
            case RouteKind.ALL_STATS:
                services = [service for one in self._access.visible(rights) for service in one.versions.values()]
                return 200, await self._statistics.describe(services)
        endpoint = self._access.find(route.model, rights)
        service = endpoint.show(route.version)
        if route.kind is RouteKind.MODEL_STATS:
            named = [] if service is None else [service]
            services = list(endpoint.versions.values()) if route.version is None else named
            return 200, await self._statistics.describe(services)
        return self._ask_model(route, endpoint, service)

    def _ask_model(self, route: Route, endpoint: EndpointService, service: VersionService | None) -> tuple[int, object]:
        match route.kind:
            case RouteKind.MODEL_READY:
                ready, value = describe_ready(endpoint, service)
                return 200 if ready else 503, value
            case RouteKind.MODEL_CONFIG:
                return 200, describe_config(endpoint, service)
            case _:
                return 200, describe_model(endpoint, service)

    async def _infer(self, route: Route, headers: Headers, receive: Receive, send: Send) -> None:
        """Pass a request on to a kernel, and the answer back."""
        with self._admission.enter() as admitted:
            rights = await self._access.authenticate(headers)
            endpoint = self._access.find(route.model, rights)
            service = endpoint.choose(route.version)
            count(rights, endpoint, service, admitted)
            body = await self._read(service, headers, receive, admitted)
            service = self._still(endpoint, service, route)
            form = find_form(route, headers)
            header = _frame_header(route, headers, len(body)) | ({} if form is None else {"parts": True})
            under_way = self._inferences.begin(
                service,
                header,
                body,
                patience_s=_patience(headers),
                names_version=route.version is not None,
                gone=partial(_await_end, receive),
                admitted=admitted,
            )
            del body  # the request has it until it is settled
            try:
                if form is not None:
                    await PartWriter(form, send, _kernel_headers).relay(under_way.request)
                else:
                    await _relay(under_way.request, send, is_v2=route.kind is not RouteKind.DLIM_INFER)
            finally:
                self._inferences.finish(under_way)

    async def _change(self, route: Route, headers: Headers, receive: Receive, address: str) -> None:
        """Load or unload a model."""
        with self._admission.enter() as admitted:
            rights = await self._access.identify(headers)
            self._access.find(route.model, rights)
            try:
                body = await self._bodies.read(receive, headers, MAX_BODY, admitted)
            except Refused as refused:
                if refused.status == 413:
                    raise Refused(413, f"the body is longer than {MAX_BODY} bytes; {DEPLOY}") from None
                raise
            parameters, is_load = read_parameters(body), route.kind is RouteKind.LOAD
            if is_load:
                refuse_overrides(parameters)
            change = ModelChange(name=route.model, is_load=is_load, address=address, patience_s=_patience(headers))
            await _while_there(receive, self._repository.change(change, headers, rights))

    def _still(self, endpoint: EndpointService, service: VersionService, route: Route) -> VersionService:
        """Return the version to ask, now that the body is there: things may have changed meanwhile.

        Raises:
            Refused: the endpoint or the version is gone.
        """
        if self._table.find(endpoint.endpoint.name) is not endpoint:
            raise unknown(endpoint.endpoint.name)
        if endpoint.endpoint.started and endpoint.versions.get(service.version.number) is service:
            return service
        return endpoint.choose(route.version)

    async def _read(
        self, service: VersionService, headers: Headers, receive: Receive, admitted: AdmittedRequest
    ) -> bytes | bytearray:
        try:
            return await self._bodies.read(receive, headers, service.endpoint.profile.max_body_bytes, admitted)
        except Refused as refused:
            if refused.status in (413, 503):
                service.meter.refuse()
            raise


async def _while_there(receive: Receive, doing: Coroutine[Any, Any, None]) -> None:
    """Do something for as long as the client is there.

    Raises:
        ClientGone: it has left.
    """
    done, left = asyncio.create_task(doing), asyncio.create_task(_await_end(receive))
    try:
        await asyncio.wait((done, left), return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise ClientGone
        done.result()
    finally:
        done.cancel()
        left.cancel()


async def _await_end(receive: Receive) -> None:
    """Return when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _patience(headers: Headers) -> float | None:
    text = headers.get(b"x-request-timeout-s")
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 86_400:
        shown = text[:30].decode("latin-1")
        raise Refused(400, f"X-Request-Timeout-S is {shown!r}; send seconds, above 0 and up to 86400")
    return seconds


def _frame_header(route: Route, headers: Headers, num_bytes: int) -> dict[str, Any]:
    """Return what a kernel is told of a request."""
    if route.kind is RouteKind.DLIM_INFER:
        return {"api": "dlim"}
    if route.kind in (RouteKind.GENERATE, RouteKind.GENERATE_STREAM):
        return {"api": "generate"}
    length = headers.get(_JSON_LENGTH)
    if length is None:
        return {"api": "v2"}
    if not (length.isdigit() and len(length) < 12 and int(length) <= num_bytes):
        shown = length[:30].decode("latin-1")
        raise Refused(400, f"Inference-Header-Content-Length is {shown!r}; the body has {num_bytes} bytes")
    return {"api": "v2", "json": int(length)}


async def _relay(request: InferenceRequest, send: Send, *, is_v2: bool) -> None:
    """Send the one answer of a kernel.

    Raises:
        Refused: there is none.
        ClientGone: nobody is left to send it to.
    """
    answer = await await_answer(request)
    default = "application/octet-stream" if answer.num_json is not None or not is_v2 else "application/json"
    kind = answer.type if _TYPE.fullmatch(answer.type) else default
    headers = [
        (b"content-type", kind.encode()),
        *_kernel_headers(answer),
        *(() if answer.num_json is None else ((_JSON_LENGTH, b"%d" % answer.num_json),)),
        (b"content-length", b"%d" % len(answer.body)),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _kernel_headers(answer: KernelAnswer) -> list[tuple[bytes, bytes]]:
    kernel = answer.kernel.encode("ascii", "replace")
    return [(b"pliant-version", b"%d" % answer.version), (b"pliant-kernel", kernel)]


async def _send_refusal(send: Send, refused: Refused, headers: Headers) -> None:
    """Answer that there is no answer. What is left of a long body is not waited for."""
    more = list(refused.headers)
    if refused.retry_after_s is not None:
        more.append((b"retry-after", b"%d" % refused.retry_after_s))
    length = headers.get(b"content-length", b"0")
    is_long = not length.isdigit() or len(length) > 9 or int(length) > _LEFT_OVER_BYTES
    if is_long or b"transfer-encoding" in headers or refused.status == 408:
        more.append((b"connection", b"close"))
    await _send_json(send, refused.status, {"error": refused.message}, more)


async def _send_json(send: Send, status: int, value: object, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    await _send_body(send, status, json.dumps(value).encode(), headers)


async def _send_body(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    about = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *(headers or ())]
    await send({"type": "http.response.start", "status": status, "headers": about})
    await send({"type": "http.response.body", "body": body})
