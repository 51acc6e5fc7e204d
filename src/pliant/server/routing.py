"""How routes are declared: below a prefix, and each with who may use it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Request, params

from pliant.core.access import Permission
from pliant.core.errors import InvalidInput, Problem
from pliant.server.late_route import LateRoute
from pliant.server.middleware.authorisation import Audience, Needs, OpenTo
from pliant.server.middleware.problems import describe_errors

F = TypeVar("F", bound=Callable[..., Any])

PREFIX: Final = "/v1"
"""Of Pliant's own routes. Every router carries its prefix itself, so that a route knows its whole path."""


async def refuse_nul(request: Request) -> None:
    """Refuse a name with a NUL character in a path or a query: no database and no file system takes one.

    Raises:
        InvalidInput: with every place that holds one.
    """
    given = [*request.path_params.items(), *parse_qsl(request.scope["query_string"].decode("latin-1"))]
    wrong = dict.fromkeys(name for name, value in given if "\0" in str(value))
    if wrong:
        message = "it holds a NUL character, which nothing here has in its name; remove it"
        raise InvalidInput(*(Problem(field=name, message=message) for name in wrong))


def declare(access: Permission | Audience, needs: type[Needs] = Needs) -> Sequence[params.Depends]:
    """Return the dependencies by which a route says who may use it: those with a permission, or an audience."""
    if isinstance(access, Audience):
        return [Depends(OpenTo(access))]
    return [Depends(needs(access)), Depends(refuse_nul)]


class Routes:
    """Declares routes below a prefix.

    Every method takes the path, who may use the route, a summary, and the errors that it answers with besides those of
    every route (`responses`). Other options are those of FastAPI's routes.

    Args:
        needs: how a permission is checked; another API can take other credentials.
        options: those of FastAPI's router.
    """

    def __init__(self, prefix: str = PREFIX, *, needs: type[Needs] = Needs, **options: Any) -> None:
        self.router = APIRouter(prefix=prefix, **{"route_class": LateRoute, **options})
        self._needs = needs
        self.get = partial(self.add, "GET")
        self.head = partial(self.add, "HEAD")
        self.post = partial(self.add, "POST")
        self.put = partial(self.add, "PUT")
        self.patch = partial(self.add, "PATCH")
        self.delete = partial(self.add, "DELETE")

    def add(
        self,
        method: str,
        path: str,
        access: Permission | Audience,
        summary: str | None = None,
        *errors: int,
        responses: Mapping[int | str, Any] = MappingProxyType({}),
        **options: Any,
    ) -> Callable[[F], F]:
        """Return what makes a function the answer of a route."""
        described = errors_of(access, errors) if self.router.include_in_schema else {}

        def decorate(function: F) -> F:
            self.router.add_api_route(
                path,
                function,
                methods=[method],
                summary=summary,
                dependencies=declare(access, self._needs),
                responses={**described, **responses},
                **options,
            )
            return function

        return decorate


def errors_of(access: Permission | Audience, errors: Sequence[int]) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the errors that a route answers with.

    A route that asks for credentials always has four: unknown caller, no permission, wrong input, too many guesses.
    """
    always = () if access is Audience.EVERYBODY else (401, 403, 422, 429)
    return describe_errors(*always, *errors)
