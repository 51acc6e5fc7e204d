"""Reads what kernels answer. A kernel runs people's code: whatever it says is checked before it goes to a client."""

import json
from typing import Any, Final

from pliant.core.job import TaskId
from pliant.serve.gateway.dispatch import MAX_RETRIES
from pliant.serve.gateway.inference import InferenceRequest, KernelAnswer
from pliant.serve.gateway.refused import TRY_AGAIN_S, Refused
from pliant.serve.protocol.frames import BadKernelFrame, KernelFrame, KernelFrameKind

_MAX_TYPE: Final = 300
"""Characters of the type of an answer."""
_MAX_ERROR_BYTES: Final = 64 << 10


def read_number(header: dict[str, Any], key: str) -> int:
    """Return a number.

    Raises:
        BadKernelFrame: it is none.
    """
    value = header.get(key)
    if not isinstance(value, int):
        raise BadKernelFrame(f"a frame whose {key} is no number")
    return value


def read_ids(header: dict[str, Any]) -> list[int]:
    """Return the numbers of requests.

    Raises:
        BadKernelFrame: there are none.
    """
    ids = header.get("ids")
    if not isinstance(ids, list) or not all(isinstance(one, int) for one in ids):
        raise BadKernelFrame("a frame without a list of ids")
    return ids


def read_batch(header: dict[str, Any]) -> tuple[int, float] | None:
    """Return the size of a batch and what it has computed, if this answer says so."""
    busy_s, size = header.get("busy_s"), header.get("batch")
    if isinstance(busy_s, int | float) and isinstance(size, int) and 0 <= busy_s < 1e9 and 0 < size < 1e6:
        return size, float(busy_s)
    return None


def read_answer(frame: KernelFrame, request: InferenceRequest, kernel: TaskId, version: int) -> KernelAnswer | Refused:
    """Return what a kernel answered, or what the client gets instead because it makes no sense.

    Args:
        frame: a RESULT or a PART.
        request: whose answer it is.
        kernel: who answered.
        version: which it serves.
    """
    is_part = frame.kind is KernelFrameKind.PART
    if is_part and not request.takes_parts:
        return Refused(501, f"kernel {kernel} answers in parts though one answer was asked for")
    status, num_json, kind = (frame.header.get(key) for key in ("status", "json", "type"))
    status = 200 if status is None and (is_part or request.has_begun) else status
    if not isinstance(status, int) or not (status in (200, 201, 202, 203) or 400 <= status <= 599):
        shown = str(status)[:20] if isinstance(status, int | str) else f"that is a {type(status).__name__}"
        return Refused(502, f"kernel {kernel} answered with the status {shown}, which answers have not")
    if num_json is not None and not (isinstance(num_json, int) and 0 <= num_json <= len(frame.body)):
        return Refused(502, f"kernel {kernel} answered with more JSON than its answer has bytes")
    kind = kind if isinstance(kind, str) and len(kind) <= _MAX_TYPE else ""
    return KernelAnswer(status, kind, num_json, frame.body, kernel, version)


def read_failure(answer: KernelAnswer) -> Refused | None:
    """Return what a kernel says that went wrong; None if its answer is one."""
    if answer.status < 400:
        return None
    try:
        value = json.loads(bytes(answer.body[:_MAX_ERROR_BYTES]))
    except (ValueError, RecursionError):
        value = None
    said = value.get("error") if isinstance(value, dict) else None
    return Refused(answer.status, said if isinstance(said, str) else f"the model answered with status {answer.status}")


def answer_for_lost(request: InferenceRequest, kernel: TaskId, *, is_idempotent: bool) -> Refused:
    """Return what the client gets whose request ended with its kernel."""
    if request.has_begun:
        return Refused(502, f"kernel {kernel} ended in the middle of its answer")
    if is_idempotent:
        return Refused(502, f"{MAX_RETRIES + 1} kernels have ended while they held this request, the last one {kernel}")
    message = f"kernel {kernel} ended while it held this request, and requests of this endpoint are not asked twice"
    return Refused(503, message, retry_after_s=TRY_AGAIN_S)
