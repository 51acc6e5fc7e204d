"""Messages at the end of jobs when the server starts: who keeps them, who sends them, and by which ways."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pliant.core.ports import Clock, Store
from pliant.entry.server.notices import NoticeRules
from pliant.notices.addresses import WebhookRules
from pliant.notices.background import Lanes
from pliant.notices.keeper import NoticeKeeper
from pliant.notices.mail import Mailer
from pliant.notices.message import Writer
from pliant.notices.sender import NoticeSender, Ways
from pliant.notices.webhook import Webhooks

_LOOK_UPS: Final = 8
_MAILS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeRoom:
    """Both ends of the messages of one server."""

    keeper: NoticeKeeper
    sender: NoticeSender


def open_notices(
    store: Store, clock: Clock, home: Path, rules: NoticeRules, *, url: str, notify: Callable[[], None]
) -> NoticeRoom:
    """Return what keeps and what sends the messages of a server; nothing is sent before the second is started.

    Args:
        store: where they are kept.
        clock: what the time is.
        home: the server's folder, which is in no message.
        rules: what is sent, and where to.
        url: where people reach the server.
        notify: called after events were stored.
    """
    webhooks = WebhookRules(allowed=rules.allowed)
    keeper = NoticeKeeper(
        registry=store.registry, clock=clock, token_hex=secrets.token_hex, rules=webhooks, mail=rules.mail
    )

    def ways() -> Ways:
        mailer = None if rules.mail is None else Mailer(settings=rules.mail, lanes=Lanes(_MAILS))
        return Ways(webhooks=Webhooks(rules=webhooks, lanes=Lanes(_LOOK_UPS)), mailer=mailer)

    writer = Writer(url=url, hide=lambda text: text.replace(f"{home}/", ""))
    return NoticeRoom(
        keeper=keeper, sender=NoticeSender(store=store, clock=clock, writer=writer, ways=ways, notify=notify)
    )
