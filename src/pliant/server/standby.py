"""The web application of a server that stands by: whatever it is asked, it says so, and where the one is that leads."""

from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from pliant.core.errors import Unavailable
from pliant.server.middleware.problems import problem_response


def make_standby(leader: Callable[[], str | None]) -> ASGIApp:
    """Return the application; `leader` tells the URL of the server that leads, None if that is not known."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        url = leader()
        where = f"ask {url}" if url is not None else "ask that one"
        response = problem_response(Unavailable(f"this server stands by while another one leads; {where}"))
        await response(scope, receive, send)

    return app
