"""E-mail over a real mail server: encrypted where it leaves the machine, and never more than one address."""

import asyncio
import socket
import ssl
from email import message_from_string
from email.policy import default
from typing import Any

import pytest
from tests.notices.conftest import JOB, notice
from tests.notices.receivers import MailServer, mailbox

from pliant.notices.background import Lanes
from pliant.notices.mail import Mailer, MailSettings
from pliant.notices.message import Writer
from pliant.notices.outcome import MAX_REFUSED, SENT, TryOutcome

Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


def send(server: MailServer | int, context: ssl.SSLContext | None = None, **changes: Any) -> TryOutcome:
    """Send an e-mail about the job."""
    port = server if isinstance(server, int) else server.port
    fields: dict[str, Any] = {"host": "127.0.0.1", "port": port, "sender": "pliant@gpu1.test"} | changes

    async def run() -> TryOutcome:
        more = {} if context is None else {"context": context}
        mailer = Mailer(settings=MailSettings(**fields), lanes=Lanes(1), step_s=5.0, **more)
        message = Writer(url="http://test").mail(JOB, notice(channel="mail", to="ada@example.org"), "pliant@gpu1.test")
        return await mailer.send(message)

    return asyncio.run(run())


def test_an_email_arrives_whole_at_one_address() -> None:
    with mailbox() as server:
        assert send(server) == SENT

    (letter,) = server.letters
    assert (letter.sender, letter.recipients) == ("pliant@gpu1.test", ["ada@example.org"])
    read = message_from_string(letter.text, policy=default)
    assert read["Subject"] == "[pliant] job-3 (digits) has failed"
    assert "ValueError: <lr> & co" in read.get_content()


def test_starttls_and_a_password_are_used_where_there_are_any(contexts: Contexts) -> None:
    server_context, client = contexts
    with mailbox(context=server_context, password="s3cret") as server:
        logged_in: dict[str, Any] = {"host": "localhost", "user": "pliant", "password": "s3cret"}
        assert send(server, client, **logged_in) == SENT
        assert send(server, client, **{**logged_in, "password": "wrong"}).words == "answered 535"
        assert "cannot be trusted" in send(server, **logged_in).words

    (letter,) = server.letters
    assert (letter.was_encrypted, letter.user) == (True, "pliant")


def test_a_password_never_leaves_without_encryption() -> None:
    with mailbox(password="s3cret") as server:
        found = send(server, user="pliant", password="s3cret")
    assert found == TryOutcome(words="offers no encryption (STARTTLS), so nothing is sent", max_tries=MAX_REFUSED)
    assert server.letters == []


def test_nothing_leaves_this_machine_without_encryption(monkeypatch: pytest.MonkeyPatch) -> None:
    address = socket.create_connection
    with mailbox() as server:  # the name of another machine, which leads here
        monkeypatch.setattr(socket, "create_connection", lambda place, *rest: address(("127.0.0.1", place[1]), *rest))
        found = send(server, host="mail.example.org")
    assert "offers no encryption" in found.words
    assert server.letters == []


@pytest.mark.parametrize(("reply", "max_tries"), [("550 no such user SECRET", MAX_REFUSED), ("451 later", 8)])
def test_of_a_refusal_the_number_is_shown(reply: str, max_tries: int) -> None:
    with mailbox(reply_to_rcpt=reply) as server:
        assert send(server) == TryOutcome(words=f"answered {reply[:3]}", max_tries=max_tries)


def test_a_mail_server_that_is_not_there_is_tried_again() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert send(taken.getsockname()[1]) == TryOutcome(words="could not be reached")


def test_an_administrator_keeps_email_within_domains() -> None:
    settings = MailSettings(host="h", port=1, sender="p@x.org", domains=("example.org",))

    assert settings.refusal("ada@Example.org") == ""
    assert "addresses of example.org only" in settings.refusal("ada@example.org.evil.net")
    assert settings.refusal("ada@sub.example.org")
