"""What can end a kernel, and how an error is said in a line.

PliantError
├── ModelNotLoaded   the model cannot be served as it is; the message says what to change (a UserError)
├── KernelBroken     it fails again and again: another process may do better
├── GatewayLost      the connection is gone; the model stays loaded, and the next connection may hold
│   └── GatewayUnproven   what listens there does not show the server's certificate, and was told nothing
└── NoGateway        there is none, for so long that the kernel ends
"""

import traceback
from typing import Final

from pliant.core.errors import InternalError, Unavailable, UserError

MAX_LINE: Final = 1000
"""Letters of an error that callers are shown."""


class ModelNotLoaded(UserError):
    """The model cannot be loaded, or does not have what its runner needs."""


class KernelBroken(InternalError):
    """The model has failed several batches in a row."""


class GatewayLost(Unavailable):
    """The gateway has closed the connection, or is not there."""


class GatewayUnproven(GatewayLost):
    """What listens in the gateway's place has not proved to be one."""


class NoGateway(Unavailable):
    """No gateway has taken the kernel for a long time."""


def error_line(error: BaseException) -> str:
    """Return kind and message of an error in one line, for callers and logs."""
    lines = "".join(traceback.format_exception_only(error)).strip().split("\n")
    said = lines[-1:] if isinstance(error, SyntaxError) else lines  # before its last line stands where it is
    return " ".join(" ".join(said).split())[:MAX_LINE]


def last_line(error: Exception) -> str:
    """Return what was said last: before it, TorchScript shows the code that was compiled."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:500]
