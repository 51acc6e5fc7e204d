"""What the server is told about messages: checked at its start, and without a password on any command line."""

from pathlib import Path

import pytest

from pliant.core.errors import InvalidInput
from pliant.entry.server.settings import read_settings
from pliant.notices.addresses import read_allowed
from pliant.notices.mail import MailSettings


def test_without_options_no_email_is_sent_and_public_webhooks_are_called() -> None:
    rules = read_settings([], {}).notices
    assert (rules.mail, rules.allowed) == (None, ())


def test_a_mail_server_is_named_with_its_user_and_its_password_apart(tmp_path: Path) -> None:
    expected = MailSettings(
        host="mail.example.org",
        port=587,
        user="pliant",
        password="s3cret",
        sender="gpu@example.org",
        domains=("a.org",),
    )
    options = ["--smtp", "smtp://pliant@mail.example.org", "--mail-from", "gpu@example.org", "--mail-domain", "@A.org"]

    assert read_settings(options, {"PLIANT_SMTP_PASSWORD": "s3cret"}).notices.mail == expected
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    file.chmod(0o600)
    assert read_settings([*options, "--smtp-password-file", str(file)], {}).notices.mail == expected
    assert "s3cret" not in repr(expected)
    over_tls = read_settings(["--smtp", "smtps://u%40x.org@h"], {"PLIANT_SMTP_PASSWORD": "p"}).notices.mail
    assert over_tls is not None
    assert (over_tls.port, over_tls.is_tls, over_tls.user, over_tls.sender) == (465, True, "u@x.org", "u@x.org")


def test_webhooks_are_allowed_by_host_and_network() -> None:
    allowed = read_settings(["--allow-webhook", "chat.corp:8065", "--allow-webhook", "10.0.0.0/8"], {}).notices.allowed
    assert allowed == (read_allowed("chat.corp:8065"), read_allowed("10.0.0.0/8"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--smtp", "smtp://u:p@h"], "seen by everybody who lists processes; put it into PLIANT_SMTP_PASSWORD"),
        (["--smtp", "http://h"], "this is no mail server"),
        (["--smtp", "smtp://h/x"], "this is no mail server"),
        (["--smtp", "smtp://h:99999"], "this is no mail server"),
        (["--smtp", "smtp://u@h"], "there is a user and no password"),
        (["--smtp", "smtp://h", "--mail-from", "x"], "'x' is no address of e-mail"),
        (["--smtp", "smtp://h", "--mail-domain", "a b"], "'a b' is no domain"),
        (["--mail-domain", "a.org", "--mail-from", "a@b.c"], "it is for e-mail; give --smtp as well"),
        (["--allow-webhook", "http://x", "--smtp", "x"], "--smtp: this is no mail server"),
    ],
)
def test_what_cannot_be_is_refused(options: list[str], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_settings(options, {})
    assert words in str(caught.value)


def test_a_password_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret")
    file.chmod(0o640)
    with pytest.raises(InvalidInput, match="others can read"):
        read_settings(["--smtp", "smtp://u@h", "--smtp-password-file", str(file)], {})
