"""The messages between the server and a gateway, over a link that the gateway opens; none is on the path of requests.

Both sides send how things stand, not what has changed, so every message may come twice, late, or again on the next
connection. In the docstrings "I" is the sender. `pliant.api.serving_link` turns messages into JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pliant.core.histogram import Histogram
from pliant.core.job import JobId, TaskId
from pliant.core.serving_profile import ServingProfile

# Both ways


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRow:
    """What a gateway uses of one limit that holds for all gateways together."""

    num: int
    """Requests that it counts under way now."""
    spent_s: float = 0.0
    """By so many seconds it has moved on, since it said so last, when the limit's bucket is full again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTimes:
    """What a gateway has counted of a version since it began to serve it: how often, and seconds together."""

    success: tuple[int, float]
    fail: tuple[int, float]
    queue: tuple[int, float]
    service: tuple[int, float]
    batches: Mapping[int, tuple[int, float]] = field(default_factory=dict)
    """By size."""
    idle_s: float | None = None
    """Since the last request; None: there was none."""


# From the server


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedVersion:
    """A version of an endpoint that runs, or is to."""

    number: int
    job_id: JobId
    token: str = field(repr=False)
    """A kernel that shows it is one of this job's."""
    weight: int = 0
    """Its share of the traffic that names no version, in proportion to the sum of all; 0: none."""
    why: str = ""
    """Why it has the slots it has: the scheduler's newest sentence about it."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    """What its model last said of itself; empty before it was ever loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedEndpoint:
    """An endpoint as a gateway needs to know it."""

    name: str
    owner: str
    shared_with: tuple[str, ...] = ()
    started: bool = True
    profile: ServingProfile
    versions: tuple[ServedVersion, ...] = ()
    why_not: str = ""
    """Why no version serves, in words: stopped, or its model did not load."""
    revision: int = 0
    """Grows with every change that somebody makes; this is how it is after that one, or after later ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """All endpoints that there are; those that are not named are gone."""

    endpoints: tuple[ServedEndpoint, ...]
    kind: Literal["serve"] = "serve"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """How many requests to endpoints may come; None: no limit."""

    max_rate: float | None = None
    """Per second, on average; at once as many as in one second, and one at least."""
    max_concurrent: int | None = None
    """Under way at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Who holds a token that you asked for."""

    number: int
    """Of the question."""
    name: str | None = None
    """A user's; None: the token is worthless."""
    sees_all: bool = False
    """They may ask every endpoint."""
    may_infer: bool = False
    endpoints: tuple[str, ...] | None = None
    """They may ask no others with this token; None: it is not limited so."""
    limits: RequestLimits = RequestLimits()
    """Of this token."""
    valid_s: float = 0.0
    """Take it for true for so long; ask again afterwards."""
    kind: Literal["answer"] = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """What tokens open has changed: forget what I said of those of this user, and ask again."""

    name: str
    kind: Literal["forget"] = "forget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retire:
    """This server ends for good, and wants nobody to serve in its place: finish what you have, and end."""

    kind: Literal["retire"] = "retire"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOutcome:
    """What became of an endpoint that was to start or to stop."""

    number: int
    """Of the message that asked for it."""
    status: int
    """Of HTTP; 200: it is kept so, and follows."""
    message: str = ""
    """Why not."""
    retry_after_s: int | None = None
    revision: int = 0
    """Of the endpoint, once it is so."""
    kind: Literal["switch_outcome"] = "switch_outcome"


@dataclass(frozen=True, slots=True, kw_only=True)
class UseElsewhere:
    """What a gateway on another machine uses of limits that hold for all together; see `SharedUse`."""

    gateway: int
    """Its number."""
    rows: Mapping[str, SharedRow]
    is_whole: bool
    """It uses nothing else; otherwise all else is as before."""
    kind: Literal["use_elsewhere"] = "use_elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsWanted:
    """A gateway on another machine wants to know what you have counted of these versions: say `TotalsSaid`."""

    number: int
    """Of the question, for the answer."""
    job_ids: tuple[JobId, ...]
    kind: Literal["totals_wanted"] = "totals_wanted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsElsewhere:
    """What gateways on other machines have counted of versions: of those that have answered in time."""

    number: int
    """Of the question."""
    totals: tuple[Mapping[JobId, CountedTimes], ...]
    """One for each of them."""
    kind: Literal["totals_elsewhere"] = "totals_elsewhere"


ToGateway = Serve | Answer | SwitchOutcome | Forget | Retire | UseElsewhere | TotalsWanted | TotalsElsewhere

# From a gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEntry:
    """Where kernels of other machines connect to me, over TLS."""

    host: str
    port: int
    server_name: str | None = None
    """By which name they check the certificate; None: by `host`."""
    certificate: str = ""
    """PEM, the one that counts; empty: the server's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayHello:
    """First message of every connection: where I listen, and which kernels are ready."""

    number: int = 0
    """Mine, among all gateways of the server; those of its own machine come first."""
    machine: str = ""
    """On which I run; empty: on the server's own."""
    kernels: KernelEntry | None = None
    """None: the server need not tell them."""
    pid: int
    http_url: str
    """Where people reach me, such as `http://127.0.0.1:7312`."""
    grpc_address: str = ""
    """`host:port`; empty: I speak no gRPC."""
    ready: tuple[TaskId, ...] = ()
    kind: Literal["gateway_hello"] = "gateway_hello"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelReady:
    """A kernel has loaded its model and takes requests."""

    task_id: TaskId
    metadata: Mapping[str, object] = field(default_factory=dict)
    kind: Literal["kernel_ready"] = "kernel_ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelHung:
    """A kernel does not answer: it computes for longer than it may, or gives no sign of life. End it."""

    task_id: TaskId
    why: str
    """In words that follow the task's name."""
    kind: Literal["kernel_hung"] = "kernel_hung"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTotals:
    """What became of a version's requests since its gateway began to serve it.

    These numbers only grow while the gateway lives, so a report that is lost, late or comes twice falsifies none.
    """

    succeeded: int = 0
    """Requests that a kernel has answered well."""
    rejected: int = 0
    """That a kernel has answered with 4xx: the request is at fault."""
    failed: int = 0
    """That ended with 5xx, from a kernel or because there was none."""
    refused: int = 0
    """That a limit refused (429, 413, 503 for a full queue); they have no latency."""
    latency_s: Histogram = field(default_factory=Histogram)
    """Of all that were not refused, with their wait; by `LATENCY_BOUNDS_S`."""
    batch_size: Histogram = field(default_factory=Histogram)
    """Of the batches that kernels have computed; by `BATCH_BOUNDS`."""
    busy_s: float = 0.0
    """Kernel seconds spent computing, all kernels together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionLoad:
    """How much one version had to do since the report before."""

    job_id: JobId
    seconds: float
    """Since the report before."""
    in_flight: int = 0
    """Requests that kernels hold now."""
    queued: int = 0
    """Requests that wait for a kernel now."""
    mean_load: float = 0.0
    """`in_flight + queued`, averaged over these seconds by the time that each value lasted."""
    oldest_wait_s: float = 0.0
    """Age of the oldest request that waits; 0 if none does."""
    num_ready: int = 0
    """Kernels that take requests now."""
    completed: int = 0
    """Requests answered by kernels in these seconds, also with errors."""
    failed: int = 0
    """Requests in these seconds that ended with 5xx."""
    refused: int = 0
    """Requests in these seconds that a limit refused (429, 413, 503 for a full queue)."""
    num_batches: int = 0
    busy_s: float = 0.0
    """Kernel seconds spent computing in these seconds, all kernels together."""
    latency_s: Mapping[str, float] = field(default_factory=dict)
    """Of the requests answered in the last 30 s, with their wait: `p50`, `p95`, `p99`; empty if there are none."""
    service_p95_s: float = 0.0
    """The same for the time in a kernel alone; 0 if there are none."""
    totals: LoadTotals = LoadTotals()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLoad(VersionLoad):
    """What a gateway that is one of several reports: quantiles of all of them are made from these counts."""

    latency_counts: Mapping[int, int]
    """What `latency_s` is made from: how many requests, by bucket of `pliant.core.time_counts`."""
    service_counts: Mapping[int, int]
    """What `service_p95_s` is made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much there is to do; four times a second, and at once when something waits and no kernel is there."""

    versions: tuple[VersionLoad, ...]
    kind: Literal["load"] = "load"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedLoads:
    """What a gateway that is one of several says in the place of `Load`."""

    versions: tuple[CountedLoad, ...]
    kind: Literal["counted_loads"] = "counted_loads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Whose token is this?"""

    number: int
    """My own, for the answer."""
    token: str = field(repr=False)
    kind: Literal["ask"] = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Start or stop this endpoint for whoever holds this token, as if they had asked you."""

    number: int
    """My own, for the answer."""
    token: str = field(repr=False)
    endpoint: str
    start: bool
    """Else it stops."""
    address: str = ""
    """From where they asked me."""
    kind: Literal["switch"] = "switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUse:
    """What I use of limits that hold for all gateways together; said only where some are on other machines."""

    rows: Mapping[str, SharedRow]
    """By the limit's key, in hex digits: what has changed since I said so last."""
    is_whole: bool = False
    """I use nothing else; so on every new connection."""
    kind: Literal["shared_use"] = "shared_use"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTotals:
    """What have the gateways on other machines counted of these versions?"""

    number: int
    """My own, for the answer."""
    job_ids: tuple[JobId, ...]
    kind: Literal["ask_totals"] = "ask_totals"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsSaid:
    """What I have counted of versions that somebody wants to know about."""

    number: int
    """Of `TotalsWanted`."""
    totals: Mapping[JobId, CountedTimes]
    """Of those that I serve."""
    kind: Literal["totals_said"] = "totals_said"


FromGateway = (
    GatewayHello | KernelReady | KernelHung | Load | CountedLoads | Ask | Switch | SharedUse | AskTotals | TotalsSaid
)
