"""What a request wants, read off its method and path: the Open Inference Protocol and IBM's inference route. Pure."""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from pliant.serve.gateway.refused import Refused

_MAX_PATH: Final = 1000


class RouteKind(Enum):
    """The routes that there are."""

    SERVER = "server"
    LIVE = "live"
    READY = "ready"
    MODEL = "model"
    MODEL_READY = "model ready"
    MODEL_CONFIG = "config"
    MODEL_STATS = "stats"
    ALL_STATS = "all stats"
    INDEX = "index"
    LOAD = "load"
    UNLOAD = "unload"
    INFER = "infer"
    GENERATE = "generate"
    GENERATE_STREAM = "generate stream"
    DLIM_INFER = "dlim"
    DESCRIPTION = "description"
    NOT_HERE = "not here"
    """Known to the protocol, and not done."""


ASKING: Final = frozenset({RouteKind.INFER, RouteKind.GENERATE, RouteKind.GENERATE_STREAM, RouteKind.DLIM_INFER})
"""Those that a kernel answers."""


@dataclass(frozen=True, slots=True)
class Route:
    """What is wanted."""

    kind: RouteKind
    model: str = ""
    version: int | None = None


_OF_MODELS: Final = {
    (): (RouteKind.MODEL, "GET"),
    ("ready",): (RouteKind.MODEL_READY, "GET"),
    ("config",): (RouteKind.MODEL_CONFIG, "GET"),
    ("stats",): (RouteKind.MODEL_STATS, "GET"),
    ("infer",): (RouteKind.INFER, "POST"),
    ("generate",): (RouteKind.GENERATE, "POST"),
    ("generate_stream",): (RouteKind.GENERATE_STREAM, "POST"),
    ("trace", "setting"): (RouteKind.NOT_HERE, ""),
}
_OF_SERVERS: Final = {
    (): (RouteKind.SERVER, "GET"),
    ("health", "live"): (RouteKind.LIVE, "GET"),
    ("health", "ready"): (RouteKind.READY, "GET"),
    ("models", "stats"): (RouteKind.ALL_STATS, "GET"),
    ("repository", "index"): (RouteKind.INDEX, "POST"),
    ("logging",): (RouteKind.NOT_HERE, ""),
    ("trace", "setting"): (RouteKind.NOT_HERE, ""),
}


@lru_cache(maxsize=1024)
def find_route(method: str, path: str) -> Route:
    """Return what is wanted.

    Raises:
        Refused: nothing that there is.
    """
    parts = tuple(path.strip("/").split("/")) if len(path) <= _MAX_PATH else ()
    if parts[:1] == ("v2",):
        return _of_v2(method, parts[1:])
    if len(parts) == 4 and parts[:3] == ("dlim", "v1", "inference"):
        _require(method, "POST")
        return Route(RouteKind.DLIM_INFER, parts[3])
    if parts == ("openapi.json",):
        _require(method, "GET")
        return Route(RouteKind.DESCRIPTION)
    raise _nothing()


def _of_v2(method: str, parts: tuple[str, ...]) -> Route:
    if known := _OF_SERVERS.get(parts):
        _require(method, known[1])
        return Route(known[0])
    if parts[0] == "models" and len(parts) > 1:
        return _of_model(method, parts[1], parts[2:])
    if parts[0] == "repository" and parts[2:] == ("index",):
        _require(method, "POST")
        return Route(RouteKind.INDEX)
    if parts[:2] == ("repository", "models") and parts[3:] in (("load",), ("unload",)):
        _require(method, "POST")
        return Route(RouteKind(parts[3]), parts[2])
    if parts[0] in ("systemsharedmemory", "cudasharedmemory"):
        return Route(RouteKind.NOT_HERE)
    raise _nothing()


def _of_model(method: str, model: str, rest: tuple[str, ...]) -> Route:
    version = None
    if rest[:1] == ("versions",) and len(rest) > 1:
        version, rest = read_version(rest[1]), rest[2:]
    known = _OF_MODELS.get(rest)
    if known is None:
        raise _nothing()
    _require(method, known[1])
    return Route(known[0], model, version)


def read_version(text: str) -> int:
    """Return the number of a version.

    Raises:
        Refused: it is none.
    """
    digits = text.removeprefix("v")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise Refused(404, f"{text[:30]!r} is no version; versions are numbers, such as 3")
    return int(digits)


def _require(method: str, wanted: str) -> None:
    if not wanted or method == wanted or (method == "HEAD" and wanted == "GET"):
        return
    message = f"{method[:20]} is not for this path; send {wanted}"
    raise Refused(405, message, headers=((b"allow", wanted.encode()),))


def _nothing() -> Refused:
    message = (
        "there is nothing at this path; this gateway speaks /v2 (Open Inference Protocol) and /dlim/v1/inference/NAME"
    )
    return Refused(404, message)
