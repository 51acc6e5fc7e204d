"""Every page, for everybody who may see it: by its address, for people who do not see, in both schemes, wide and
narrow."""

from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import expect
from tests.e2e.pool import HERE, Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

EVERYBODY: Final = ("/", "/jobs", "/endpoints", "/searches", "/models", "/models/templates", "/models/trainings")
MORE: Final = ("/datasets", "/environments", "/queues", "/machines", "/usage", "/events", "/me")
OF_USERS: Final = ("/submit", "/searches/new")
OF_ADMINS: Final = ("/people", "/audit", "/settings")
OF_THE_JOB: Final = ("overview", "metrics", "workers", "logs", "events", "config", "results")


@pytest.fixture
def job_id(pool: Pool, tmp_path: Path) -> str:
    """A training that goes on while pages are looked at."""
    pace = tmp_path / "pace"
    pace.write_text("0.5")
    job = pool.submit(
        HERE / "paced.py", "--max", "4", "--name", "resnet-of-admin", args=("--pace", str(pace), "--epochs", "500")
    )
    with pool.client() as client:
        pool.until(lambda: pool.training(client, job), "it trains")
    return job


@pytest.mark.timeout(480)
def test_every_page_is_whole_on_a_desk_and_on_a_telephone(visit: Any, job_id: str) -> None:
    """No page has a violation of WCAG 2.2 AA that axe finds, or scrolls sideways, in any size or scheme."""
    paths = (*EVERYBODY, *MORE, *OF_USERS, *OF_ADMINS, *(f"/jobs/{job_id}/{tab}" for tab in OF_THE_JOB))
    visitor = visit("a-admin")
    names = {path: path.replace(job_id, "job").strip("/").replace("/", "-") or "overview" for path in paths}
    found = [wrong for path, name in names.items() for wrong in visitor.look_at(path, name)]
    assert not found, "\n".join(found)


def test_of_other_peoples_jobs_one_sees_slots_and_nothing_else(visit: Any, job_id: str) -> None:
    page = visit("a-user").goto("/?from=-900")
    expect(page.get_by_role("button", name="Show others alone")).to_be_visible()
    expect(page.get_by_text("resnet-of-admin")).to_have_count(0)


def test_keys_lead_everywhere(visit: Any, pool: Pool) -> None:
    visitor = visit("a-user")
    page = visitor.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", name="Queues", exact=True)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("usage")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Usage", exact=True)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("go to Jobs")
    assert visitor.violations() == []
