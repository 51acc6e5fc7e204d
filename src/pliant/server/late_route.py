"""A route whose parameters and answers are worked out when it is asked for first.

FastAPI does that where a route is declared. For all routes together it is a third of what a server needs to start, and
most of them are never asked for. What finds a route, and says who may use it, is there from the beginning; a mistake in
the rest of a declaration shows when the description of all routes is made.
"""

import threading
from collections.abc import Callable
from typing import Any, Final

from fastapi.routing import APIRoute
from starlette.routing import compile_path, get_name

_WORKING_OUT: Final = threading.RLock()
"""The description of all routes is made in a thread beside the one that answers."""


class LateRoute(APIRoute):
    """A route of FastAPI that is declared at next to no cost.

    Args:
        path: with the prefix.
        endpoint: what answers.
        options: those of FastAPI's routes.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.path = path
        self.endpoint = endpoint
        self.name = options.get("name") or get_name(endpoint)
        self.methods = {method.upper() for method in options.get("methods") or ("GET",)}
        self.dependencies = list(options.get("dependencies") or ())
        self.include_in_schema = options.get("include_in_schema", True)
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self._options: dict[str, Any] | None = options

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that is not there yet; all of them are from then on."""
        with _WORKING_OUT:
            if (options := self.__dict__.get("_options")) is not None:
                self._options = None
                super().__init__(self.path, self.endpoint, **options)
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"a route has no {name!r}") from None
