"""Arrays at a server: one script, run for every combination of some values."""

from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pliant.api.arrays import ArrayRequest, ArrayView
from pliant.client.http.connection import Connection, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.http.patience import observe
from pliant.client.nouns.submission import DELETE_TIMEOUT_S, send_code

_ARRAY: Final = LazyAdapter(ArrayView)


class ArrayClient:
    """The arrays at a server; errors as `Client` says.

    Example:
        >>> request = ArrayRequest(script="train.py", array={"lr": [0.1, 0.01], "batch": [32, 64]}, array_max=2)
        >>> array = client.arrays.submit(Path("train.py"), request)
        >>> [job.spec.array.values for job in client.arrays.wait(array.id, timeout_s=3600).jobs]
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def submit(self, code: Path | str, request: ArrayRequest) -> ArrayView:
        """Pack a folder or a single file, upload it once, and submit a job for every combination: all, or none."""
        return parse(_ARRAY, send_code(self._connection, "/arrays", Path(code).expanduser(), request))

    def get(self, array_id: str) -> ArrayView:
        """Return an array with its jobs."""
        return self._connection.get(_ARRAY, _path(array_id))

    def stop(self, array_id: str, *, now: bool = False) -> ArrayView:
        """End its jobs that have not ended, as `Client.stop` does.

        Raises:
            Conflict: all have ended.
        """
        return parse(_ARRAY, self._connection.call("POST", f"{_path(array_id)}/stop", params={"now": now}))

    def delete(self, array_id: str) -> None:
        """Delete all its jobs, which have ended, for good, as `Client.delete` does.

        Raises:
            Conflict: some have not ended; or somebody needs one of them.
        """
        self._connection.call("DELETE", _path(array_id), timeout_s=DELETE_TIMEOUT_S)

    def wait(
        self,
        array_id: str,
        *,
        timeout_s: float,
        poll_s: float = 1.0,
        on_poll: Callable[[ArrayView], None] | None = None,
    ) -> ArrayView:
        """Wait until all its jobs have ended and return it. A server that restarts meanwhile does not matter.

        Args:
            on_poll: gets the array every time that we have looked.

        Raises:
            TimeoutError: some have not ended after `timeout_s`.
        """
        for array in observe(lambda: self.get(array_id), timeout_s=timeout_s, poll_s=poll_s):
            if on_poll is not None:
                on_poll(array)
            if all(job.ended for job in array.jobs):
                return array
        raise TimeoutError(f"{array_id} has jobs that have not ended after {timeout_s:g} s")


def _path(array_id: str) -> str:
    return f"/arrays/{quote(array_id, safe='')}"
