"""Ten tabs of one browser: only the one that is looked at follows what happens. Browsers allow six connections to a
server for all of them together, over HTTP/1.1."""

from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, Request, expect
from tests.e2e.pool import HERE, Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

NUM_TABS: Final = 10
HIDES: Final = """
Object.defineProperty(document, "visibilityState", { get: () => (window.isBehind ? "hidden" : "visible") });
Object.defineProperty(document, "hidden", { get: () => window.isBehind === true });
"""
"""Chromium without a window shows all its tabs at once; so a test says which of them is behind."""


class Streams:
    """The streams of events that the tabs of a browser hold."""

    def __init__(self) -> None:
        self.open: set[Request] = set()

    def watch(self, page: Page) -> None:
        """Count those of a tab, too."""
        page.on("request", lambda one: self.open.add(one) if "/v1/events/stream" in one.url else None)
        page.on("requestfailed", lambda one: self.open.discard(one))
        page.on("requestfinished", lambda one: self.open.discard(one))


def look_at(tabs: list[Page], shown: Page) -> None:
    """Bring a tab to the front; all others are behind it."""
    for tab in sorted(tabs, key=lambda tab: tab is shown):
        tab.evaluate(
            "(isBehind) => { window.isBehind = isBehind; document.dispatchEvent(new Event('visibilitychange')); }",
            tab is not shown,
        )


def test_of_ten_tabs_the_one_that_is_looked_at_follows(visit: Any, pool: Pool, tmp_path: Path) -> None:
    visitor, streams, tabs = visit("a-admin"), Streams(), list[Page]()
    visitor.context.add_init_script(HIDES)
    for _ in range(NUM_TABS):
        tab = visitor.context.new_page()
        streams.watch(tab)
        tab.goto(f"{visitor.url}/jobs")
        expect(tab.get_by_text("live", exact=True)).to_be_visible()
        tabs.append(tab)
        look_at(tabs, tab)
    assert len(streams.open) == 1

    job = pool.submit(HERE / "paced.py", "--name", "resnet", args=("--epochs", "1"))
    expect(tabs[-1].get_by_role("link", name=job, exact=True)).to_be_visible()
    for tab in (tabs[0], tabs[4]):
        look_at(tabs, tab)
        expect(tab.get_by_role("link", name=job, exact=True)).to_be_visible()
        expect(tab.get_by_text("live", exact=True)).to_be_visible()
        assert len(streams.open) == 1
