"""The records of models of IBM's inference API.

A record is about one endpoint, and says when that was made: what a removed endpoint of the same name has left counts
for nothing.
"""

from dataclasses import replace
from typing import Any

from pliant.api.endpoints import EndpointView
from pliant.core.access import Principal
from pliant.core.errors import NotFound
from pliant.ibm.rest.translate.inference_model import InferenceModelRecord
from pliant.server.context import Context
from pliant.server.endpoint_requests import EndpointRequests


def find_model(requests: EndpointRequests, caller: Principal, name: str) -> EndpointView | None:
    """Return a model; None if there is none that the caller sees."""
    try:
        return requests.get(caller, name)
    except NotFound:
        return None


def record_of(context: Context, view: EndpointView) -> InferenceModelRecord:
    """Return what is kept of a model; an endpoint that was deployed another way has an empty record."""
    kept = context.registry.get(InferenceModelRecord, view.name)
    if kept is not None and kept.noun.made_at == view.created_at:
        return kept.noun
    return InferenceModelRecord(name=view.name, owner=view.owner, made_at=view.created_at)


def keep_record(context: Context, view: EndpointView, **changes: Any) -> InferenceModelRecord:
    """Keep changes of what is known of a model; return all of it."""
    record = replace(record_of(context, view), **changes)
    try:
        return context.registry.replace(record, at=context.clock.now()).noun
    except NotFound:
        return context.registry.add(record, at=context.clock.now()).noun


def forget_record(context: Context, name: str) -> None:
    """Forget what is kept of a model; none is fine."""
    try:
        context.registry.remove(InferenceModelRecord, name)
    except NotFound:
        return
