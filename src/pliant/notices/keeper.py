"""What people want to be sent is checked and kept when they submit; `sender` sends it when the job is over."""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pliant.core.errors import Problem
from pliant.core.job import JobId
from pliant.core.notice import Notice, NoticeSettings, notice_name, read_webhook
from pliant.core.ports import Clock
from pliant.core.registry import Registry
from pliant.notices.addresses import WebhookRules
from pliant.notices.mail import MailSettings
from pliant.notices.webhook import Resolve, is_own_address, resolve

_LOOK_UP_S: Final = 3.0
_MAX_LOOK_UPS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeKeeper:
    """Implements `pliant.core.notice.Notices`."""

    registry: Registry
    clock: Clock
    token_hex: Callable[[int], str]
    rules: WebhookRules
    mail: MailSettings | None
    """None: this server sends no e-mail."""
    resolve: Resolve = resolve
    is_own: Callable[[str], bool] = is_own_address
    look_ups: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(_MAX_LOOK_UPS))

    def problems(self, wanted: NoticeSettings) -> tuple[Problem, ...]:
        """Return why this server would not send what somebody wants, in words."""
        return tuple(self._problems(wanted))

    def keep(self, job_id: JobId, wanted: NoticeSettings, owner: str) -> None:
        """Keep what is to be sent when a job is over.

        What a server that is killed now leaves of a job that was not kept is removed at the next start.
        """
        for channel, to in wanted.channels():
            notice = Notice(
                name=notice_name(job_id, channel),
                owner=owner,
                id=self.token_hex(16),
                job_id=job_id,
                channel=channel,
                to=to,
                secret=(wanted.webhook_secret or "") if channel == "webhook" else "",
                on=wanted.notify_on,
            )
            self.registry.add(notice, at=self.clock.now())

    def _problems(self, wanted: NoticeSettings) -> Iterator[Problem]:
        if wanted.webhook is not None and (why := self._why_not_called(wanted.webhook)):
            yield Problem(field="webhook", message=why)
        if wanted.mail is not None:
            if self.mail is None:
                message = (
                    "this server sends no e-mail: its administrator has named no mail server (`pliant up --smtp`); "
                    "leave it out, or give a webhook"
                )
                yield Problem(field="mail", message=message)
            elif why := self.mail.refusal(wanted.mail):
                yield Problem(field="mail", message=why)

    def _why_not_called(self, text: str) -> str:
        """Return why a webhook is not called, as far as can be seen now; what counts is seen when it is called."""
        url = read_webhook(text)
        found: list[str] = []
        fault = self._look_up(lambda: found.extend(self.resolve(url.host, url.port)))
        if isinstance(fault, socket.gaierror) and fault.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            return f"{url.host} has no address; look at how it is written"
        whys = [self.rules.refusal(url, one, is_own=self.is_own(one)) for one in found]
        return f"{url.shown} {whys[0]}" if whys and all(whys) else ""

    def _look_up(self, work: Callable[[], None]) -> BaseException | None:
        """Do what may hang, and wait a moment; return what went wrong, or None also if it is not known yet."""
        faults: list[BaseException] = []
        if not self.look_ups.acquire(blocking=False):
            return None

        def run() -> None:
            try:
                work()
            except OSError as error:
                faults.append(error)
            finally:
                self.look_ups.release()

        thread = threading.Thread(target=run, name="pliant-notices-look-up", daemon=True)
        thread.start()
        thread.join(_LOOK_UP_S)
        return faults[0] if faults else None
