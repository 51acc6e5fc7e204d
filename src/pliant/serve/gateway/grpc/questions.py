"""The small calls: what a gateway says of itself and of models, as messages. The same facts as over HTTP."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pliant.serve.gateway.access import EndpointAccess
from pliant.serve.gateway.callers import CallerRights
from pliant.serve.gateway.description import (
    SERVER,
    describe_config,
    describe_index,
    describe_model,
    describe_ready,
)
from pliant.serve.gateway.endpoint_table import EndpointService
from pliant.serve.gateway.route import read_version
from pliant.serve.gateway.statistics import ModelStatistics
from pliant.serve.gateway.version_service import VersionService
from pliant.serve.protocol.grpc import encode_message, read_plain

_TYPES: Final = (
    *("INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"),
    *("FP16", "FP32", "FP64", "STRING", "BF16"),
)
"""Of Triton's enumeration, in its order."""
_IN_CONFIG: Final = ("name", "platform", "backend", "version_policy", "max_batch_size", "dynamic_batching")
Answer = Callable[[dict[str, Any], CallerRights], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]


class GrpcQuestions:
    """Answers what needs no kernel.

    Args:
        access: who may see which endpoints.
        statistics: what was counted of models.
    """

    def __init__(self, access: EndpointAccess, statistics: ModelStatistics) -> None:
        self._access = access
        self._statistics = statistics
        self._answers: dict[str, Answer] = {
            "ServerMetadata": lambda *_: SERVER,
            "ModelReady": lambda asked, rights: {"ready": describe_ready(*self._find(asked, rights))[0]},
            "ModelMetadata": lambda asked, rights: describe_model(*self._find(asked, rights)),
            "ModelConfig": lambda asked, rights: {"config": _config(describe_config(*self._find(asked, rights)))},
            "ModelStatistics": self._stats,
            "RepositoryIndex": self._index,
        }

    def __contains__(self, call: str) -> bool:
        return call in self._answers

    async def answer(self, call: str, message: bytes, rights: CallerRights) -> bytes:
        """Return the answer to a call.

        Args:
            call: its name, without that of the service.
            message: the request.
            rights: of who asks.

        Raises:
            InvalidInput: it is no such request.
            Refused: it is about something that is not there.
        """
        asked = read_plain(f"{call}Request", message)
        answer = self._answers[call](asked, rights)
        return encode_message(f"{call}Response", await answer if isinstance(answer, Awaitable) else answer)

    def _find(self, asked: dict[str, Any], rights: CallerRights) -> tuple[EndpointService, VersionService | None]:
        endpoint = self._access.find(asked["name"], rights)
        return endpoint, endpoint.show(read_version(asked["version"]) if asked["version"] else None)

    async def _stats(self, asked: dict[str, Any], rights: CallerRights) -> Mapping[str, Any]:
        if not asked["name"]:
            services = [service for one in self._access.visible(rights) for service in one.versions.values()]
        else:
            endpoint, service = self._find(asked, rights)
            named = [] if service is None else [service]
            services = named if asked["version"] else list(endpoint.versions.values())
        return await self._statistics.describe(services)

    def _index(self, asked: dict[str, Any], rights: CallerRights) -> Mapping[str, Any]:
        entries = [entry for one in self._access.visible(rights) for entry in describe_index(one)]
        return {"models": [entry for entry in entries if entry["state"] == "READY" or not asked["ready"]]}


def _config(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration as the message has it: its tensors' types are numbers."""
    config: dict[str, Any] = {key: said[key] for key in _IN_CONFIG if key in said}
    for key in ("input", "output"):
        config[key] = [one | {"data_type": _number(one["data_type"])} for one in said[key]]
    return config | {"model_transaction_policy": said["model_transaction_policy"]}


def _number(data_type: str) -> int:
    name = data_type.removeprefix("TYPE_")
    return _TYPES.index(name) if name in _TYPES else 0
