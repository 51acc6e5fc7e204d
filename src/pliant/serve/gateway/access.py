"""Who may ask which endpoints, for every protocol: the token of a request, its holder, and what they may see.

An endpoint that is not there and one that the caller may not see have the same answer.
"""

from collections.abc import Mapping

from pliant.core.errors import Unauthorized
from pliant.serve.gateway.admission import AdmittedRequest
from pliant.serve.gateway.callers import CallerBook, CallerRights
from pliant.serve.gateway.endpoint_table import EndpointService, EndpointTable, unknown
from pliant.serve.gateway.refused import Refused
from pliant.serve.gateway.version_service import VersionService

Headers = Mapping[bytes, bytes]
"""Of HTTP, or the metadata of gRPC; names are lower-case."""


class EndpointAccess:
    """Lets callers at endpoints.

    Args:
        table: what is served.
        callers: knows whose tokens are.
    """

    def __init__(self, table: EndpointTable, callers: CallerBook) -> None:
        self._table = table
        self._callers = callers

    async def identify(self, headers: Headers) -> CallerRights:
        """Return who asks, whatever they may.

        Raises:
            Unauthorized, Unavailable: as `CallerBook` says.
        """
        return await self._callers.who(read_token(headers))

    async def authenticate(self, headers: Headers) -> CallerRights:
        """Return who asks, who may ask endpoints.

        Raises:
            Unauthorized, Unavailable: as `CallerBook` says.
            Refused: they may not.
        """
        rights = await self.identify(headers)
        if not rights.may_infer:
            raise Refused(403, f"{rights.name} may not ask endpoints: neither role nor token allows it")
        return rights

    def find(self, name: str, rights: CallerRights) -> EndpointService:
        """Return an endpoint.

        Raises:
            Refused: there is none, or they may not see it.
        """
        endpoint = self._table.find(name)
        if endpoint is None or not rights.may_see(endpoint.endpoint):
            raise unknown(name)
        return endpoint

    def visible(self, rights: CallerRights) -> list[EndpointService]:
        """Return all endpoints that somebody may see."""
        return [endpoint for endpoint in self._table if rights.may_see(endpoint.endpoint)]


def count(rights: CallerRights, endpoint: EndpointService, service: VersionService, admitted: AdmittedRequest) -> None:
    """Count a request towards the limits of the token that it shows, and of the endpoint.

    Args:
        rights: of the token.
        endpoint: that is asked.
        service: the version of it.
        admitted: the request.

    Raises:
        Refused: there are too many.
    """
    try:
        if rights.limiter is None:
            admitted.enter(endpoint.limiter)
        else:
            admitted.enter(rights.limiter, endpoint.limiter)
    except Refused:
        service.meter.refuse()
        raise


def read_token(headers: Headers) -> str:
    """Return the token that a request shows.

    Raises:
        Unauthorized: it shows none.
    """
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer":
        token = headers.get(b"x-auth-token") or headers.get(b"x-user-token") or b""
    if not token.strip():
        message = "no token; send 'Authorization: Bearer TOKEN' (or X-Auth-Token, X-User-Token)"
        raise Unauthorized(message)
    return token.strip().decode("latin-1")
