"""The REST bodies and answers of endpoints: what is deployed, what is changed, and how an endpoint stands.

A deployment says what it wants to be otherwise. What it leaves out stays as the endpoint, or its newest version, has
it; a new endpoint has the defaults of the nouns. Nothing here knows what an endpoint is: `given_settings` and
`given_version` are put on top of what is kept by those who keep it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from annotated_types import Ge, Le, Len, MaxLen
from pydantic import TypeAdapter, ValidationError

from pliant.api.derive import settable, with_checks
from pliant.api.faults import sentence_of
from pliant.api.request import Changes, Patch, Request
from pliant.api.view import fill, view
from pliant.core.endpoint import (
    MAX_VERSIONS,
    EndpointName,
    EndpointSettings,
    EndpointVersion,
    Percent,
    VersionSettings,
)
from pliant.core.errors import InvalidInput
from pliant.core.input import ONE_LINE, Input, Pattern
from pliant.core.registry import Owned
from pliant.core.secret_names import hide_secrets
from pliant.core.serving import VersionLoad

_NAME: Final[TypeAdapter[str]] = TypeAdapter(with_checks(EndpointName))
_OF_ENDPOINT: Final = frozenset(one.name for one in settable(EndpointSettings))
_OF_VERSION: Final = frozenset(one.name for one in settable(VersionSettings))

EndpointState = Literal["stopped", "starting", "idle", "serving", "waiting", "failed"]
"""`stopped`: by somebody. `starting`: its first model is being loaded. `idle`: it holds no slot, and the first request
brings a kernel. `serving`: a kernel takes requests. `waiting`: it needs slots and has none. `failed`: no version of it
loads."""
KernelState = Literal["starting", "ready", "leaving"]


class SettingsGiven(Changes, of=EndpointSettings):
    """How an endpoint serves, as far as it is said; what is left out stays, or is the default of a new endpoint."""

    described_by = "doc"


class DeployRequest(SettingsGiven, of=VersionSettings):
    """A version to deploy; travels beside its packed folder, or names a job.

    What is left out stays as the endpoint and its newest version have it.
    """

    can_be_none = SettingsGiven.can_be_none | {
        one.name for one in settable(VersionSettings) if one.field.default is None
    }

    job: Annotated[str, Input(Pattern(r"^job-[1-9][0-9]{0,17}$", "the id of a job, such as job-3"))] | None = None
    """Deploy what this job has trained, instead of a folder."""
    file: Annotated[str, Input(Len(1, 400), ONE_LINE)] | None = None
    """What to run in the folder, such as `serve.py` or `model.onnx`; it is looked for if left out."""
    source: Annotated[str, Input(MaxLen(400), ONE_LINE)] = ""
    """What is deployed, for people: the folder's name."""
    traffic: Annotated[int, Input(Ge(1), Le(100))] | None = None
    """Give it so many percent of the requests beside the version that serves; left out: all."""

    def given_settings(self) -> dict[str, object]:
        """Return the fields of `EndpointSettings` that were given."""
        return {name: value for name, value in self.changes().items() if name in _OF_ENDPOINT}

    def given_version(self) -> dict[str, object]:
        """Return the fields of `VersionSettings` that were given; None is a value of those that have it."""
        return {name: value for name, value in self.changes().items() if name in _OF_VERSION}


class EndpointPatch(Patch, of=EndpointSettings):
    """What of an endpoint to change, also while it serves; what is left out stays."""

    def values(self) -> dict[str, object]:
        """Return the fields that were given."""
        return dict(self.changes())


class RollbackRequest(Request):
    """Which version takes the traffic again."""

    number: Annotated[int, Input(Ge(1), Le(2**31 - 1))] | None = None
    """Left out: the newest one that served before the present one."""


class TrafficRequest(Request):
    """Which versions share the requests that name none."""

    traffic: Annotated[
        Mapping[Annotated[str, Input(Pattern(r"^[1-9][0-9]{0,8}$", "the number of a version, such as 3"))], Percent],
        Input(Len(1, MAX_VERSIONS)),
    ]
    """Percent by the number of the version, such as `{"2": 90, "3": 10}`; together 100. Others get nothing."""

    def split(self) -> dict[int, int]:
        """Return the percents by number."""
        return {int(number): percent for number, percent in self.traffic.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelView:
    """A process that holds slots and computes answers."""

    task_id: str
    """`/v1/jobs/{job_id}` of its version knows it as a task, and has its logs."""
    state: KernelState
    """`starting`: it loads the model. `leaving`: it answers what it has begun, and takes nothing new."""
    node_id: str
    slots: tuple[int, ...]
    started_at: float
    pid: int | None


@view
class VersionView(EndpointVersion):
    """One deployment, and what of it runs. Values of variables that are called like secrets are hidden."""

    traffic: int
    """Percent of the requests that name no version."""
    num_kernels: int
    """Kernels that hold slots."""
    num_ready: int
    """Kernels that take requests."""
    wanted: int
    """Kernels that the load needs now."""
    why: str
    """Why it has the slots it has, in the scheduler's words."""
    demand: str
    """Why it wants as many kernels as it does."""
    load: VersionLoad | None
    """Of the gateway's newest report; null if there is none."""
    kernels: tuple[KernelView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayView:
    """Where endpoints are asked on one machine. All gateways answer for all endpoints."""

    machine: str | None
    """On which it runs; null: on the server's own."""
    http_url: str
    """Such as `https://gpu3.example.org:7312`."""
    grpc_address: str | None
    """Such as `gpu3.example.org:7313`; null: it speaks no gRPC."""
    certificate: str | None
    """In PEM form, which it shows and those who ask it have to trust; null: the server's."""


@view
class EndpointView(EndpointSettings, Owned):
    """An endpoint."""

    state: EndpointState
    reason: str
    """Why it is in its state, in a sentence; empty if there is nothing to say."""
    started: bool
    """Somebody may stop it: it holds no slots then, and refuses requests."""
    current: int | None
    """The number of the version that serves; null before one ever did."""
    exchange: str
    """Which version is to take traffic from which, and what that waits for, in a sentence; empty: the traffic is where
    it was meant to go."""
    versions: tuple[VersionView, ...]
    """Oldest first."""
    http_url: str | None
    """Where the gateway is asked, such as `http://127.0.0.1:7312`; null while there is none."""
    grpc_address: str | None
    """Where it is asked over gRPC, such as `127.0.0.1:7313`; null while there is none."""
    gateways: tuple[GatewayView, ...]
    """All machines where it is asked, the one of `http_url` first."""
    colour: int | None
    """Of its versions in charts, 0 to 23; null while none runs."""
    created_at: float
    changed_at: float
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointAddress:
    """Where an endpoint is asked, and how its model is: all that a token which may only `infer` sees of it."""

    name: str
    http_url: str | None
    """Such as `http://127.0.0.1:7312`; null while there is no gateway."""
    grpc_address: str | None
    """Such as `127.0.0.1:7313`; null while there is none."""
    gateways: tuple[GatewayView, ...]
    """All machines where it is asked, the one of `http_url` first."""
    ready: bool
    """Requests are taken: a kernel is there, or the first request brings one."""
    inputs: tuple[object, ...]
    """What the model that serves said of its inputs; empty if it said nothing."""


PredictForm = Literal["infer", "generate", "raw"]
"""What a request is: `infer`, of the Open Inference Protocol; `generate`, plain JSON by the names of inputs; `raw`,
what the model itself understands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictView:
    """What an endpoint answered to one request."""

    status: int
    """Of HTTP: 200; another one says that there is no answer, and `text` why."""
    content_type: str
    text: str
    is_whole: bool
    """`text` is all of the answer, and not only its beginning."""
    version: int | None
    """The number of the version that answered; null if none did."""
    took_s: float
    """Seconds from when the gateway was asked to the end of its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPage:
    """Endpoints in the order of their names; ask again with `after=next`."""

    endpoints: tuple[EndpointView, ...]
    next: str | None


def require_endpoint_name(name: str) -> None:
    """Refuse what no endpoint can be called.

    Raises:
        InvalidInput: it is no name of one.
    """
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        raise InvalidInput.at("name", sentence_of(error.errors()[0])) from error


def address_of(view: EndpointView) -> EndpointAddress:
    """Return what of an endpoint is for those who may only ask it."""
    metadata = next((one.metadata for one in view.versions if one.number == view.current), {})
    inputs = metadata.get("inputs")
    return EndpointAddress(
        name=view.name,
        http_url=view.http_url,
        grpc_address=view.grpc_address,
        gateways=view.gateways,
        ready=view.state in ("serving", "idle"),
        inputs=tuple(inputs) if isinstance(inputs, list | tuple) else (),
    )


def version_view(version: EndpointVersion, **values: Any) -> VersionView:
    """Return a version as it may be shown.

    Args:
        version: as it is kept.
        values: the fields that `VersionView` adds.
    """
    shown: Mapping[str, str] = hide_secrets(version.env)
    return fill(VersionView, version, **{"env": shown, **values})
