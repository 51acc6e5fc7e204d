"""Answers in parts that have begun: their kernels hear what was taken, and none goes on for ever."""

from functools import partial

from pliant.serve.gateway.inference import InferenceRequest
from pliant.serve.gateway.kernel_link import KernelLink
from pliant.serve.protocol.frames import KernelFrameKind


class RunningStreams:
    """Those of one version; some may be over."""

    def __init__(self) -> None:
        self._requests: dict[int, InferenceRequest] = {}

    def begin(self, request: InferenceRequest, link: KernelLink) -> None:
        """Look after a request from its first part on."""
        if not request.has_begun:
            self._requests[request.number] = request
            request.acknowledge = partial(_say_taken, link, request.number)

    def overdue(self, now: float, most_s: float) -> list[InferenceRequest]:
        """Return those that kernels have had for too long: every part gives a kernel more time, and this ends that."""
        self._requests = {number: one for number, one in self._requests.items() if one.outcome is None}
        return [one for one in self._requests.values() if now - one.given_at > most_s]


def _say_taken(link: KernelLink, number: int, num_taken: int) -> None:
    link.send(KernelFrameKind.TAKEN, {"id": number, "num": num_taken})
