"""Lists of jobs at a server, and what is asked of several jobs at once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pliant.client.http.connection import Connection, parse
from pliant.client.http.lazy_adapter import LazyAdapter
from pliant.client.nouns.noun import checked

if TYPE_CHECKING:  # a submission needs none of them
    from pliant.api.bulk import BulkOutcomes
    from pliant.api.job_rows import JobRowPage
    from pliant.api.job_views import JobPage

_JOB_PAGE: "Final[LazyAdapter[JobPage]]" = LazyAdapter("pliant.api.job_views:JobPage")
_ROWS: "Final[LazyAdapter[JobRowPage]]" = LazyAdapter("pliant.api.job_rows:JobRowPage")
_OUTCOMES: "Final[LazyAdapter[BulkOutcomes]]" = LazyAdapter("pliant.api.bulk:BulkOutcomes")


class JobLists:
    """Lists of jobs; errors as `Client` says."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def jobs(  # noqa: PLR0913 (one parameter per word of the query)
        self,
        *,
        states: Sequence[str] = (),
        owners: Sequence[str] = (),
        queues: Sequence[str] = (),
        tags: Sequence[str] = (),
        searches: Sequence[str] | None = (),
        kinds: Sequence[str] = (),
        text: str = "",
        before: str | None = None,
        sort: str | None = None,
        offset: int = 0,
        limit: int = 100,
    ) -> "JobPage":
        """Return jobs, newest first: those in one of these states, queues, …, with all of these tags.

        Args:
            states: as `JobState`; or `waiting` (pending or paused) and `ended`.
            owners, queues: users, and queues, by their names.
            tags: `NAME` or `NAME=VALUE`; of several with the same name one is enough. Commas divide, as above.
            searches: only trials of these searches; None: no trials of any.
            kinds: training, fixed, trial, endpoint.
            text: stands somewhere in their id, name, owner or a tag.
            before: `next` of the page before.
            sort: submitted, ended, name, state, owner, queue, priority or slots; with `-` before it the greatest first.
            offset: leave out so many of the first.
            limit: of this page, 1000 at most.

        Raises:
            InvalidInput: with every state, user, queue and search that there is not.
        """
        asked = _asked(
            {"state": states, "owner": owners, "queue": queues, "tag": tags, "kind": kinds}, searches, text, sort
        )
        return self._connection.get(_JOB_PAGE, "/jobs", asked | {"limit": limit, "before": before, "offset": offset})

    def rows(  # noqa: PLR0913 (one parameter per word of the query)
        self,
        *,
        states: Sequence[str] = (),
        owners: Sequence[str] = (),
        queues: Sequence[str] = (),
        tags: Sequence[str] = (),
        searches: Sequence[str] | None = (),
        kinds: Sequence[str] = (),
        text: str = "",
        sort: str | None = None,
        offset: int = 0,
        limit: int = 100,
    ) -> "JobRowPage":
        """Return jobs as the rows of a table, with what is shown of each and no more; what is asked for as for `jobs`.

        Raises:
            InvalidInput: with every state, user, queue and search that there is not.
        """
        asked = _asked(
            {"state": states, "owner": owners, "queue": queues, "tag": tags, "kind": kinds}, searches, text, sort
        )
        return self._connection.get(_ROWS, "/jobs/rows", asked | {"limit": limit, "offset": offset})

    def stop_all(self, job_ids: Sequence[str], *, now: bool = False) -> "BulkOutcomes":
        """Stop several jobs, a thousand at most, as `stop` does; of each the answer says what became of it."""
        from pliant.api.bulk import StopJobs

        body = checked(StopJobs, {"ids": list(job_ids), "now": now})
        return parse(_OUTCOMES, self._connection.send("POST", "/jobs/stop", body))

    def change_all(self, job_ids: Sequence[str], **fields: Any) -> "BulkOutcomes":
        """Change `priority`, `min_tasks`, `max_tasks` or `queue` of several jobs; the answer says what became of each.

        Raises:
            InvalidInput: nothing can be changed so.
        """
        from pliant.api.bulk import JobsPatch

        body = checked(JobsPatch, {"ids": list(job_ids), **fields})
        return parse(_OUTCOMES, self._connection.send("PATCH", "/jobs", body))


def _asked(
    given: dict[str, Sequence[str]], searches: Sequence[str] | None, text: str, sort: str | None
) -> dict[str, Any]:
    several = given | {"search": searches or ()}
    words = {name: [one] if isinstance(one, str) else list(one) for name, one in several.items()}
    return {**words, "trials": False if searches is None else None, "q": text or None, "sort": sort}
