"""Why a request gets no answer of a kernel: a status of HTTP, a sentence, and when to try again."""

from typing import Final

TRY_AGAIN_S: Final = 1
"""After which a client may try again, if nothing better is known."""


class Refused(Exception):
    """What the client gets instead of an answer.

    Args:
        status: of HTTP.
        message: what happened, and what to do.
        retry_after_s: it makes sense to try again then.
        headers: more of the answer's.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        retry_after_s: int | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s
        self.headers = headers


class ClientGone(Exception):
    """The client has closed its connection."""


def not_here() -> Refused:
    """Return the answer to what the protocol knows and a gateway does not do."""
    return Refused(501, "a gateway does not do this: shared memory, tracing and logging are not for clients")
