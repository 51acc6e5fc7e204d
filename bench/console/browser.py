"""Chromium, seen through its own instruments: bytes on the wire, moments, processor time of a page, memory."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, sync_playwright

VARIABLE = "PLIANT_TEST_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PATIENCE_MS = 120_000
SIZE = (1440, 900)

WATCH = """
(() => {
  const isLive = () =>
    document.querySelector('[data-connection="live"]') !== null &&
    document.querySelector('.u-wrap canvas') !== null &&
    document.querySelector('main dl dd') !== null &&
    document.querySelector('[aria-busy="true"]') === null;
  let done = false;
  const look = () => {
    if (done || !isLive()) return;
    done = true;
    requestAnimationFrame(() => setTimeout(() => performance.mark('bench live')));
  };
  new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true});
})();
"""
"""Marks when the page shows figures, the chart and that events come, has asked for nothing more, and has painted it."""

REDRAWS = """
(() => {
  window.benchRedraws = 0;
  new MutationObserver(() => { window.benchRedraws += 1; }).observe(
    document.querySelector('[role=slider]'), {attributes: true, attributeFilter: ['aria-valuenow']});
})();
"""
"""Counts how often the chart of slots is drawn with a later end."""

STEPS = """
async ([steps, pixels]) => {
  const box = document.querySelector('section[tabindex="0"]');
  for (let step = 0; step < steps; step += 1) {
    box.scrollTop += pixels;
    await new Promise(requestAnimationFrame);
  }
}
"""
"""Moves the table by so many pixels in every frame, however long a frame takes."""

FRAMES = """
(() => {
  const seen = {times: [], holes: 0};
  window.benchFrames = seen;
  const count = (time) => {
    seen.times.push(time);
    const box = document.querySelector('section[tabindex="0"]').getBoundingClientRect();
    const holes = [...document.querySelectorAll('tbody tr[aria-rowindex]:not([data-row])')];
    if (holes.some((hole) => {
      const {top, bottom} = hole.getBoundingClientRect();
      return bottom > box.top && top < box.bottom;
    })) seen.holes += 1;
    seen.next = requestAnimationFrame(count);
  };
  seen.next = requestAnimationFrame(count);
})();
"""
"""Notes the time of every frame of the main thread, and in how many a row is seen that has not come yet."""


def chromium_path() -> str | None:
    """Return the Chromium that is used; None: there is none."""
    return os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium without a screen.

    Raises:
        RuntimeError: there is none.
    """
    program = chromium_path()
    if program is None:
        raise RuntimeError("no Chromium is here; on Debian: sudo apt-get install chromium")
    sandbox = () if os.getuid() else ("--no-sandbox",)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=[*_OPTIONS, *sandbox])
        try:
            yield started
        finally:
            started.close()


def log_on(started: Browser, link: str) -> Any:
    """Log on by a one-time link; return what other contexts need to be logged on, too."""
    context = new_context(started, None)
    page = context.new_page()
    page.goto(link)
    page.locator("[data-connection=live]").wait_for()
    state = context.storage_state()
    context.close()
    return state


def new_context(started: Browser, state: Any) -> BrowserContext:
    """Return a browser of somebody's own: nothing is cached, connections are its own."""
    context = started.new_context(
        viewport={"width": SIZE[0], "height": SIZE[1]}, locale="en-GB", color_scheme="light", storage_state=state
    )
    context.set_default_timeout(_PATIENCE_MS)
    return context


def settle(page: Page) -> None:
    """Wait until the page shows its heading, and nothing on it is on its way any more."""
    page.locator("h1").first.wait_for(state="attached")
    page.locator("[aria-busy=true]").first.wait_for(state="detached")


def wait_here(page: Page, seconds: float) -> None:
    """Let time pass while the browser's messages are taken."""
    page.wait_for_timeout(seconds * 1000)


@dataclass  # without slots: the browser's driver notes something on whoever listens
class Traffic:
    """What came over the wire for one page, from now on, with nothing cached."""

    whole: float = 0.0
    """Bytes with their heads, of answers that are over."""
    bodies: dict[str, float] = field(default_factory=dict)
    """Bytes of bodies as they came, packed, by address."""
    _addresses: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, session: CDPSession) -> "Traffic":
        """Begin to count."""
        traffic = cls()
        session.on("Network.responseReceived", traffic._begin)
        session.on("Network.dataReceived", traffic._add)
        session.on("Network.loadingFinished", traffic._end)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        return traffic

    def _begin(self, event: dict[str, Any]) -> None:
        address = event["response"]["url"]
        self._addresses[event["requestId"]] = address
        self.bodies[address] = 0.0

    def _add(self, event: dict[str, Any]) -> None:
        if (address := self._addresses.get(event["requestId"])) is not None:
            self.bodies[address] += event["encodedDataLength"]

    def _end(self, event: dict[str, Any]) -> None:
        self.whole += event["encodedDataLength"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor time of a page's main thread in a while, and that while, seconds."""

    main_s: float
    wall_s: float


class MainThread:
    """The processor time that a page's main thread has used, by the browser's own count."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._from = self._now()

    def spent(self) -> Spent:
        """Return what was used since it was asked last."""
        before, self._from = self._from, self._now()
        return Spent(main_s=self._from.main_s - before.main_s, wall_s=self._from.wall_s - before.wall_s)

    def _now(self) -> Spent:
        metrics = {entry["name"]: entry["value"] for entry in self._session.send("Performance.getMetrics")["metrics"]}
        return Spent(main_s=metrics["TaskDuration"], wall_s=time.monotonic())


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a page holds after all that nobody needs was thrown away."""

    at_s: float
    heap_mb: float
    nodes: int
    listeners: int
    documents: int


def held(session: CDPSession, at_s: float) -> Held:
    """Collect garbage, and count what is left."""
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"]
    counters = session.send("Memory.getDOMCounters")
    return Held(
        at_s=at_s,
        heap_mb=heap / 1e6,
        nodes=counters["nodes"],
        listeners=counters["jsEventListeners"],
        documents=counters["documents"],
    )
