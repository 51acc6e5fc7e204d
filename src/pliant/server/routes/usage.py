"""What was used: sums of slot-seconds, as JSON or as a table for spreadsheets."""

from typing import Annotated, Final, Literal

from fastapi import Header, Query

from pliant.api.usage import UsageSummary
from pliant.control.requests.usage import DEFAULT_SPAN_S, MAX_SUMS
from pliant.core.access import Permission
from pliant.core.slot_time import UsageKey
from pliant.server.context import InControl
from pliant.server.csv_response import MEDIA_TYPE, CsvResponse
from pliant.server.routing import Routes
from pliant.server.visibility import Seen

routes = Routes(tags=["pool"])

_MAX_AT: Final = 1e11
_AT: Final = "Seconds since the epoch"


@routes.get(
    "/usage/summary",
    Permission.JOBS_READ,
    "Slot-seconds by user, queue or job",
    response_model=UsageSummary,
    responses={200: {"content": {MEDIA_TYPE: {}}, "description": "The sums, or a table of them."}},
)
def summary(  # noqa: PLR0913 (one parameter per word of the query)
    control: InControl,
    visible: Seen,
    by: Annotated[UsageKey, Query(description="What is added up.")] = "user",
    start: Annotated[
        float,
        Query(alias="from", ge=-_MAX_AT, le=_MAX_AT, description=f"{_AT}; a negative number is so long before now."),
    ] = -DEFAULT_SPAN_S,
    until: Annotated[float, Query(ge=-_MAX_AT, le=_MAX_AT, description=f"{_AT}, as `from`; 0 is now.")] = 0.0,
    limit: Annotated[int, Query(ge=1, le=MAX_SUMS)] = 1000,
    form: Annotated[
        Literal["json", "csv"] | None, Query(alias="format", description="Left out: what `Accept` says, else JSON.")
    ] = None,
    accept: Annotated[str, Header(description="`text/csv`: a table.")] = "",
) -> UsageSummary | CsvResponse:
    """Return what jobs that the caller sees have used between two instants; the sums are those of `/usage`."""
    found = control.inquiries.usage.summary(by, start, until, limit, visible)
    if form != "csv" and (form is not None or not _wants_table(accept)):
        return found
    head = (by, "name", "jobs", "slot_seconds", "slot_hours", "share")
    rows = [
        (
            one.key,
            one.name,
            one.num_jobs,
            round(one.slot_seconds, 3),
            round(one.slot_seconds / 3600, 4),
            round(one.share, 6),
        )
        for one in found.sums
    ]
    return CsvResponse(head, rows, file_name=f"usage-by-{by}.csv")


def _wants_table(accept: str) -> bool:
    """Tell whether a table is what is asked for before JSON, or alone."""
    kinds = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    return next((kind == MEDIA_TYPE for kind in kinds if kind in (MEDIA_TYPE, "application/json", "*/*")), False)
