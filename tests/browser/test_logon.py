"""Into the console and out of it."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import PASSWORD
from tests.e2e.pool import Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_by_name_and_password_one_comes_to_where_one_wanted_to_go(visit: Any) -> None:
    visitor = visit(None)
    page = visitor.page
    page.goto(f"{visitor.url}/usage?by=queue")
    expect(page).to_have_url(re.compile(r"/logon\?to="))
    page.get_by_label("Name").fill("a-user")
    page.get_by_role("textbox", name="Password").fill("wrong")
    page.get_by_role("button", name="Log on").click()
    expect(page.get_by_role("alert")).to_contain_text("password")
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Log on").click()
    expect(page).to_have_url(re.compile(r"/usage\?by=queue$"))

    # No script of the page can read what it was logged on with, and no address or storage has it.
    cookies = [cookie for cookie in visitor.context.cookies() if cookie["name"].startswith("pliant_")]
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    kept = page.evaluate("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href])")
    assert cookies[0]["value"] not in kept

    page.get_by_role("button", name="a-user").click()
    page.get_by_role("menuitem", name="Log off").click()
    expect(page.get_by_role("heading", name="Log on")).to_be_visible()
    page.goto(f"{visitor.url}/jobs")
    expect(page).to_have_url(re.compile(r"/logon"))


def test_a_link_of_the_command_line_opens_the_console_once(visit: Any, pool: Pool) -> None:
    visitor, link = visit(None), pool.cli("console", "--no-browser", "--to", "/jobs").strip()
    visitor.page.goto(link)
    expect(visitor.page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
    assert "code" not in visitor.page.url

    late = visit(None)
    late.page.goto(link)
    expect(late.page.get_by_role("alert")).to_contain_text("used already")


def test_who_guesses_is_told_how_long_to_wait(visit: Any, pool: Pool) -> None:
    visitor = visit(None)
    page = visitor.page
    page.goto(f"{visitor.url}/logon")
    name, password = page.get_by_label("Name"), page.get_by_role("textbox", name="Password")
    name.fill("somebody-else")
    for guess in range(30):
        password.fill(f"guess-{guess}")
        page.get_by_role("button", name="Log on").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_role("button", name="Log on").and_(page.locator(":not([data-loading])")).wait_for()
        if "Try again in" in page.get_by_role("alert").inner_text():
            break
    expect(page.get_by_role("alert")).to_contain_text(re.compile(r"Try again in \d+ s"))
    expect(page.get_by_role("button", name="Log on")).to_be_disabled()
    shown = page.get_by_role("alert").inner_text()
    expect(page.get_by_role("alert")).not_to_have_text(shown)  # it counts down
    expect(page.get_by_role("button", name="Log on")).to_be_enabled(timeout=90_000)


def test_a_session_that_was_ended_elsewhere_leads_to_the_log_on_page_and_back(visit: Any, pool: Pool) -> None:
    visitor = visit("a-operator")
    visitor.goto("/queues")
    with pool.client() as client:
        for session in client.people.sessions("a-operator"):
            client.people.end_session(session.id, "a-operator")
    page = visitor.page
    page.get_by_role("link", name="Usage", exact=True).first.click()
    expect(page).to_have_url(re.compile(r"/logon\?to=%2Fusage$"))
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    page.get_by_label("Name").fill("a-operator")
    page.get_by_role("textbox", name="Password").fill(PASSWORD)
    page.get_by_role("button", name="Log on").click()
    expect(page.get_by_role("heading", name="Usage", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(r"/usage$"))
