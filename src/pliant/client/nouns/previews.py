"""What if: asks a server what would come of a change if it was made now. Nothing is changed."""

from typing import Final
from urllib.parse import quote

from pliant.api.jobs import JobPatch, JobRequest
from pliant.api.previews import GroupPreview, GroupPreviewRequest, SearchPreview, SharePreview, SubmissionPreview
from pliant.api.queues import QueuePatch
from pliant.api.searches import SearchRequest
from pliant.client.http.connection import Connection, parse
from pliant.client.http.lazy_adapter import LazyAdapter

_SHARES: Final = LazyAdapter(SharePreview)
_SUBMISSION: Final = LazyAdapter(SubmissionPreview)
_SEARCH: Final = LazyAdapter(SearchPreview)
_GROUP: Final = LazyAdapter(GroupPreview)


class PreviewClient:
    """What would come of changes; errors as `Client` says. What is wrong with a change is part of the answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def change(self, job_id: str, patch: JobPatch) -> SharePreview:
        """Return who would have how many slots if a job was changed so now, and why."""
        return parse(_SHARES, self._connection.send("POST", f"/jobs/{quote(job_id, safe='')}/preview", patch))

    def submission(self, request: JobRequest) -> SubmissionPreview:
        """Return whether a job would start if it was submitted now, and with whose slots; its code is not asked for."""
        return parse(_SUBMISSION, self._connection.send("POST", "/jobs/preview", request))

    def search(self, request: SearchRequest) -> SearchPreview:
        """Return what is wrong with a search, and what would become of its first trial; its code is not asked for."""
        return parse(_SEARCH, self._connection.send("POST", "/searches/preview", request))

    def queue(self, name: str, patch: QueuePatch) -> SharePreview:
        """Return who would have how many slots if a queue was changed so now."""
        return parse(_SHARES, self._connection.send("POST", f"/queues/{quote(name, safe='')}/preview", patch))

    def group(self, request: GroupPreviewRequest) -> GroupPreview:
        """Return the slots that a resource group would have now."""
        return parse(_GROUP, self._connection.send("POST", "/resource-groups/preview", request))
