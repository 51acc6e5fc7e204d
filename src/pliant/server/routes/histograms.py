"""Histograms of a job: how its weights, its gradients and what else its script logs lie, step by step."""

from typing import Annotated

from fastapi import Path

from pliant.api.histograms import HistogramNames, HistogramPage
from pliant.core.access import Permission
from pliant.core.tensor_histogram import MAX_NAME
from pliant.server.context import InControl
from pliant.server.routing import Routes
from pliant.server.visibility import VisibleJob

routes = Routes(tags=["jobs"])


@routes.get("/jobs/{job_id}/histograms", Permission.JOBS_READ, "List a job's histograms", 404)
def names(control: InControl, job: VisibleJob) -> HistogramNames:
    """Return what a job has histograms of, how many of each, and from which step to which."""
    return control.inquiries.histograms.names(job)


@routes.get("/jobs/{job_id}/histograms/{name:path}", Permission.JOBS_READ, "Histograms of one name", 404)
def histograms(
    control: InControl,
    job: VisibleJob,
    name: Annotated[str, Path(min_length=1, max_length=MAX_NAME, description="As the list has it.")],
) -> HistogramPage:
    """Return the histograms of one name in the order of their steps, 64 at most, which lie evenly over the training."""
    return control.inquiries.histograms.page(job, name)
