"""What a person is sent when a job is over: what they ask for (`NoticeSettings`), and what is kept until it is sent.

The address of a webhook may be a secret (whoever knows Slack's can write there), so it is no part of the job, which
others may see: it stands in a noun of its own, and nothing but its scheme and host is ever shown.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal, Protocol
from urllib.parse import urlsplit

from annotated_types import Len

from pliant.core.errors import InvalidInput, Problem
from pliant.core.input import Check, Input
from pliant.core.job import JobId

NotifyOn = Literal["end", "failure"]
"""When a message is sent: whenever the job is over, or only if it has failed."""
Channel = Literal["webhook", "mail"]

DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_MAX_URL: Final = 2000
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]{1,255}")
_MAIL: Final = re.compile(
    r"(?=.{3,254}$)[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9_+-])?"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookUrl:
    """Where a webhook is, taken apart."""

    scheme: str
    host: str
    port: int
    target: str = field(repr=False)
    """Path and query: what may be secret."""

    @property
    def shown(self) -> str:
        """What everybody may see of it."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """Host and port, as in the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_webhook(text: str) -> WebhookUrl:
    """Return a webhook's address, taken apart.

    Raises:
        InvalidInput: it is none; the message does not repeat it.
    """
    if len(text) > _MAX_URL:
        raise _no_webhook(f"it is longer than {_MAX_URL} characters")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise _no_webhook("it is no address of the web") from None
    if not _VISIBLE.fullmatch(text) or "\\" in text:
        raise _no_webhook("it holds a space, a backslash or a letter that is not ASCII")
    if parts.scheme not in DEFAULT_PORTS or not _HOST.fullmatch(host) or port == 0:
        raise _no_webhook("it is no address of the web")
    if parts.username is not None or parts.password is not None:
        raise _no_webhook("a name or password stands before its host, which is not sent")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookUrl(scheme=parts.scheme, host=host, port=port or DEFAULT_PORTS[parts.scheme], target=target)


def read_mail(text: str) -> str:
    """Return an address of e-mail.

    Raises:
        InvalidInput: it is none, or several.
    """
    if not _MAIL.fullmatch(text):
        raise InvalidInput.at("", f"{text!r:.100} is no address of e-mail; give one, such as ada@example.org")
    return text


def _check_secret(text: str) -> None:
    if not 8 <= len(text) <= 200 or not _VISIBLE.fullmatch(text):
        raise InvalidInput.at("", "it has 8 to 200 letters and signs of ASCII, and no spaces")


def _no_webhook(why: str) -> InvalidInput:
    return InvalidInput.at("", f"{why}; give one such as https://hooks.example.org/services/…")


@dataclass(frozen=True, kw_only=True)
class NoticeSettings:
    """Who is sent a message when a job is over. A field that is added here is one of the REST body, too."""

    webhook: Annotated[str, Input(Check(read_webhook))] | None = None
    """POST a JSON document to this URL when the job is over; Slack and Mattermost show it as it is."""
    webhook_secret: Annotated[str, Input(Check(_check_secret))] | None = None
    """Sign the document: its HMAC-SHA256 with this secret is in the header `X-Pliant-Signature`."""
    mail: Annotated[str, Input(Len(3, 254), Check(read_mail))] | None = None
    """Send an e-mail to this address when the job is over."""
    notify_on: NotifyOn = "end"
    """`end`: whenever it is over. `failure`: only if it has failed."""

    def channels(self) -> Iterator[tuple[Channel, str]]:
        """Yield the ways in which a message is wanted, and where it goes."""
        if self.webhook is not None:
            yield "webhook", self.webhook
        if self.mail is not None:
            yield "mail", self.mail


NO_NOTICES: Final = NoticeSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message that is to be sent when its job is over; kept until it was sent or given up."""

    KIND: ClassVar[str] = "notice"

    name: str
    """The job's id and the channel."""
    owner: str
    id: str
    """Comes with the message: of two with one id the second is the first, sent again."""
    job_id: JobId
    channel: Channel
    to: str = field(repr=False)
    secret: str = field(default="", repr=False)
    on: NotifyOn
    num_tries: int = 0
    """Counted before each."""
    next_at: float = 0.0
    """Not tried again before; seconds since the epoch."""


def notice_name(job_id: JobId, channel: Channel) -> str:
    """Return the name of a job's message by a channel; there is one at most."""
    return f"{job_id}.{channel}"


class Notices(Protocol):
    """Keeps what is to be sent."""

    def problems(self, wanted: NoticeSettings) -> tuple[Problem, ...]:
        """Return why this server would not send what somebody wants, in words."""
        ...

    def keep(self, job_id: JobId, wanted: NoticeSettings, owner: str) -> None:
        """Keep what is to be sent when a job is over; called before the job itself is kept.

        Raises:
            PliantError: it cannot be kept.
        """
        ...
