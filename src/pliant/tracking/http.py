"""Asks a server for JSON over HTTP, with the standard library alone: a script's environment may have nothing else."""

import base64
import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pliant.tracking.tracker import TrackerDown, TrackerRefused

_TIMEOUT_S: Final = 10.0
_MAX_ANSWER: Final = 32 << 20
_MAX_REASON: Final = 300
_LATER: Final = frozenset({408, 425, 429})
"""Statuses below 500 that say: not now."""


class HttpRefusal(TrackerRefused):
    """The server answered that it will not; `code` is what its JSON calls the reason."""

    def __init__(self, message: str, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerAddress:
    """Where a server is, and what it wants to know of who asks."""

    url: str
    """http or https, without a name or a password in it."""
    authorization: str = ""
    tls: ssl.SSLContext | None = None

    @property
    def shown(self) -> str:
        """The address for people."""
        return self.url


def basic_authorization(user: str, password: str) -> str:
    """Return the header's value for a name and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class JsonClient:
    """Sends JSON and reads JSON."""

    def __init__(self, address: TrackerAddress) -> None:
        self._address = address
        self._opener = urllib.request.OpenerDirector()
        for handler in (  # those that urllib has by itself, but for redirects: credentials go to nobody else
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(context=address.tls),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._opener.add_handler(handler)

    def get(self, path: str, query: Mapping[str, str]) -> Any:
        """Ask; raises as `post` does."""
        return self._ask("GET", f"{path}?{urllib.parse.urlencode(query)}", None)

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """Send.

        Raises:
            TrackerDown: nobody answers, or not now.
            HttpRefusal: the server will not.
        """
        return self._ask("POST", path, json.dumps(body, allow_nan=False).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> Any:
        headers = {"Accept": "application/json", "User-Agent": "pliant"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._address.authorization:
            headers["Authorization"] = self._address.authorization
        request = urllib.request.Request(self._address.url + path, data=body, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                return _json(answer.read(_MAX_ANSWER))
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise TrackerDown(f"{self._address.shown} does not answer ({reason})") from error
        except ValueError as error:
            raise TrackerDown(f"{self._address.shown} answers with something that is no JSON") from error

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        try:
            said = _json(error.read(_MAX_ANSWER))
        except (OSError, ValueError, http.client.HTTPException):
            said = {}
        code, text = (str(said.get(key, "")) for key in ("error_code", "message"))
        message = f"{self._address.shown} answers {error.code}"
        if reason := " ".join((text or str(error.reason or "")).split())[:_MAX_REASON]:
            message += f" ({reason})"
        if error.code >= 500 or error.code in _LATER:
            return TrackerDown(message)
        return HttpRefusal(message, error.code, code)


def _json(data: bytes) -> Any:
    found = json.loads(data) if data.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("no object")  # noqa: TRY004 - the text is wrong, as one that is no JSON
    return found
