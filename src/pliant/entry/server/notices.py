"""What the server is told about messages at the end of jobs: which webhooks it calls, and how it sends e-mail."""

import argparse
import re
import socket
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from pliant.core.errors import InvalidInput, Problem
from pliant.core.notice import read_mail
from pliant.notices.addresses import AllowedTarget, read_allowed
from pliant.notices.mail import MailSettings

PASSWORD: Final = "PLIANT_SMTP_PASSWORD"
_PORTS: Final = {"smtp": 587, "smtps": 465}
_DOMAIN: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRules:
    """What is sent, and where to."""

    allowed: tuple[AllowedTarget, ...] = ()
    """Webhooks are called there, besides public addresses."""
    mail: MailSettings | None = None
    """None: no e-mail is sent."""


def add_notices(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    allow_help = "webhooks may lead there, besides public addresses by https; HOST or a network; may be repeated"
    parser.add_argument("--allow-webhook", action="append", default=[], metavar="HOST[:PORT]", help=allow_help)
    smtp_help = f"send e-mail by this server; its password stands in {PASSWORD} or in --smtp-password-file"
    parser.add_argument("--smtp", metavar="smtp[s]://[USER@]HOST[:PORT]", help=smtp_help)
    parser.add_argument("--smtp-password-file", metavar="FILE", help="holds its password; mode 600")
    from_help = "the address that e-mail comes from; default: the user of --smtp, or pliant at this host"
    parser.add_argument("--mail-from", metavar="ADDRESS", help=from_help)
    domain_help = "send e-mail to addresses of this domain only; may be repeated"
    parser.add_argument("--mail-domain", action="append", default=[], metavar="DOMAIN", help=domain_help)


def notice_rules(given: argparse.Namespace, env: Mapping[str, str]) -> NoticeRules:
    """Return what the options say.

    Raises:
        InvalidInput: with all that is wrong with them.
    """
    problems: list[Problem] = []
    allowed: list[AllowedTarget] = []
    for text in given.allow_webhook:
        try:
            allowed.append(read_allowed(text))
        except InvalidInput as error:
            problems += error.problems
    mail = None
    try:
        mail = _mail(given, env)
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(*problems)
    return NoticeRules(allowed=tuple(allowed), mail=mail)


def _mail(given: argparse.Namespace, env: Mapping[str, str]) -> MailSettings | None:
    if given.smtp is None:
        more = {"--smtp-password-file": given.smtp_password_file, "--mail-from": given.mail_from}
        more["--mail-domain"] = given.mail_domain
        if lone := [
            Problem(field=name, message="it is for e-mail; give --smtp as well") for name in more if more[name]
        ]:
            raise InvalidInput(*lone)
        return None
    parts = _server(given.smtp)
    user = unquote(parts.username or "")
    password = _password(given.smtp_password_file, env)
    if bool(user) != bool(password):
        what = "a user and no password" if user else "a password and no user (smtp://USER@HOST)"
        message = f"there is {what}; the password stands in {PASSWORD}, or in the file of --smtp-password-file"
        raise InvalidInput.at("--smtp", message)
    return MailSettings(
        host=parts.hostname or "",
        port=parts.port or _PORTS[parts.scheme],
        is_tls=parts.scheme == "smtps",
        user=user,
        password=password,
        sender=_sender(given.mail_from, user),
        domains=tuple(_domains(given.mail_domain)),
    )


def refuse_password(text: str) -> None:
    """Refuse a mail server with a password, which came over a command line.

    Raises:
        InvalidInput: it holds one.
    """
    if ":" in text.partition("://")[2].rpartition("@")[0]:
        message = f"a password on a command line is seen by everybody who lists processes; put it into {PASSWORD}"
        raise InvalidInput.at("--smtp", message)


def _server(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        is_right = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise _no_server() from None
    refuse_password(text)
    if not is_right or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _no_server()
    return parts


def _no_server() -> InvalidInput:
    return InvalidInput.at("--smtp", "this is no mail server; give smtp://USER@HOST:587, or smtps://USER@HOST:465")


def _password(file: str | None, env: Mapping[str, str]) -> str:
    if file is None:
        return env.get(PASSWORD, "")
    path = Path(file).expanduser().absolute()
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        password = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput.at("--smtp-password-file", f"{path} cannot be read ({error})") from error
    if mode & 0o077:
        message = f"others can read {path} (mode {mode:o}); run: chmod 600 {path}"
        raise InvalidInput.at("--smtp-password-file", message)
    return password


def _sender(given: str | None, user: str) -> str:
    usual = user if "@" in user else f"pliant@{socket.gethostname()}"
    try:
        return read_mail(given or usual)
    except InvalidInput as error:
        raise InvalidInput.at("--mail-from", error.problems[0].message) from error


def _domains(given: list[str]) -> Iterator[str]:
    for text in given:
        domain = text.lower().removeprefix("@")
        if not _DOMAIN.fullmatch(domain):
            raise InvalidInput.at("--mail-domain", f"{text!r:.100} is no domain; give one such as example.org")
        yield domain
