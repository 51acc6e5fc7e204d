"""Messages at the end of jobs, from the submission on: what is sent, what is refused, and who sees what of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.notices.receivers import receiving
from tests.server.conftest import packed, wait_for
from tests.server.played import Played

from pliant.core.access import Role


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    pool = Played(tmp_path_factory.mktemp("pool"))
    yield pool
    pool.close()


def test_a_webhook_is_called_when_the_job_is_over_and_others_see_no_secret_of_it(pool: Played) -> None:
    with receiving() as hook, pool.client_of("ben") as ben:
        job = pool.add(name="digits", webhook=hook.url, webhook_secret="SECRET-too")
        pool.http.put(f"/jobs/{job}/shares", json={"shared_with": ["ben"]}).raise_for_status()
        pool.complete(job)
        wait_for(lambda: hook.got)
        seen = wait_for(lambda: (text := ben.get("/events", params={"job_id": job}).text).count("says that") and text)
        found = json.loads(hook.got[0].body)
        assert found["text"].startswith(f"{job} (digits) of admin has completed after ")
        for path in (f"/jobs/{job}", "/jobs", f"/jobs/{job}/why", "/events"):
            for http in (ben, pool.http):
                assert "SECRET" not in http.get(path).text, path
    assert found["job"]["state"] == "completed"
    assert f"the webhook http://127.0.0.1:{hook.port} says that {job} has completed" in seen
    assert "SECRET" not in pool.http.get("/audit").text


def test_what_would_not_be_sent_is_refused_at_once_with_all_else(pool: Played) -> None:
    answer = pool.submit(None, webhook="https://10.0.0.1/SECRET", mail="ada@example.org", queue="nowhere")

    assert answer.status_code == 422
    problems = {one["field"]: one["message"] for one in answer.json()["problems"]}
    assert problems.keys() == {"webhook", "mail", "queue"}
    assert problems["webhook"] == (
        "https://10.0.0.1 leads to an address of a private network, which this server does not call for people; its "
        "administrator allows addresses with `pliant up --allow-webhook`"
    )
    assert "its administrator has named no mail server" in problems["mail"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"webhook": "file:///etc/passwd"}, "it is no address of the web"),
        ({"webhook": "https://169.254.169.254/latest/meta-data"}, "leads to an address of its own link"),
        ({"webhook": "https://[::ffff:10.0.0.1]/"}, "leads to an address of a private network"),
        ({"mail": "a@b.c\nBcc: x@y.z"}, "is no address of e-mail"),
        ({"webhook": "https://h/" + "x" * 2000}, "it is longer than 2000 characters"),
        ({"webhook_secret": "12345678"}, "give webhook as well"),
        ({"notify_on": "failure"}, "nothing says to whom"),
        ({"notify_on": "never"}, "'end' or 'failure'"),
    ],
)
def test_what_is_no_way_to_send_is_refused_in_words(pool: Played, given: dict[str, str], words: str) -> None:
    answer = pool.submit(None, **given)
    assert answer.status_code == 422
    assert words in answer.text


def test_a_webhook_stands_nowhere_that_others_may_read(pool: Played) -> None:
    with receiving() as hook, pool.client_of("vic", Role.VIEWER) as viewer:
        job = pool.add(webhook=hook.url)
        pool.http.put(f"/jobs/{job}/shares", json={"shared_with": ["vic"]}).raise_for_status()
        assert "SECRET" not in viewer.get(f"/jobs/{job}").text + viewer.get("/events").text
        assert hook.got == []
        pool.fail(job)
        wait_for(lambda: hook.got)
    assert json.loads(hook.got[0].body)["job"]["state"] == "failed"


def test_every_job_of_an_array_sends_its_own_message(pool: Played) -> None:
    with receiving() as hook:
        body = {"script": "train.py", "name": "sweep", "array": {"lr": [0.1, 0.01]}, "webhook": hook.url}
        files: dict[str, Any] = {
            "job": (None, json.dumps(body)),
            "code": ("c.tar.gz", packed({"train.py": "import pliant.train\n"})),
        }
        made = pool.http.post("/arrays", files=files)
        assert made.status_code == 201, made.text
        jobs = [job["id"] for job in made.json()["jobs"]]
        pool.tick(2.0)
        pool.complete(jobs[0])
        pool.fail(jobs[1])
        wait_for(lambda: len(hook.got) == 2)

    told = {found["id"]: found["state"] for found in (json.loads(one.body)["job"] for one in hook.got)}
    assert told == {jobs[0]: "completed", jobs[1]: "failed"}
    assert "SECRET" not in made.text
