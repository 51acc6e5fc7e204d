"""How the commands ask for what people say of an endpoint and of a version of its model."""

from functools import partial
from typing import Final

from pliant.cli.fields import FieldOption, Table, ask, options_of
from pliant.cli.options import ask_limit, ask_time, variables_of
from pliant.core.duration import seconds_of
from pliant.core.endpoint import EndpointSettings, VersionSettings
from pliant.core.errors import InvalidInput
from pliant.core.size import num_bytes_of


def _number_of(text: str, field: str, kind: type[int] | type[float] = float) -> float:
    """Return the number that a text says.

    Raises:
        InvalidInput: it says none.
    """
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput.at(field, f"{text!r} is no number; give one, such as 50") from None


_ENDPOINT: Final[Table] = {
    "kernel_min": ask("Hold so many kernels whatever the load; 0 gives all slots back.", "--min"),
    "kernel_max": ask("Never have more kernels than this.", "--max"),
    "description": ask("For people."),
    "priority": ask("1 to 10000; twice the priority gets twice the slots beyond --min."),
    "queue": ask("Whose slots it takes; `pliant queues` lists them.", metavar="NAME"),
    "shared_with": ask(
        "Who else may ask and see it; repeatable, * is everybody.", "--share", metavar="USER", type=list[str]
    ),
    "latency_objective_s": ask_time("What a request may take, with its wait, such as 0.5s.", "--latency-objective"),
    "release_delay_s": ask_time("Keep a kernel so long after it was needed.", "--release-delay"),
    "batch_size": ask("Requests that a kernel is given at once, at most."),
    "pipe_size": ask("Batches that a kernel holds at once."),
    "execution_timeout_s": ask_time("Replace a kernel that computes longer than this.", "--execution-timeout"),
    "stream_timeout_s": ask_time("End an answer in parts that is not whole after this.", "--stream-timeout"),
    "cold_start_timeout_s": ask_time("A request waits so long for the first kernel.", "--cold-start-timeout"),
    "schedule_interval_s": ask_time("Ask so often how many kernels are needed.", "--schedule-interval"),
    "max_queue": ask("Requests that wait at once; one more is refused."),
    "max_body_bytes": ask(
        "Refuse longer requests, such as 64MiB.",
        "--max-body",
        metavar="SIZE",
        type=str,
        read=partial(num_bytes_of, field="--max-body"),
    ),
    "max_rate": ask_limit("Requests per second, such as 50; or off.", "--max-rate", "NUMBER", _number_of),
    "max_concurrent": ask_limit(
        "Requests under way at once, such as 16; or off.",
        "--max-concurrent",
        "NUMBER",
        partial(_number_of, kind=int),
    ),
    "max_request_s": ask_limit(
        "What a request may take in all, such as 30s; or off.", "--max-request", "TIME", seconds_of
    ),
    "idempotent": ask("Give the requests of a kernel that dies to another one.", "--idempotent/--no-idempotent"),
}
_VERSION: Final[Table] = {
    "slots_per_task": ask(
        "GPUs (or CPU slots) that every kernel holds, or a part of one, such as 0.25.", metavar="NUMBER"
    ),
    "memory_bytes": ask_limit(
        "End a kernel that uses more memory, such as 4GB; or off.", "--memory", "SIZE", num_bytes_of
    ),
    "environment": ask("Run in this: a name, a path, or conda:NAME.", metavar="NAME|DIR|conda:NAME"),
    "traffic": ask("Percent of the requests, beside what serves; default: all.", metavar="PERCENT", type=int),
    "requirements": ask("Run with these; the server builds it once.", metavar="FILE", type=str),
    "env": ask(
        "Environment variable; K alone: its value here. Repeatable.", metavar="K[=V]", type=list[str], read=variables_of
    ),
}

OF_ENDPOINT: Final[dict[str, FieldOption]] = options_of(EndpointSettings, _ENDPOINT)
"""How an endpoint serves."""
OF_DEPLOYMENT: Final[dict[str, FieldOption]] = {**OF_ENDPOINT, **options_of(VersionSettings, _VERSION)}
"""That, and what its kernels run in."""
