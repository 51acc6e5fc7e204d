"""One HTTP connection pool to one server; turns whatever goes wrong into Pliant's own errors.

Knows paths and bodies only as strings and bytes. Proxies from the environment are not used: the token must not pass
one.
"""

import json
import math
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from pliant.api.trust import Trust
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.session import is_local
from pliant.core.errors import (
    Conflict,
    Forbidden,
    InternalError,
    InvalidInput,
    NoSpace,
    NotFound,
    PliantError,
    Problem,
    Stale,
    TooLarge,
    TooMany,
    Unauthorized,
    Unavailable,
)

if TYPE_CHECKING:
    from pliant.api.problems import ProblemDetails

T = TypeVar("T")

Params = Mapping[str, str | int | float | bool | list[str] | None]
"""What stands behind the `?` of a path; what is None does not."""

_CONNECT_TIMEOUT_S: Final = 5.0
_LOOK: Final = "look at server.log in its home"
_MAX_ERROR: Final = 2000
"""Characters of what a model has raised."""
_BY_STATUS: Final[Mapping[int, type[PliantError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    412: Stale,
    413: TooLarge,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    507: NoSpace,
}


class Idle(Unavailable):
    """A stream was silent for longer than the timeout; nothing is wrong, ask again from where it stopped."""


class Connection:
    """Requests to one server."""

    def __init__(
        self,
        url: str,
        token: str | None,
        timeout_s: float,
        transport: httpx.BaseTransport | None = None,
        trust: Trust | None = None,
        root: str = "/v1",
    ) -> None:
        """Prepare to talk to the server; nothing is sent yet. Without a token only some routes are open.

        Paths are below `root`.

        Raises:
            InvalidInput: the URL, the token or the certificate cannot be one.
        """
        self.url = url.rstrip("/")
        self._token = token
        self._beside: dict[tuple[str, str | None], Connection] = {}
        self._lock = threading.Lock()
        self.timeout_s = timeout_s
        try:
            parsed = httpx.URL(self.url)
            headers = {} if token is None else {b"Authorization": f"Bearer {token}".encode("ascii")}
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise _bad_address(f"{error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise _bad_address(f"{url!r} is not the address of a server; give one like http://127.0.0.1:7311")
        if token is not None and any(sign.isspace() for sign in token):
            raise _bad_address("the token holds a space or a line break; give it as the file `token` has it")
        self.trust = trust = trust or Trust()
        self._extensions = {} if trust.server_name is None else {"sni_hostname": trust.server_name}
        self._http = httpx.Client(
            base_url=f"{self.url}{root}",
            headers=headers,
            timeout=self._timeout(timeout_s),
            transport=transport,
            trust_env=False,
            verify=trust.context() if parsed.scheme == "https" else _trust_nobody(),
        )

    def close(self) -> None:
        """Close the connections."""
        for other in self._beside.values():
            other.close()
        self._http.close()

    def beside(self, url: str, certificate: str | None = None) -> "Connection":
        """Return a connection to another process of this server, as the same person; it is closed with this one.

        Args:
            url: where that process answers; paths are below it.
            certificate: PEM, the one that it shows; None: the server's.

        Raises:
            InvalidInput: the token would pass in the clear, and does not on the way to the server.
        """
        if self.url.startswith("https:") and not url.startswith("https:") and not is_local(url):
            message = f"{url!r} does not begin with https, so that others could read your token; let it serve by TLS"
            raise InvalidInput.at("url", message)
        with self._lock:
            if (other := self._beside.get((url, certificate))) is None:
                trust = self.trust if certificate is None else Trust(pem=certificate)
                other = self._beside[url, certificate] = Connection(
                    url, self._token, self.timeout_s, None, trust, root=""
                )
        return other

    def call(
        self, method: str, path: str, *, timeout_s: float | None = None, look: str = _LOOK, **what: Any
    ) -> httpx.Response:
        """Send a request and return the good answer.

        Args:
            method: of HTTP.
            path: below the root.
            timeout_s: how long to wait for the answer; None: as long as for all others.
            look: what somebody does who wants to know why it failed.
            what: as httpx takes it.

        Raises:
            PliantError: what the server said, or `Unavailable` if it said nothing.
            KeyboardInterrupt: with a note, if the server may have changed something.
        """
        timeout = self._timeout(timeout_s or self.timeout_s)
        with self._name_faults(), _noting_changes(method):
            response = self._http.request(method, path, timeout=timeout, extensions=self._extensions, **what)
        _check(response, look)
        return response

    def send(
        self, method: str, path: str, body: BaseModel, revision: int | None = None, *, timeout_s: float | None = None
    ) -> httpx.Response:
        """Send a body: what was given of it; refused as stale if its noun is not at this revision any more.

        Raises:
            PliantError: as for `call`.
        """
        headers = {"Content-Type": "application/json", **if_match(revision)}
        return self.call(
            method, path, content=body.model_dump_json(exclude_unset=True), headers=headers, timeout_s=timeout_s
        )

    def get(self, kind: LazyAdapter[T], path: str, params: Params | None = None) -> T:
        """Return the answer to a GET as a noun."""
        return parse(kind, self.call("GET", path, params=_present(params or {})))

    @contextmanager
    def stream(
        self,
        path: str,
        params: Params,
        *,
        timeout_s: float,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        look: str = _LOOK,
    ) -> Iterator[Iterator[bytes]]:
        """GET a long answer, or POST a body for one, and hand out its bytes as they come.

        Raises:
            Idle: the answer began, then was silent for `timeout_s`.
            PliantError: as for `call`.
        """
        timeout = self._timeout(timeout_s)
        with self._name_faults():
            request = self._http.build_request(
                "GET" if body is None else "POST",
                path,
                params=_present(params),
                headers=headers,
                content=body,
                timeout=timeout,
                extensions=self._extensions,
            )
            response = self._http.send(request, stream=True)
        try:
            if response.is_error:
                with self._name_faults():
                    response.read()
            _check(response, look)
            yield self._bytes_of(response)
        finally:
            response.close()

    def _bytes_of(self, response: httpx.Response) -> Iterator[bytes]:
        try:
            yield from response.iter_bytes()
        except httpx.ReadTimeout as error:
            raise Idle(f"the server at {self.url} sent nothing for a while") from error
        except httpx.TransportError as error:
            raise Unavailable(f"the connection to the server at {self.url} was lost ({error}); try again") from error

    @contextmanager
    def _name_faults(self) -> Iterator[None]:
        try:
            yield
        except httpx.ConnectError as error:
            if (fault := _tls_fault(error)) is not None:
                raise Unavailable(
                    f"the server at {self.url} cannot be trusted: {fault}; give its certificate with --ca, or "
                    f"PLIANT_CA, and its address by a name that stands in it"
                ) from error
            raise Unavailable(f"no server answers at {self.url}; start one with `pliant up`") from error
        except httpx.TimeoutException as error:
            raise Unavailable(
                f"the server at {self.url} did not answer in time; try again, or look at server.log in its home"
            ) from error
        except httpx.TransportError as error:
            raise Unavailable(
                f"the connection to the server at {self.url} was lost ({error}); try again, "
                f"or start it with `pliant up`"
            ) from error

    def _timeout(self, timeout_s: float) -> httpx.Timeout:
        return httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_TIMEOUT_S))


@contextmanager
def _noting_changes(method: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if method != "GET":
            interrupt.add_note("the server had been asked already, and may have done it; look before you try again")
        raise


def _trust_nobody() -> ssl.SSLContext:
    """Return what refuses every certificate, for a server that shows none; to read all that are trusted takes 20 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _present(params: Params) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}


def if_match(revision: int | None) -> dict[str, str]:
    """Return the header that names a revision; nothing for any."""
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def _tls_fault(error: BaseException) -> str | None:
    """Return what was wrong with the certificate, or with TLS altogether; None if nothing was."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ssl.SSLCertVerificationError):
            return found.verify_message
        if isinstance(found, ssl.SSLError):
            return f"it does not speak TLS ({found.reason})"
        found = found.__cause__ or found.__context__
    return None


def parse(kind: LazyAdapter[T], response: httpx.Response) -> T:
    """Return the noun in an answer. A `null` where a number must stand is a number that JSON lacks, and becomes NaN.

    Raises:
        InternalError: the answer has another shape.
    """
    try:
        with _noting_changes(response.request.method):
            return kind.validate_json(response.content)
    except ValidationError as error:
        lacking = [found["loc"] for found in error.errors() if found["type"] == "float_type" and found["input"] is None]
        if not lacking or len(lacking) < error.error_count():
            raise _not_understood(response, error) from error
    return kind.validate_json(_with_nan(response.content, lacking))


def _with_nan(document: bytes, places: Sequence[tuple[int | str, ...]]) -> str:
    """Return a JSON document with NaN (which pydantic reads) at these places."""
    root = json.loads(document)
    for place in places:
        at = root
        for key in place[:-1]:
            at = at[key]
        at[place[-1]] = math.nan
    return json.dumps(root)


def _not_understood(response: httpx.Response, error: ValidationError) -> InternalError:
    return InternalError(
        f"the server's answer to {response.request.method} {response.request.url.path} is not what this client "
        f"understands ({error.error_count()} differences, first: {error.errors()[0]['msg']}); "
        f"see that client and server have the same version"
    )


def _check(response: httpx.Response, look: str = _LOOK) -> None:
    if response.is_success:
        return
    details = _details(response)
    status = response.status_code
    if status in (400, 422):
        items = details.problems
        raise InvalidInput(
            *(Problem(field=item.field, message=item.message) for item in items),
            *(() if items else (Problem(field="", message=details.detail),)),
        )
    if status == 429:
        raise TooMany(details.detail, wait_s=_seconds(response.headers.get("Retry-After", "")))
    kind = _BY_STATUS.get(status, InternalError)
    if kind is InternalError:
        raise InternalError(f"the server answered {status}: {details.detail}; {look}")
    raise kind(details.detail)


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() else 1.0


def _details(response: httpx.Response) -> "ProblemDetails":
    from pliant.api.problems import ProblemDetails  # where nothing is wrong its body is not made

    try:
        return ProblemDetails.model_validate_json(response.content)
    except ValidationError:
        text = _error_in(response) or " ".join(response.text.split())[:300] or response.reason_phrase
        return ProblemDetails(title=response.reason_phrase, status=response.status_code, detail=text)


def _error_in(response: httpx.Response) -> str:
    """Return what is wrong in the words of the Open Inference Protocol; empty if the answer is none of it."""
    try:
        found = response.json()
    except ValueError:
        return ""
    return str(found.get("error") or "")[:_MAX_ERROR] if isinstance(found, dict) else ""


def _bad_address(message: str) -> InvalidInput:
    return InvalidInput.at("url", message)
