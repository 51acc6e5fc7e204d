"""The console in a real browser, against a real server with real trainings.

Without Chromium these tests are skipped, and say how to get it; in CI they fail. What a page must never do fails the
test it happens in: an error in the browser's console (a violation of the page's policy is one), an exception, an answer
that says the server has failed.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, expect, sync_playwright
from tests.e2e.conftest import _open_folder  # noqa: F401 (for every test here, too)
from tests.e2e.pool import ROOT, Pool

from pliant.api.people import UserRequest

PASSWORD: Final = "a-password-of-tests-42"
ROLES: Final = ("viewer", "user", "operator", "admin")
PICTURES: Final = ROOT / "build" / "console"
"""Where pictures of the pages are left, for people to look at."""
PATIENCE_MS: Final = 30_000
"""For a busy machine; whatever is waited for is there in a moment on a quiet one."""
WIDE: Final = (1440, 900)
NARROW: Final = (390, 844)

_BUNDLE: Final = ROOT / "src/pliant/server/console/bundle/index.html"
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS: Final = ("--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Chromium, started once for a file of tests; the next file may need another event loop in this thread."""
    program = os.environ.get("PLIANT_TEST_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        _do_without("no Chromium is here; on Debian: sudo apt-get install chromium")
    if not _BUNDLE.exists():
        _do_without("the console is not built; run: make console")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        sandbox = () if os.getuid() else ("--no-sandbox",)
        browser = playwright.chromium.launch(executable_path=program, args=[*_OPTIONS, *sandbox])
        yield browser
        browser.close()


def _do_without(why: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="session")
def _console_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    pool = Pool(tmp_path_factory.mktemp("console") / "home")
    pool.up()
    with pool.client() as client:
        for role in ROLES:
            client.people.add_user(
                UserRequest.model_validate({"name": f"a-{role}", "role": role, "password": PASSWORD})
            )
    yield pool
    pool.close()


@pytest.fixture
def pool(_console_pool: Pool) -> Iterator[Pool]:
    """A server with eight slots and a user of every role; jobs that a test leaves are stopped."""
    if _console_pool.process is None or _console_pool.process_ended():
        _console_pool.up()
    yield _console_pool
    if _console_pool.process_ended():
        _console_pool.up()
    with _console_pool.client() as client:
        for job in client.jobs().jobs:
            if not job.ended:
                client.stop(job.id, now=True)
        _console_pool.until(lambda: not any(slot.taken for slot in client.cluster().slots), "all slots are free")


class Visitor:
    """Somebody who looks at the console, and what their browser complains of."""

    def __init__(self, browser: Browser, url: str, *, size: tuple[int, int] = WIDE, scheme: str = "light") -> None:
        self.url = url
        self.complaints: list[str] = []
        options: dict[str, Any] = {"viewport": {"width": size[0], "height": size[1]}, "color_scheme": scheme}
        self.context: BrowserContext = browser.new_context(locale="en-GB", **options)
        self.context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        self.page.on("response", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(f"{message.type}: {message.text}")

    def _see(self, response: Response) -> None:
        if response.status >= 500 and response.status != 503:
            self.complaints.append(f"{response.status} of {response.request.method} {response.url}")

    def log_on(self, name: str, password: str = PASSWORD) -> None:
        """Log on as the page does, without its form."""
        answer = self.context.request.post(
            f"{self.url}/v1/logon",
            data={"name": name, "password": password, "cookie": True},
            headers={"X-Pliant-Console": "1"},
        )
        assert answer.ok, answer.text()

    def goto(self, path: str) -> Page:
        """Open a page, and wait until nothing on it is on its way any more."""
        self.page.goto(f"{self.url}{path}")
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page shows its heading, and nothing on it is on its way any more."""
        self.page.locator("h1").first.wait_for(state="attached")
        self.page.locator("[aria-busy=true]").first.wait_for(state="detached")

    def violations(self) -> list[str]:
        """Return what axe finds against WCAG 2.2 AA on the page as it is, one line for each."""
        found = self.page.evaluate(
            f"{(ROOT / 'web/node_modules/axe-core/axe.min.js').read_text()};\n"
            "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
        )
        return [
            f"{violation['id']}: {node['target']} {node.get('failureSummary', '')}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    def num_sideways(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        wider = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert isinstance(wider, int)
        return wider

    def picture(self, name: str) -> Path:
        """Leave a picture of the page."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        self.page.screenshot(path=path)
        return path


@pytest.fixture
def visit(chromium: Browser, pool: Pool) -> Iterator[Any]:
    """Return what opens the console for somebody; a test in which their browser complained fails."""
    visitors: list[Visitor] = []

    def open_console(name: str | None = "a-user", **options: Any) -> Visitor:
        visitor = Visitor(chromium, f"http://127.0.0.1:{pool.port}", **options)
        visitors.append(visitor)
        if name is not None:
            visitor.log_on(name)
        return visitor

    yield open_console
    complaints = [complaint for visitor in visitors for complaint in visitor.complaints]
    for visitor in visitors:
        visitor.context.close()
    assert complaints == []
