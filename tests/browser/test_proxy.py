"""The console below a path of another server's address, behind a reverse proxy."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import PASSWORD, add_people, visitors
from tests.browser.proxy import reverse_proxy
from tests.e2e.pool import HERE, Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PREFIX = "/pliant"


@pytest.fixture
def hidden_pool(tmp_path: Path) -> Iterator[Pool]:
    """A server that is told that a proxy shows it below a path."""
    pool = Pool(tmp_path / "home", slots=2, options=("--root-path", PREFIX, "--trusted-proxy", "127.0.0.1"))
    pool.up()
    add_people(pool)
    yield pool
    pool.close()


def test_all_of_it_works_below_a_path(chromium: Browser, hidden_pool: Pool) -> None:
    with reverse_proxy(hidden_pool.port, PREFIX) as url, visitors(chromium, url) as open_console:
        visitor = open_console(None)
        page, asked = visitor.page, set[str]()
        page.on("request", lambda request: asked.add(request.url))
        page.goto(f"{url}/usage?by=queue")
        page.get_by_label("Name").fill("a-operator")
        page.get_by_role("textbox", name="Password").fill(PASSWORD)
        page.get_by_role("button", name="Log on").click()
        expect(page).to_have_url(f"{url}/usage?by=queue")
        cookies = [cookie for cookie in visitor.context.cookies() if cookie["name"].startswith("pliant_")]
        assert [(cookie["path"], cookie["sameSite"]) for cookie in cookies] == [(f"{PREFIX}/", "Strict")]
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert download.value.path().read_text().startswith("queue,name,")

        # What happens comes without being asked for, and a change goes the other way.
        page.get_by_role("link", name="Jobs", exact=True).first.click()
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        job = hidden_pool.submit(HERE / "paced.py", "--name", "resnet", args=("--epochs", "1"))
        row = page.get_by_role("link", name=job, exact=True)
        assert row.evaluate("link => link.href") == f"{url}/jobs/{job}", "as a new tab opens it"
        row.click()
        expect(page).to_have_url(f"{url}/jobs/{job}")
        expect(page.get_by_role("main").get_by_text("Completed").first).to_be_visible()
        page.get_by_role("button", name="Delete…").click()
        page.get_by_role("dialog").get_by_role("button", name=re.compile("^Delete")).click()
        expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
        with hidden_pool.client() as client:
            assert [one.id for one in client.jobs().jobs] == []

        page.reload()
        expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
        page.get_by_role("button", name="a-operator").click()
        page.get_by_role("menuitem", name="Log off").click()
        expect(page.get_by_role("heading", name="Log on")).to_be_visible()
        assert page.url.startswith(f"{url}/logon")
        assert {one for one in asked if not one.startswith((f"{url}/", "data:", "blob:"))} == set()
