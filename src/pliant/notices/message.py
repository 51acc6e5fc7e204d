"""What is said of a job that is over: a document for programs and chats, an e-mail for people. Sends nothing."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import Final

from pliant.core.duration import duration
from pliant.core.job import Job
from pliant.core.lifecycle import JobState
from pliant.core.notice import Notice

MAX_REASON: Final = 4000
"""Characters of the reason of a job; it holds the end of a traceback."""
_MAX_HEADLINE: Final = 300
_WORDS: Final = {
    JobState.COMPLETED: "has completed",
    JobState.FAILED: "has failed",
    JobState.STOPPED: "was stopped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes the messages of one server."""

    url: str
    """Where people reach the server."""
    hide: Callable[[str], str] = str
    """Takes the places of the server's files out of a text."""

    def document(self, job: Job, notice: Notice) -> bytes:
        """Return what is posted to a webhook. Every try has the same bytes.

        `text` is what chats show; those of Slack, Mattermost and Teams take `&`, `<` and `>` for signs of theirs.
        """
        said = self._headline(job).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        document = {"id": notice.id, "type": "job.ended", "text": said, "job": self._described(job)}
        return json.dumps(document).encode()

    def mail(self, job: Job, notice: Notice, sender: str) -> EmailMessage:
        """Return an e-mail; nothing of a job can add a header to it."""
        message = EmailMessage(policy=SMTP)
        message["From"] = Address("Pliant", addr_spec=sender)
        message["To"] = Address(addr_spec=notice.to)
        message["Subject"] = f"[pliant] {job.id} ({_one_line(job.spec.name)}) {_WORDS[job.state]}"
        message["Date"] = formatdate(job.ended_at)
        message["Message-ID"] = f"<{notice.id}@{sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message["X-Auto-Response-Suppress"] = "All"
        message.set_content(self._page(job))
        return message

    def _headline(self, job: Job) -> str:
        first = _one_line(self._reason(job).partition("\n")[0])[:_MAX_HEADLINE]
        said = f"{job.id} ({_one_line(job.spec.name)}) of {job.owner} {_WORDS[job.state]}{_lasted(job)}"
        return f"{said}: {first}" if first else said

    def _page(self, job: Job) -> str:
        lines = [f"{self._headline(job)}.", ""]
        if "\n" in self._reason(job):
            lines += [self._reason(job), ""]
        lines += [
            f"More: pliant --url {self.url} show {job.id}",
            "",
            f"{job.owner} asked for this e-mail at submission.",
        ]
        return "\n".join(lines) + "\n"

    def _described(self, job: Job) -> dict[str, object]:
        return {
            "id": job.id,
            "name": job.spec.name,
            "owner": job.owner,
            "queue": job.queue,
            "state": job.state.value,
            "reason": self._reason(job),
            "submitted_at": job.submitted_at,
            "started_at": job.started_at,
            "ended_at": job.ended_at,
            "url": f"{self.url}/v1/jobs/{job.id}",
        }

    def _reason(self, job: Job) -> str:
        return self.hide(job.reason)[:MAX_REASON]


def words_of(job: Job) -> str:
    """Return what became of a job that is over, in words that follow its name."""
    return _WORDS[job.state]


def _lasted(job: Job) -> str:
    if job.started_at is None or job.ended_at is None:
        return " before it had started"
    return f" after {duration(job.ended_at - job.started_at)}"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
