"""Endpoints: deployed, changed and shown by the server; asked, for what their models compute, at the gateway."""

import json
import math
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import quote

import httpx

from pliant.api.endpoints import (
    DeployRequest,
    EndpointAddress,
    EndpointPage,
    EndpointPatch,
    EndpointView,
    GatewayView,
    RollbackRequest,
    TrafficRequest,
)
from pliant.client.folders.pack import Limits, pack
from pliant.client.folders.requirements import beside
from pliant.client.http.connection import Connection, if_match, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.patience import observe
from pliant.client.nouns.noun import NounClient, checked
from pliant.core.endpoint import VersionState
from pliant.core.errors import InternalError, InvalidInput, Unavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UPLOAD_TIMEOUT_S: Final = 3600.0
"""A model of gigabytes is unpacked and checked before the answer."""
_PAGE: Final = 1000
_MAX_BYTES: Final = 16 << 30
_LIMITS: Final = Limits(max_packed_bytes=_MAX_BYTES, max_unpacked_bytes=_MAX_BYTES)
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".zip")
_HEAD_LENGTH: Final = "Inference-Header-Content-Length"
_ENDPOINT_PAGE: Final = LazyAdapter(EndpointPage)
_ADDRESS: Final = LazyAdapter(EndpointAddress)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where an endpoint is asked, and what its model said of its inputs."""

    gateways: tuple[GatewayView, ...]
    """The first is asked."""
    datatypes: Mapping[str, str]
    is_in_doubt: bool = False
    """It did not answer: the server is asked where others are."""


class EndpointClient(NounClient[EndpointView]):
    """Models that answer requests."""

    _root = "/endpoints"
    _view = LazyAdapter(EndpointView)

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._places: dict[str, _Place] = {}

    def list(self, *, after: str = "", limit: int = _PAGE) -> EndpointPage:
        """Return endpoints in the order of their names."""
        return self._connection.get(_ENDPOINT_PAGE, self._root, {"after": after, "limit": limit})

    def deploy(
        self, name: str, what: Path | str | None = None, request: DeployRequest | None = None, **settings: Any
    ) -> EndpointView:
        """Deploy a folder, a file, an archive or a trained job as the newest version of an endpoint.

        It takes the traffic as its kernels get ready, which `wait` waits for; with `traffic=10` it takes 10
        percent, beside the version that serves. What is left out stays as the endpoint has it.

        Args:
            name: the endpoint's; it is made if there is none.
            what: a folder with a model (packed without what its .pliantignore names), one file, or a tar, tar.gz or
                zip of a folder. None with `job`.
            request: all that is asked for; or leave it out and give its fields as keywords.
            settings: the fields of `DeployRequest`: `job="job-3"`, `kernel_min=1`, `file="serve.py"`, `env={"A": "b"}`.

        Raises:
            InvalidInput: with everything that is wrong.
            TooLarge: it is over 16 GiB.
            Forbidden: the endpoint is somebody else's.
            TypeError: both a request and settings are given.
        """
        if request is not None and settings:
            raise TypeError("give a request or settings, not both")
        asked = request or checked(DeployRequest, settings)
        path = f"{self._path(name)}/versions"
        if what is None:
            return self._send("POST", path, asked)
        folder = Path(what).expanduser()
        if "source" not in asked.model_fields_set:
            asked = asked.model_copy(update={"source": folder.resolve().name})
        with _archive_of(folder, asked) as archive:
            response = self._connection.call(
                "POST",
                path,
                data={"version": asked.model_dump_json(exclude_unset=True)},
                files={"code": ("code", archive, "application/octet-stream")},
                timeout_s=max(_UPLOAD_TIMEOUT_S, self._connection.timeout_s),
            )
        return parse(self._view, response)

    def wait(
        self,
        name: str,
        *,
        timeout_s: float = math.inf,
        poll_s: float = 0.5,
        on_poll: Callable[[EndpointView], None] | None = None,
    ) -> EndpointView:
        """Wait until the newest version has its traffic or has failed, or its endpoint is stopped; return the endpoint.

        Args:
            name: the endpoint's.
            timeout_s: how long at most, in seconds.
            poll_s: seconds between two looks.
            on_poll: gets the endpoint every time that we have looked.

        Raises:
            TimeoutError: none of this came after `timeout_s`.
        """
        for view in observe(lambda: self.get(name), timeout_s=timeout_s, poll_s=poll_s):
            if on_poll is not None:
                on_poll(view)
            state = view.versions[-1].state
            under_way = state is VersionState.STARTING or (state is VersionState.SERVING and view.exchange)
            if not (view.started and under_way):
                return view
        raise TimeoutError(f"the newest version of {name} has not got its traffic after {timeout_s:g} s")

    def change(
        self, name: str, patch: EndpointPatch | None = None, *, revision: int | None = None, **settings: Any
    ) -> EndpointView:
        """Change how an endpoint serves, while it serves: `kernel_max=4`.

        Raises:
            Stale: it is not at this revision any more.
            TypeError: both a patch and settings are given.
        """
        if patch is not None and settings:
            raise TypeError("give a patch or settings, not both")
        return self._send("PATCH", self._path(name), patch or checked(EndpointPatch, settings), revision)

    def start(self, name: str) -> EndpointView:
        """Let an endpoint that was stopped take requests again."""
        return parse(self._view, self._connection.call("POST", f"{self._path(name)}/start"))

    def stop(self, name: str) -> EndpointView:
        """Take an endpoint's slots away, and let it refuse requests until it is started."""
        return parse(self._view, self._connection.call("POST", f"{self._path(name)}/stop"))

    def rollback(self, name: str, number: int | None = None) -> EndpointView:
        """Give all traffic to an earlier version: this one, or the one that served before or beside the newest.

        Raises:
            Conflict: there is none.
        """
        return self._send("POST", f"{self._path(name)}/rollback", checked(RollbackRequest, {"number": number}))

    def split(self, name: str, traffic: Mapping[int, int]) -> EndpointView:
        """Share the requests that name no version between versions, by percent: `{2: 90, 3: 10}`.

        Raises:
            InvalidInput: it does not make 100 together, or there is no such version.
        """
        asked = checked(TrafficRequest, {"traffic": {str(number): percent for number, percent in traffic.items()}})
        return self._send("POST", f"{self._path(name)}/traffic", asked)

    def remove(self, name: str, *, revision: int | None = None) -> None:
        """Stop an endpoint, and forget it with all its versions.

        Raises:
            Stale: it is not at this revision any more.
        """
        self._connection.call("DELETE", self._path(name), headers=if_match(revision))
        self._places.pop(name, None)

    def address(self, name: str) -> EndpointAddress:
        """Return where an endpoint is asked; it takes a token that may `infer`, and no more."""
        return self._connection.get(_ADDRESS, f"{self._path(name)}/address")

    def predict(
        self, name: str, inputs: Any, *, version: int | None = None, timeout_s: float = 300.0, raw: bool = False
    ) -> Any:
        """Ask an endpoint: arrays (or nested lists) by name in, arrays by name out.

        Args:
            name: the endpoint's.
            inputs: by the names of the model's inputs. A list becomes what the model says of that input; numbers with a
                point become FP32 where it says nothing. With `raw`, what the model itself takes as JSON.
            version: ask this one, and not the one that has the traffic.
            timeout_s: how long to wait for the answer, in seconds; an endpoint without a kernel has to load its model.
            raw: send `inputs` as JSON as they are, and return the answer's JSON.

        Raises:
            InvalidInput: the model does not take such inputs.
            TooMany: too many requests wait; `wait_s` says how long to wait.
            TooLarge: the inputs are longer than the endpoint takes.
            Unavailable: no kernel came or answered in time, or the endpoint is stopped.
            Forbidden: the endpoint is not shared with you, or the token may not infer.
        """
        if raw:
            return self.infer(name, inputs, version=version, timeout_s=timeout_s, raw=True)
        from pliant.client.nouns.tensors import decode_outputs, encode_inputs  # numpy is slow to come, and for us alone

        body, num_json_bytes = encode_inputs(inputs, self._place(name).datatypes)
        headers = {"Content-Type": "application/octet-stream", _HEAD_LENGTH: str(num_json_bytes)}
        answer = self._ask(name, _v2_path(name, version), body, headers, timeout_s)
        length = answer.headers.get(_HEAD_LENGTH)
        outputs: dict[str, NDArray[Any]] = decode_outputs(answer.content, None if length is None else int(length))
        return outputs

    def infer(
        self, name: str, document: Any, *, version: int | None = None, timeout_s: float = 300.0, raw: bool = False
    ) -> Any:
        """Ask an endpoint with a JSON document, and return the answer's: of the Open Inference Protocol, or with `raw`
        of the model's own.

        Raises:
            PliantError: as for `predict`.
        """
        path, body = _path_of(name, version, raw=raw), json.dumps(document).encode()
        return _json_of(name, self._ask(name, path, body, {"Content-Type": "application/json"}, timeout_s).content)

    def stream(
        self, name: str, inputs: Any, *, version: int | None = None, timeout_s: float = 300.0, raw: bool = False
    ) -> Generator[Any]:
        """Ask an endpoint, and yield the parts of its answer as they come; close the iterator to end it early.

        A model that answers in one gives one part. Parts are what `predict` returns; numbers come as JSON has them.

        Args:
            name: the endpoint's.
            inputs: as for `predict`.
            version: ask this one, and not the one that has the traffic.
            timeout_s: how long to wait for the next part, in seconds.
            raw: send `inputs` as JSON as they are, and yield JSON.

        Raises:
            InternalError: the model has failed, perhaps after some parts.
            PliantError: as for `predict`.
        """
        if raw:
            yield from self.infer_stream(name, inputs, version=version, timeout_s=timeout_s, raw=True)
            return
        from pliant.client.nouns.tensors import decode_outputs, encode_inputs  # numpy is slow to come, and for us alone

        body, num_json_bytes = encode_inputs(inputs, self._place(name).datatypes, wants_binary=False)
        headers = {"Content-Type": "application/octet-stream", _HEAD_LENGTH: str(num_json_bytes)}
        for part in self._ask_parts(name, _v2_path(name, version), body, headers, timeout_s):
            outputs: dict[str, NDArray[Any]] = decode_outputs(part, None)
            yield outputs

    def infer_stream(
        self, name: str, document: Any, *, version: int | None = None, timeout_s: float = 300.0, raw: bool = False
    ) -> Generator[Any]:
        """Ask an endpoint with a JSON document as `infer` does, and yield the parts of its answer as `stream` does.

        Raises:
            PliantError: as for `stream`.
        """
        path, body = _path_of(name, version, raw=raw), json.dumps(document).encode()
        for part in self._ask_parts(name, path, body, {"Content-Type": "application/json"}, timeout_s):
            yield _json_of(name, part)

    def _ask_parts(
        self, name: str, path: str, body: bytes, headers: Mapping[str, str], timeout_s: float
    ) -> Iterator[bytes]:
        """Yield the parts of an answer, each a JSON document."""
        gateway = self._gateway(name)
        accepting = {**headers, "Accept": "application/x-ndjson"}
        asking = gateway.stream(path, {}, timeout_s=timeout_s, headers=accepting, body=body, look=_look_at(name))
        try:
            with asking as pieces:
                for line in _lines_of(pieces):
                    if (fault := _fault_in(line)) is not None:
                        raise InternalError(f"{fault}; {_look_at(name)}")
                    yield line
        except Unavailable:
            self._doubt(name)
            raise

    def _ask(self, name: str, path: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> httpx.Response:
        gateway = self._gateway(name)
        try:
            return gateway.call("POST", path, content=body, headers=headers, timeout_s=timeout_s, look=_look_at(name))
        except Unavailable:
            self._doubt(name)
            raise

    def _gateway(self, name: str) -> Connection:
        gateway = self._place(name).gateways[0]
        return self._connection.beside(gateway.http_url, gateway.certificate)

    def _place(self, name: str) -> _Place:
        place = self._places.get(name)
        if place is not None and not place.is_in_doubt:
            return place
        try:
            address = self.address(name)
        except Unavailable:
            if place is None:
                raise
            return place  # the server is away; gateways answer without it
        if not address.gateways:
            raise Unavailable(f"no gateway runs that {name} could be asked at; try again in a moment")
        place = self._places[name] = _Place(gateways=address.gateways, datatypes=_datatypes_of(address.inputs))
        return place

    def _doubt(self, name: str) -> None:
        """Ask another gateway the next time, which the server names, or has named."""
        if (place := self._places.get(name)) is not None:
            first, *others = place.gateways
            self._places[name] = replace(place, gateways=(*others, first), is_in_doubt=True)


@contextmanager
def _archive_of(what: Path, asked: DeployRequest) -> Iterator[BinaryIO]:
    """Yield an archive: the one that it is, or a folder or file packed."""
    if what.is_file() and what.name.endswith(_ARCHIVES):
        with what.open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as archive:
        environment = asked.given_version().get("environment")
        pack(what, archive, _LIMITS, also=beside(what, None if environment is None else str(environment)))
        archive.seek(0)
        yield archive


def _datatypes_of(inputs: Iterable[object]) -> dict[str, str]:
    """Return the datatypes of a model's inputs, as far as it said any; it may have said anything."""
    described = [one for one in inputs if isinstance(one, Mapping)]
    return {str(one["name"]): str(one["datatype"]) for one in described if "name" in one and "datatype" in one}


def _path_of(name: str, version: int | None, *, raw: bool) -> str:
    if raw and version is not None:
        raise InvalidInput.at("version", "what is sent raw goes to the version that has the traffic; leave it out")
    return f"/dlim/v1/inference/{quote(name, safe='')}" if raw else _v2_path(name, version)


def _look_at(name: str) -> str:
    return f"`pliant endpoints logs {name}` shows what its kernels wrote"


def _json_of(name: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise InternalError(f"the answer of {name} is no JSON ({error}); see what its model returns") from error


def _lines_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    left: list[bytes] = []
    for piece in pieces:
        first, *more = piece.split(b"\n")
        left.append(first)
        for one in more:
            yield b"".join(left)
            left = [one]


def _fault_in(part: bytes) -> str | None:
    """Return what went wrong after the first part; None if this is a part."""
    if not part.startswith(b'{"error"'):
        return None
    try:
        said = json.loads(part)
    except ValueError:
        return None
    return str(said["error"]) if set(said) == {"error"} else None


def _v2_path(name: str, version: int | None) -> str:
    one = f"/v2/models/{quote(name, safe='')}"
    return f"{one}/infer" if version is None else f"{one}/versions/{version}/infer"
