"""How people ask for messages on the command line, and what is said of those that would not be sent."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.notices.receivers import receiving
from tests.server.conftest import wait_for
from tests.server.played import Played

from pliant.core.notice import Notice
from pliant.notices.webhook import sign


def test_submit_asks_for_a_message_and_the_environment_gives_what_others_must_not_see(
    run: Run, taking: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    monkeypatch.setenv("PLIANT_WEBHOOK_SECRET", "a-very-secret")
    with receiving() as hook:
        monkeypatch.setenv("PLIANT_WEBHOOK", hook.url)
        done = run(taking, "submit", str(tmp_path), "--notify-on", "failure")
        assert done.code == 0, done.err
        job = done.out.partition(" ")[0]
        kept = taking.store.registry.get(Notice, f"{job}.webhook")
        assert kept is not None
        assert (kept.noun.to, kept.noun.on) == (hook.url, "failure")
        taking.tick(1.0)
        taking.fail(job)
        (got,) = wait_for(lambda: hook.got)
    assert got.headers["X-Pliant-Signature"] == sign("a-very-secret", got.body)


def test_what_would_not_be_sent_is_said_by_its_option(run: Run, taking: Played, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    done = run(taking, "submit", str(tmp_path), "--mail", "ada@example.org", "--webhook", "http://192.168.0.1/x")
    assert done.code == 2
    assert "--mail: this server sends no e-mail: its administrator has named no mail server" in done.err
    assert "--webhook: http://192.168.0.1 leads to an address of a private network" in done.err


def test_a_secret_that_is_none_is_said_by_the_variable_that_gave_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import pliant.train\n")
    monkeypatch.setenv("PLIANT_WEBHOOK_SECRET", "short")
    done = run(None, "submit", str(tmp_path), "--webhook", "https://hooks.example.org/x")
    assert (done.code, done.err) == (
        2,
        "error: PLIANT_WEBHOOK_SECRET: it has 8 to 200 letters and signs of ASCII, and no spaces\n",
    )
