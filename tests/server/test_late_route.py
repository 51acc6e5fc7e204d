"""Routes that are worked out when they are asked for first."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from pliant.core.access import Permission
from pliant.server.late_route import LateRoute
from pliant.server.middleware.authorisation import Audience, declared_access
from pliant.server.routing import Routes


def doubled(number: int) -> dict[str, int]:
    return {"doubled": 2 * number}


def late_route(access: Permission | Audience = Audience.EVERYBODY) -> LateRoute:
    routes = Routes("/v1/planted")
    routes.get("/{number}", access, "Double a number")(doubled)
    (route,) = routes.router.routes
    assert isinstance(route, LateRoute)
    return route


def application(route: LateRoute) -> FastAPI:
    app = FastAPI(openapi_url=None)
    app.router.routes.append(route)
    return app


def test_who_may_use_a_route_is_known_before_anything_is_worked_out() -> None:
    route = late_route(Permission.SELF)

    (access,) = declared_access(application(route)).values()

    assert getattr(access, "permission", None) is Permission.SELF
    assert "dependant" not in vars(route)


def test_the_first_request_is_answered_as_all_others_are() -> None:
    client = TestClient(application(late_route()))

    answers = [client.get("/v1/planted/21") for _ in range(2)]

    assert [answer.json() for answer in answers] == [{"doubled": 42}] * 2
    assert client.get("/v1/planted/none").status_code == 422
    assert client.put("/v1/planted/21").status_code == 405


def test_whoever_asks_while_it_is_worked_out_waits_for_it() -> None:
    route, together = late_route(), Barrier(8)

    def look(name: str) -> object:
        together.wait(10)
        return getattr(route, name)

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(look, ["app", "dependant", "description", "responses"] * 2))

    assert found[:4] == found[4:]
    assert found[0] is route.app


def test_what_a_route_never_has_is_missing() -> None:
    with pytest.raises(AttributeError, match="'colour'"):
        late_route().colour  # noqa: B018
