"""Reads the bodies that FastAPI does not: parts of an upload, or one of several media types."""

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from pliant.api.faults import problems_of
from pliant.core.errors import InvalidInput, Problem, TooLarge
from pliant.files.archive import inspect
from pliant.files.space import translate_disk_errors
from pliant.server.middleware.limits import MAX_BODY_BYTES
from pliant.server.upload import MAX_SUBMISSION_BYTES

T = TypeVar("T", bound=BaseModel)


def parse_body(kind: type[T], text: bytes) -> T:
    """Return the body in a JSON document.

    Raises:
        InvalidInput: with everything that is wrong with it.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise InvalidInput(*problems_of(error)) from error


async def parse_body_with_code(kind: type[T], text: bytes, code: Path) -> T:
    """Return the body in a JSON document that came with packed code.

    Raises:
        InvalidInput: with everything that is wrong with it, and with the code then, too.
        TooLarge: it is wrong, and the code holds more than is allowed.
    """
    try:
        return parse_body(kind, text)
    except InvalidInput as error:
        raise InvalidInput(*error.problems, *await run_in_threadpool(_problems_of_code, code)) from error


def _problems_of_code(code: Path) -> Sequence[Problem]:
    try:
        inspect(code)
    except InvalidInput as error:
        return error.problems
    return ()


async def read_small(stream: AsyncIterator[bytes]) -> bytes:
    """Return a body that stays in memory.

    Raises:
        TooLarge: it is longer than other bodies may be.
    """
    body = b""
    async for chunk in stream:
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(f"the body is longer than {MAX_BODY_BYTES >> 20} MiB; send files as parts of their own")
    return body


@contextmanager
def upload_file(folder: Path) -> Iterator[Path]:
    """Yield a new file for an upload, which is removed after.

    Raises:
        Unavailable: it cannot be made.
    """
    with translate_disk_errors(folder), tempfile.NamedTemporaryFile(dir=folder) as file:
        yield Path(file.name)


_TYPES: Final = {"job": "application/json", "code": "application/gzip"}


def body_with_code(job: type[BaseModel], code: str) -> dict[str, Any]:
    """Return how OpenAPI describes a body of a JSON part `job` and code as a tar.gz.

    Args:
        job: the class of the part, in the place of its schema.
        code: what the code is, the beginning of a sentence.
    """
    limit = MAX_SUBMISSION_BYTES >> 20
    parts = {
        "job": job,
        "code": {
            "type": "string",
            "format": "binary",
            "description": f"{code} as a tar.gz: files and folders only, {limit} MiB at most.",
        },
    }
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["job", "code"],
                        "additionalProperties": False,
                        "properties": parts,
                    },
                    "encoding": {
                        "job": {"contentType": "application/json"},
                        "code": {"contentType": "application/gzip"},
                    },
                }
            },
        }
    }


def with_schemas(part: Any) -> Any:
    """Return a part of a description with the schemas of the classes that stand in their places.

    Routes name classes: to make the schema of one takes long, and few who start a server ask for its description.
    """
    if isinstance(part, Mapping):
        return {name: with_schemas(value) for name, value in part.items()}
    if isinstance(part, list):
        return [with_schemas(value) for value in part]
    return _schema_of(part) if isinstance(part, type) else part


def _schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a body without references, to stand anywhere in the OpenAPI page."""
    schema = kind.model_json_schema()
    definitions = schema.pop("$defs", {})

    def inline(part: Any) -> Any:
        if isinstance(part, list):
            return [inline(one) for one in part]
        if not isinstance(part, dict):
            return part
        rest = {name: inline(value) for name, value in part.items() if name != "$ref"}
        if "$ref" not in part:
            return rest
        return {**inline(definitions[part["$ref"].rpartition("/")[2]]), **rest}

    whole = inline(schema)
    assert isinstance(whole, dict)
    return whole
