"""Refuses a NUL character in a path or a query: no name here holds one, and no database or file system takes one."""

from urllib.parse import parse_qsl

from fastapi import Request

from pliant.core.errors import InvalidInput, Problem


async def without_nul(request: Request) -> None:
    """Refuse a request that asks for a name with a NUL character in it.

    Raises:
        InvalidInput: with every place that holds one.
    """
    given = [*request.path_params.items(), *parse_qsl(request.scope["query_string"].decode("latin-1"))]
    wrong = dict.fromkeys(name for name, value in given if "\0" in str(value))
    if wrong:
        message = "it holds a NUL character, which nothing here has in its name; remove it"
        raise InvalidInput(*(Problem(field=name, message=message) for name in wrong))
