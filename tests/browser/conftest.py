"""The console in a real browser, against a real server with real trainings.

Without Chromium these tests are skipped, and say how to get it; in CI they fail. What a page must never do fails the
test it happens in: an error in the browser's console (a violation of the page's policy is one), an exception, an answer
that says the server has failed.
"""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Response,
    ViewportSize,
    expect,
    sync_playwright,
)
from tests.browser.furnished import Furniture, furnish
from tests.catalog.environments.wheels import offline, tiny_wheel
from tests.e2e.conftest import _open_folder  # noqa: F401 (for every test here, too)
from tests.e2e.pool import ROOT, Pool

from pliant.api.people import UserRequest

PASSWORD: Final = "a-password-of-tests-42"
ROLES: Final = ("viewer", "user", "operator", "admin")
PICTURES: Final = ROOT / "build" / "console"
"""Where pictures of the pages are left for people to look at: in CI, or if `PLIANT_TEST_PICTURES` is set."""
PATIENCE_MS: Final = 30_000
"""For a busy machine; whatever is waited for is there in a moment on a quiet one."""
WIDE: Final = (1440, 900)
NARROW: Final = (390, 844)
REFLOW: Final = (320, 640)
"""What is left of a wide window at a zoom of 400 % (WCAG 1.4.10)."""
WCAG: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
"""What axe calls the rules of WCAG 2.2 AA."""

_CONTRAST: Final = "color-contrast"
_BUNDLE: Final = ROOT / "src/pliant/server/console/bundle/index.html"
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_RUNNING: Final = pytest.StashKey[tuple[Browser, ExitStack]]()
_SERVERS: Final = ("furnished_pool", "server", "_console_pool")
"""The fixtures that start one; the dearest first."""
_OPTIONS: Final = ("--disable-dev-shm-usage", "--disable-gpu", "--no-first-run", "--disable-background-networking")

UNTIL: Final = """async (holds, what) => {
  for (const since = performance.now(); !holds(); await new Promise(done => setTimeout(done, 15)))
    if (performance.now() - since > 60000) throw new Error(`${location}: ${what}`);
}"""
"""Waits in the page until something holds."""
GO: Final = f"""async ([elsewhere, path]) => {{
  const until = {UNTIL};
  const go = to => {{
    history.pushState({{}}, '', to);
    dispatchEvent(new PopStateEvent('popstate', {{state: history.state}}));
  }};
  const heading = () => document.querySelector('h1')?.textContent ?? '';
  go(elsewhere);
  await until(() => heading() === 'There is nothing here', 'the page before is left');
  go(path);
  await until(() => heading() && heading() !== 'There is nothing here', 'its heading');
  await until(() => !document.querySelector('[aria-busy=true]'), 'all that is on its way');
}}"""
"""Goes from one page of the console to another one without loading the console anew; waits until all of it is there."""

_FIND: Final = """async ([within, options]) => (await axe.run(within, options)).violations.flatMap(
  ({id, nodes}) => nodes.map(({target, failureSummary}) => `${id}: ${target} ${failureSummary ?? ''}`)
)"""
"""Returns what axe finds, and leaves what was right in the browser: that is long."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of one server follow each other: a worker that takes some of them from another starts fewer."""
    places = [place for place, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    for place, item in zip(places, sorted((items[place] for place in places), key=_server_of), strict=True):
        items[place] = item


def _server_of(item: pytest.Item) -> int:
    fixtures = getattr(item, "fixturenames", ())
    return next((number for number, name in enumerate(_SERVERS) if name in fixtures), len(_SERVERS))


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Browser:
    """Chromium, started once for the files of this folder that follow each other."""
    stash = request.config.stash
    if _RUNNING not in stash:
        with ExitStack() as stack:
            stash[_RUNNING] = stack.enter_context(_launched()), stack.pop_all()
    return stash[_RUNNING][0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End Chromium before a test of another folder: that may need another event loop in this thread."""
    stash = item.config.stash
    if _RUNNING in stash and (nextitem is None or nextitem.path.parent != item.path.parent):
        _, stack = stash[_RUNNING]
        del stash[_RUNNING]
        stack.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say of a test that failed what its pages showed."""
    report = yield
    if call.when == "call" and report.failed and _RUNNING in item.config.stash:
        browser, _ = item.config.stash[_RUNNING]
        for page in (page for context in browser.contexts for page in context.pages):
            with suppress(Error):
                report.sections.append((f"the page {page.url}", page.locator("body").inner_text(timeout=5_000)))
    return report


@contextmanager
def _launched() -> Iterator[Browser]:
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
    pool = Pool(tmp_path_factory.mktemp("console") / "home", module="tests.browser.eight_gpus", warm=True)
    pool.up()
    add_people(pool)
    yield pool
    pool.close()


def add_people(pool: Pool) -> None:
    """Add a user of every role, who can log on."""
    with pool.client() as client:
        for role in ROLES:
            client.people.add_user(
                UserRequest.model_validate({"name": f"a-{role}", "role": role, "password": PASSWORD})
            )


@pytest.fixture(scope="session")
def furnished_pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pool, Furniture]]:
    """A server with something of everything, made once; tests that look at it leave it as it is."""
    folder = tmp_path_factory.mktemp("furnished")
    folder.parent.chmod(0o755)
    tiny_wheel(folder / "wheels")
    before = os.umask(0)
    with pytest.MonkeyPatch.context() as environment:
        for name, value in offline(folder / "wheels").items():
            environment.setenv(name, value)
        folder.chmod(0o777)
        pool = Pool(folder / "home", warm=True)
        pool.up()
        add_people(pool)
        yield pool, furnish(pool, folder)
        pool.close()
    os.umask(before)


@pytest.fixture
def pool(_console_pool: Pool) -> Iterator[Pool]:
    """A server with eight slots, its GPUs, and a user of every role; jobs that a test leaves are stopped."""
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
        self.url, self.scheme = url, scheme
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

    def go(self, path: str) -> Page:
        """Go to a page as a link of the console does; what is open is left first, so that nothing of it stays."""
        if not self.page.url.startswith(self.url):
            return self.goto(path)
        self.page.evaluate(GO, [f"{self.url}/nowhere", f"{self.url}{path}"])
        return self.page

    def settle(self) -> None:
        """Wait until the page shows its heading, and nothing on it is on its way any more."""
        self.page.locator("h1").first.wait_for(state="attached")
        self.page.locator("[aria-busy=true]").first.wait_for(state="detached")

    def stand_still(self) -> "Visitor":
        """Ask for no motion, as people do who cannot stand it; then nothing is looked at while it fades in."""
        self.page.emulate_media(reduced_motion="reduce")
        return self

    def violations(self, within: str = "html", *, colours: bool = True, others: bool = True) -> list[str]:
        """Return what axe finds against WCAG 2.2 AA in a part of the page as it is, one line for each.

        Args:
            within: the part, as a selector.
            colours: whether its contrasts are measured.
            others: whether everything else is looked at.
        """
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate((ROOT / "web/node_modules/axe-core/axe.min.js").read_text())
        rules = {"runOnly": WCAG if others else [_CONTRAST], "rules": {_CONTRAST: {"enabled": colours}}}
        found: list[str] = self.page.evaluate(_FIND, [within, rules | {"resultTypes": ["violations"]}])
        return found

    def num_sideways(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        wider = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert isinstance(wider, int)
        return wider

    def resize(self, size: tuple[int, int], scheme: str) -> None:
        """Let the page that is open have another size or scheme, and wait until it is laid out."""
        if self.page.viewport_size != (viewport := ViewportSize(width=size[0], height=size[1])):
            self.page.set_viewport_size(viewport)
        if self.scheme != scheme:
            self.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            self.scheme = scheme
        if self.page.url.startswith(self.url):
            self.page.locator(f"html[data-mantine-color-scheme={scheme}]").wait_for(state="attached")
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def look_at(self, path: str, name: str) -> list[str]:
        """Look at a page in both schemes, wide, on a telephone and at 320 pixels; leave pictures of it.

        Returns what is wrong: violations of WCAG 2.2 AA that axe finds, and how much it scrolls sideways.
        """
        found: list[str] = []
        self.stand_still().resize(WIDE, "light")
        self.go(path)
        for size, scheme in ((WIDE, "light"), (WIDE, "dark"), (NARROW, "dark"), (NARROW, "light"), (REFLOW, "light")):
            self.resize(size, scheme)
            self.settle()
            where = f"{path} {size[0]} {scheme}"
            if size != REFLOW:
                self.picture(f"{name}-{size[0]}-{scheme}")
            if size == WIDE or (size, scheme) == (NARROW, "light"):  # of the scheme are colours, of the width the rest
                wrong = self.violations(colours=size == WIDE, others=scheme == "light")
                found += [f"{where}: {violation}" for violation in wrong]
            if (sideways := self.num_sideways()) > 0:
                found.append(f"{where}: {sideways} pixels wider than the window")
        if self.page.get_by_text("This page has failed").count():
            found.append(f"{path} has failed: {self.complaints}")
        return found

    def picture(self, name: str) -> None:
        """Leave a picture of the page, if pictures are wanted."""
        if os.environ.get("PLIANT_TEST_PICTURES") or os.environ.get("CI"):
            self.page.screenshot(path=PICTURES / f"{name}.png")


@pytest.fixture
def visit(chromium: Browser, pool: Pool) -> Iterator[Any]:
    """Return what opens the console for somebody; a test in which their browser complained fails."""
    with visitors(chromium, f"http://127.0.0.1:{pool.port}") as open_console:
        yield open_console


@pytest.fixture
def visit_furnished(chromium: Browser, furnished_pool: tuple[Pool, Furniture]) -> Iterator[Any]:
    """The same over the server that has something of everything."""
    with visitors(chromium, f"http://127.0.0.1:{furnished_pool[0].port}") as open_console:
        yield open_console


@pytest.fixture
def furniture(furnished_pool: tuple[Pool, Furniture]) -> Furniture:
    """What there is on that server."""
    return furnished_pool[1]


@contextmanager
def visitors(browser: Browser, url: str) -> Iterator[Callable[..., Visitor]]:
    """Open the console for as many as ask; at the end none of their browsers may have complained."""
    opened: list[Visitor] = []

    def open_console(name: str | None = "a-user", **options: Any) -> Visitor:
        visitor = Visitor(browser, url, **options)
        opened.append(visitor)
        if name is not None:
            visitor.log_on(name)
        return visitor

    yield open_console
    complaints = [complaint for visitor in opened for complaint in visitor.complaints]
    for visitor in opened:
        visitor.context.close()
    assert complaints == []
