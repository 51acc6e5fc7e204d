"""Slots over time: the chart of stacked layers, and the marks on it."""

from typing import Annotated, Final

from fastapi import Depends, Query

from pliant.api.slots import MarkPage
from pliant.control.requests.slots import MAX_TIME, TimeWindow
from pliant.core.access import Permission
from pliant.core.chart import MAX_BUCKETS
from pliant.core.slot_history import MAX_TOP, ChartBy, SlotChart
from pliant.policy.slot_chart import ChartRequest
from pliant.server.context import InControl
from pliant.server.routing import Routes
from pliant.server.visibility import Seen

routes = Routes(tags=["pool"])

MAX_MARKS: Final = 1000
_RELATIVE: Final = "seconds since the epoch (UTC); what is not above 0 is relative to now."

From = Annotated[
    float,
    Query(alias="from", ge=-MAX_TIME, le=MAX_TIME, allow_inf_nan=False, description=f"Beginning, {_RELATIVE}"),
]
Until = Annotated[
    float, Query(alias="until", ge=-MAX_TIME, le=MAX_TIME, allow_inf_nan=False, description=f"End, {_RELATIVE}")
]


def window_of(from_at: From = -3600.0, until_at: Until = 0.0) -> TimeWindow:
    """Return the part of time that is asked for."""
    return TimeWindow(from_at=from_at, until_at=until_at)


InWindow = Annotated[TimeWindow, Depends(window_of)]


@routes.get("/slots/chart", Permission.JOBS_READ, "Slots over time in layers")
def chart(
    control: InControl,
    visible: Seen,
    window: InWindow,
    by: Annotated[ChartBy, Query(description="What the layers are.")] = "job",
    max_buckets: Annotated[int, Query(ge=10, le=MAX_BUCKETS, description="No more points in time than these.")] = 1000,
    top: Annotated[int, Query(ge=1, le=MAX_TOP, description="So many layers; the rest is one.")] = 20,
    search: Annotated[str | None, Query(max_length=200, description="Only trials of this search.")] = None,
) -> SlotChart:
    """Return who held how many slots in a window: as it was if there were few changes, else as means of buckets.

    Trials count to their search, unless each is to be a layer; versions to their endpoint. Jobs that the caller may not
    see are in `others`. Events of kind `slots.changed` after `last_seq` go on from what is here.
    """
    asked = ChartRequest(
        from_at=window.from_at, until_at=window.until_at, by=by, max_buckets=max_buckets, top=top, search=search
    )
    return control.slots.chart(asked, visible)


@routes.get("/slots/marks", Permission.JOBS_READ, "What happened to slots", 404)
def marks(
    control: InControl,
    visible: Seen,
    window: InWindow,
    job_id: Annotated[str | None, Query(description="Only marks of this job.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_MARKS)] = 200,
) -> MarkPage:
    """Return the newest moments of a window, in order, at which somebody came, went, was resized, failed, or changed.

    Those of the server and of queues are among them, and of the jobs that the caller sees.
    """
    one = None if job_id is None else control.queries.require_visible(job_id, visible).id
    return control.slots.marks(window, limit, one, visible)
