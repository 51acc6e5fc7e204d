"""What is said of a job that is over."""

import json
from dataclasses import replace
from email import message_from_bytes
from email.policy import default

import pytest
from tests.notices.conftest import JOB, notice

from pliant.core.lifecycle import JobState
from pliant.notices.message import MAX_REASON, Writer

WRITER = Writer(url="https://gpu1.test:7311", hide=lambda text: text.replace("/home/x/.pliant/", ""))


def test_a_document_says_what_became_of_a_job_and_chats_can_show_it() -> None:
    found = json.loads(WRITER.document(JOB, notice()))

    assert found == {
        "id": "5eed",
        "type": "job.ended",
        "text": "job-3 (digits) of ada has failed after 3 min 10 s: ValueError: &lt;lr&gt; &amp; co",
        "job": {
            "id": "job-3",
            "name": "digits",
            "owner": "ada",
            "queue": "default",
            "state": "failed",
            "reason": "ValueError: <lr> & co\nTraceback …",
            "submitted_at": 1000.0,
            "started_at": 1010.0,
            "ended_at": 1200.0,
            "url": "https://gpu1.test:7311/v1/jobs/job-3",
        },
    }
    assert WRITER.document(JOB, notice()) == WRITER.document(JOB, notice(num_tries=3)), "it is signed once and for all"


def test_places_of_the_servers_files_and_endless_reasons_are_left_out() -> None:
    job = replace(JOB, reason="/home/x/.pliant/jobs/job-3/code: no\n" + "x" * 9999)

    found = json.loads(WRITER.document(job, notice()))

    assert found["job"]["reason"].startswith("jobs/job-3/code: no")
    assert len(found["job"]["reason"]) == MAX_REASON


@pytest.mark.parametrize("state", [JobState.COMPLETED, JobState.STOPPED])
def test_a_job_that_never_started_is_told_so(state: JobState) -> None:
    job = replace(JOB, state=state, started_at=None, reason="")

    assert json.loads(WRITER.document(job, notice()))["text"].endswith("before it had started")


def test_an_email_has_the_headers_of_an_automatic_one_and_nothing_of_a_job_adds_any() -> None:
    evil = "x\r\nBcc: all@example.org\r\n\r\nhello"
    job = replace(JOB, spec=replace(JOB.spec, name=evil), reason=f"{evil}\nÄ\n.\n")

    found = WRITER.mail(job, notice(channel="mail", to="ada@example.org"), "pliant@gpu1.test")

    read = message_from_bytes(found.as_bytes(), policy=default)
    assert read.keys() == found.keys()
    assert "Bcc" not in read
    assert read["To"] == "ada@example.org"
    assert read["From"] == "Pliant <pliant@gpu1.test>"
    assert read["Subject"] == "[pliant] job-3 (x Bcc: all@example.org hello) has failed"
    assert read["Message-ID"] == "<5eed@gpu1.test>"
    assert read["Auto-Submitted"] == "auto-generated"
    assert read["Date"] == "Thu, 01 Jan 1970 00:20:00 -0000"
    assert read.get_content_type() == "text/plain"
    text = read.get_content().replace("\r\n", "\n")
    assert "pliant --url https://gpu1.test:7311 show job-3" in text
    assert "ada asked for this e-mail" in text
