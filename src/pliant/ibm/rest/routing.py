"""How IBM's routes are declared: with IBM's form of errors, and a cookie among the credentials."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from pliant.core.errors import PliantError
from pliant.ibm.rest.credentials import IbmNeeds
from pliant.ibm.rest.errors import response_to
from pliant.server.late_route import LateRoute
from pliant.server.middleware.problems import invalid_request
from pliant.server.routing import Routes


class IbmRoute(LateRoute):
    """A route whose errors are answered in IBM's form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except PliantError as error:
                return response_to(request, error)
            except RequestValidationError as error:
                return response_to(request, invalid_request(error))

        return answer


def ibm_routes(prefix: str) -> Routes:
    """Return an empty collection of routes below a prefix. Pliant's own description leaves them to docs/wmla.md."""
    return Routes(prefix, needs=IbmNeeds, route_class=IbmRoute, include_in_schema=False)
