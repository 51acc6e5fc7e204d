"""What a model raises: printed, not too often, and counted; one that does nothing but fail is given up."""

import traceback
from collections.abc import Callable
from typing import Final

from pliant.serve.runner.errors import KernelBroken, error_line

MAX_STRIKES: Final = 3
"""Batches, or streams, that may fail one after the other."""
_PRINT_EVERY_S: Final = 0.5


class FailuresInRow:
    """Counts failures since the last success.

    Args:
        clock: seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._num = 0
        self._printed_at = -_PRINT_EVERY_S

    def forget(self) -> None:
        """Something has gone well."""
        self._num = 0

    def note(self, error: Exception) -> None:
        """Print where an error was raised (of very many in a short time, a few), and count it.

        Raises:
            KernelBroken: it is one too many.
        """
        if self._clock() - self._printed_at >= _PRINT_EVERY_S:
            self._printed_at = self._clock()
            traceback.print_exception(error)
        if isinstance(error, AttributeError) and error.obj is None:
            return  # careless handlers ask the context after the last one, which is None, for its output
        self._num += 1
        if self._num >= MAX_STRIKES:
            raise KernelBroken(f"{self._num} batches in a row have failed, the last one with {error_line(error)}")
