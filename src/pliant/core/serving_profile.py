"""How an endpoint serves (`ServingProfile`), and what a job knows of the endpoint that it serves (`EndpointPart`)."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from annotated_types import Ge, Gt, Le

from pliant.core.errors import Problem
from pliant.core.input import FINITE, Input
from pliant.core.slot import WHOLE_SLOT

Runner = Literal["redhare", "python", "torch", "onnx", "job"]
"""What runs a model: IBM's kernel API, a Python class, TorchScript or an exported program, ONNX Runtime, a trained
job's own script."""

MAX_KERNELS: Final = 4096
DEFAULT_MAX_KERNELS: Final = 100
_Seconds = Annotated[float, Input(Ge(0), Le(86_400), FINITE)]
_Wait = Annotated[float, Input(Gt(0), Le(86_400), FINITE)]
_NO_LIMIT: Final = Input(none="null: no limit.")
RequestRate = Annotated[float, Input(Ge(0.1), Le(1_000_000), FINITE)]
"""Per second."""
NumConcurrent = Annotated[int, Input(Ge(1), Le(100_000))]


@dataclass(frozen=True, kw_only=True)
class ServingProfile:
    """How an endpoint serves; every field can be changed while it serves. IBM's names stand in brackets."""

    kernel_min: Annotated[int, Input(Ge(0), Le(MAX_KERNELS))] = 0
    """Hold so many kernels whatever the load; 0 gives all slots back when nobody asks."""
    kernel_max: Annotated[int, Input(Ge(1), Le(MAX_KERNELS))] = DEFAULT_MAX_KERNELS
    """Never have more kernels than this."""
    batch_size: Annotated[int, Input(Ge(1), Le(4096))] = 8
    """Requests that a kernel is given at once, at most [task_batch_size]. It never waits for more than there are."""
    pipe_size: Annotated[int, Input(Ge(1), Le(64))] = 2
    """Batches that a kernel holds at once, with the one that it computes [task_pipe_size]."""
    execution_timeout_s: _Wait = 60.0
    """A kernel that computes longer than this is replaced, and its requests fail [task_execution_timeout]."""
    stream_timeout_s: _Wait = 600.0
    """An answer in parts that is not whole after this ends with an error; `execution_timeout_s` holds between parts."""
    release_delay_s: _Seconds = 60.0
    """Keep a kernel for so long after the load has needed it last [kernel_delay_release_time]."""
    schedule_interval_s: Annotated[float, Input(Ge(0.1), Le(3600), FINITE)] = 1.0
    """Ask so often how many kernels the load needs [schedule_interval]."""
    latency_objective_s: _Wait = 0.5
    """What a request may take, with its wait; more kernels are asked for when it does not hold."""
    cold_start_timeout_s: _Wait = 120.0
    """A request that finds no kernel waits so long for the first one."""
    max_queue: Annotated[int, Input(Ge(1), Le(1_000_000))] = 1000
    """Requests that wait at once; one more is refused with HTTP 429."""
    max_body_bytes: Annotated[int, Input(Ge(1), Le(1 << 31))] = 64 << 20
    """Of a request, as it is sent and after it was decompressed; a longer one is refused with HTTP 413."""
    max_rate: Annotated[RequestRate | None, _NO_LIMIT] = None
    """Requests per second, at once as many as in one second; one more is refused with HTTP 429."""
    max_concurrent: Annotated[NumConcurrent | None, _NO_LIMIT] = None
    """Requests that are under way at once, waiting and computed; one more is refused with HTTP 429."""
    max_request_s: Annotated[_Wait | None, _NO_LIMIT] = None
    """What a request may take in all, with its wait; a longer one ends with HTTP 504."""
    idempotent: bool = True
    """A request whose kernel dies is given to another one; otherwise it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelBounds:
    """How many kernels one version may have, of those that its endpoint may: its part of `kernel_min..kernel_max`."""

    promised: int
    """Its part of `kernel_min`."""
    at_most: int
    at_least: int = 0
    """So many are wanted whatever its own load says, as far as there are slots: it is to take over from others."""
    why: str = ""
    """What bounds it besides the profile, in words; empty: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointPart:
    """What a job knows of the endpoint that it serves."""

    name: str
    version: int
    runner: Runner
    profile: ServingProfile
    """As it was when the job began; the present one stands with the endpoint."""
    weights: str | None = None
    slot_share: int = WHOLE_SLOT
    """Thousandths of its slot that each kernel holds; a part is for kernels of one slot only."""


def problems_of_profile(profile: ServingProfile) -> tuple[Problem, ...]:
    """Return what is wrong with these numbers together."""
    if profile.kernel_min <= profile.kernel_max:
        return ()
    message = f"{profile.kernel_min} is above kernel_max {profile.kernel_max}; lower the one or raise the other"
    return (Problem(field="kernel_min", message=message),)
