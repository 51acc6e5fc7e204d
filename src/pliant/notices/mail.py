"""Hands an e-mail to the mail server that the administrator named: encrypted, or on this machine.

Everything in a message but its address of destination is Pliant's own; of what the mail server answers only the number
of its reply is shown.
"""

import smtplib
import ssl
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Final

from pliant.core.address import is_loopback
from pliant.notices.background import Lanes
from pliant.notices.outcome import MAX_REFUSED, SENT, TryOutcome

STEP_S: Final = 15.0
"""How long a mail server may take for one step."""
_FIRST_LASTING: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings:
    """How the server sends e-mail."""

    host: str
    port: int
    is_tls: bool = False
    """TLS from the first byte; else STARTTLS, without which nothing is sent beyond this machine."""
    user: str = ""
    password: str = field(default="", repr=False)
    sender: str
    """The address that it comes from."""
    domains: tuple[str, ...] = ()
    """E-mail goes to addresses of these alone; empty: to any."""

    def refusal(self, address: str) -> str:
        """Return why no e-mail is sent to an address, in words; empty if it is."""
        if not self.domains or address.rpartition("@")[2].lower() in self.domains:
            return ""
        return f"this server sends e-mail to addresses of {', '.join(self.domains)} only; give one of those"


class _NotEncrypted(Exception):
    """The mail server does not offer what the settings want."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailer:
    """Sends e-mail."""

    settings: MailSettings
    lanes: Lanes
    context: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    step_s: float = STEP_S

    async def send(self, message: EmailMessage) -> TryOutcome:
        """Send a message once and return what became of it."""
        try:
            await self.lanes.do(lambda: self._send(message))
        except _NotEncrypted:
            return TryOutcome(words="offers no encryption (STARTTLS), so nothing is sent", max_tries=MAX_REFUSED)
        except ssl.SSLCertVerificationError as error:
            return TryOutcome(words=f"cannot be trusted: {error.verify_message}", max_tries=MAX_REFUSED)
        except smtplib.SMTPRecipientsRefused as error:
            return _judge(min(code for code, _ in error.recipients.values()))
        except smtplib.SMTPResponseException as error:
            return _judge(error.smtp_code)
        except (smtplib.SMTPException, OSError):
            return TryOutcome(words="could not be reached")
        return SENT

    def _send(self, message: EmailMessage) -> None:
        one = self.settings
        with self._connect() as smtp:
            smtp.ehlo()
            if not one.is_tls:
                if smtp.has_extn("starttls"):
                    smtp.starttls(context=self.context)
                    smtp.ehlo()
                elif one.password or not is_loopback(_local(one.host)):
                    raise _NotEncrypted
            if one.password:
                smtp.login(one.user, one.password)
            smtp.send_message(message, from_addr=one.sender)

    def _connect(self) -> smtplib.SMTP:
        one, name = self.settings, self.settings.sender.rpartition("@")[2]
        if one.is_tls:
            return smtplib.SMTP_SSL(one.host, one.port, local_hostname=name, timeout=self.step_s, context=self.context)
        return smtplib.SMTP(one.host, one.port, local_hostname=name, timeout=self.step_s)


def _local(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host


def _judge(code: int) -> TryOutcome:
    lasts = code >= _FIRST_LASTING
    return TryOutcome(words=f"answered {code}", **({"max_tries": MAX_REFUSED} if lasts else {}))
