"""The console without a mouse, and without anything that moves."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import PASSWORD
from tests.browser.furnished import Furniture
from tests.e2e.pool import HERE, Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

LONGEST_MS = """() => {
  const inMs = (one) => parseFloat(one) * (/ms/.test(one) ? 1 : 1000);
  const longest = (text) => Math.max(...text.split(",").map(inMs));
  const styled = [...document.querySelectorAll("*")].flatMap((element) =>
    [null, "::before", "::after"].map((part) => {
      const style = getComputedStyle(element, part);
      return Math.max(longest(style.transitionDuration), longest(style.animationDuration));
    }),
  );
  const running = document.getAnimations().map((one) => Number(one.effect.getComputedTiming().activeDuration));
  return Math.max(0, ...styled, ...running);
}"""
"""How long the longest transition or animation of a page would last, in ms."""


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until something has the focus, as somebody without a mouse does."""
    wanted.wait_for()
    for _ in range(120):
        if wanted.and_(page.locator(":focus")).count():
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_from_log_on_to_a_job_and_its_end_by_keys_alone(visit: Any, pool: Pool, tmp_path: Path) -> None:
    (tmp_path / "pace").write_text("0.3")
    visitor = visit(None)
    page: Page = visitor.page
    page.goto(f"{visitor.url}/")
    tab_to(page, page.get_by_label("Name"))
    page.keyboard.type("a-user")
    tab_to(page, page.get_by_role("textbox", name="Password"))
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_text("live", exact=True)).to_be_visible()

    page.keyboard.press("c")
    with page.expect_file_chooser() as chooser:
        tab_to(page, page.get_by_role("button", name="Choose files"))
        page.keyboard.press("Enter")
    chooser.value.set_files(HERE / "paced.py")
    tab_to(page, page.get_by_label("Arguments"))
    page.keyboard.type(f"--epochs 500 --pace {tmp_path / 'pace'}")
    tab_to(page, page.get_by_label("Name", exact=True))
    page.keyboard.type("by-keys")
    page.keyboard.press("Control+Enter")
    expect(page).to_have_url(re.compile(r"/jobs/job-\d+"))
    expect(page.get_by_role("main").get_by_text("Running").first).to_be_visible()

    tab_to(page, page.get_by_role("button", name="Stop…"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("main").get_by_text("Stopped").first).to_be_visible()


def test_who_wants_no_motion_sees_none(visit_furnished: Any, furniture: Furniture) -> None:
    visitor = visit_furnished("a-admin").stand_still()
    for path in ("/", "/submit", f"/jobs/{furniture.running}", f"/endpoints/{furniture.endpoint}", "/machines"):
        page = visitor.go(path)
        assert page.evaluate(LONGEST_MS) <= 1, path
    page = visitor.go("/queues")
    page.get_by_role("button", name="New queue").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert page.evaluate(LONGEST_MS) <= 1
