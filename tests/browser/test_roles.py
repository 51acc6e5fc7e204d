"""What a role may not do is not shown, on any page, and refused by the server anyway.

The server's tasks are played, so that everything that can be done something with is there at once.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.actions import ADMINS, EVERYBODY, OPERATORS, SEERS, USERS, ConsolePage, pages_of, requests_of
from tests.browser.belongings import PEOPLE, Belongings, plant
from tests.browser.conftest import UNTIL, Visitor
from tests.server.conftest import PASSWORD
from tests.server.played import Played

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_PLACES: Final = ("Overview", "Jobs", "Endpoints", "Searches", "Models", "Data sets", "Environments", "Queues")
RAIL: Final = {
    **dict.fromkeys((*_PLACES, "Machines", "Usage", "Events"), EVERYBODY),
    "Settings": OPERATORS,
    "People": ADMINS,
    "Audit": ADMINS,
}
COMMANDS: Final = {"Submit a job": USERS, "Make a queue": OPERATORS}
ENDS: Final = ("POST /v1/shutdown", "GET /v1/backup")
"""What nobody asks for here who may."""
HARMLESS: Final = re.compile(r"Details of: |Show .* alone|\d|Try again|Copy|Select job-|Close$")
"""Buttons that are there for what one sees, not for what one may do; and one in each row."""
LOOK: Final = """async wanted => {
  const until = UNTIL;
  const seen = query => [...document.querySelectorAll(query)].filter(one => one.checkVisibility());
  const named = one => {
    const by = (one.getAttribute('aria-labelledby') ?? '').split(' ').map(id => document.getElementById(id));
    const labels = [...(one.labels ?? []), ...by.filter(Boolean)];
    const text = one.ariaLabel ?? labels[0]?.innerText ?? one.innerText ?? '';
    return text.trim().split('\\n')[0];
  };
  const look = async () => {
    const links = seen('main a[href]').map(named);
    const found = seen('main :is(button, input, textarea, select, [role=slider])').map(named);
    const dialogs = seen('[role=dialog]').length;
    for (const menu of seen('main button[aria-haspopup=menu]')) {
      menu.click();
      await until(() => seen('[role=menuitem]').length > 0, 'a menu');
      found.push(...seen('[role=menuitem]').map(named));
      menu.click();
      await until(() => seen('[role=menuitem]').length === 0, 'the menu closed');
    }
    return {heading: document.querySelector('h1')?.innerText ?? '', links, found, dialogs};
  };
  for (const since = performance.now(); ; await new Promise(done => setTimeout(done, 50))) {
    const looked = await look();
    const lacks = wanted.some(name => !looked.found.includes(name) && !looked.links.includes(name));
    if (!lacks || performance.now() - since > 20000) return looked;
  }
}""".replace("UNTIL", UNTIL)
"""Waits until all that is wanted of a page is there, and returns what can be seen of it."""
ASK: Final = """async requests => Promise.all(requests.map(async request => {
  const [method, path, ...words] = request.split(' ');
  const headers = {'X-Pliant-Console': '1', 'If-Match': '"999"', 'Content-Type': 'application/json'};
  let body = method === 'GET' ? undefined : words.length > 0 ? words.join(' ') : '{"nothing": 1}';
  if (request.startsWith('PUT /v1/templates')) {
    delete headers['Content-Type'];
    const template = body;
    body = new FormData();
    body.append('template', template);
  }
  const answer = await fetch(path, {method, headers, body});
  return [request, answer.status, await answer.text()];
}))"""

Look = dict[str, Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    home = tmp_path_factory.mktemp("roles") / "home"
    home.mkdir()
    served = Played(home)
    yield served
    served.close()


@pytest.fixture(scope="module")
def things(server: Played) -> Belongings:
    return plant(server)


@pytest.fixture(scope="module")
def visitors(chromium: Browser, server: Played, things: Belongings) -> Iterator[dict[str, Visitor]]:
    """Everybody, logged on."""
    opened = {}
    for name in PEOPLE:
        opened[name] = Visitor(chromium, server.url).stand_still()
        opened[name].log_on(name, PASSWORD)
        opened[name].goto("/")
    yield opened
    for visitor in opened.values():
        visitor.context.close()


def test_every_page_shows_what_a_role_may_do_and_nothing_else(visitors: dict[str, Visitor], things: Belongings) -> None:
    wrong: list[str] = []
    for page in pages_of(things):
        looks = {name: _look(visitor, page.path, page.names_for(name)) for name, visitor in visitors.items()}
        wrong += [f"{page.path}: {line}" for line in _misplaced(page, looks)]
    complaints = [line for visitor in visitors.values() for line in visitor.complaints]
    assert not wrong, "\n".join(wrong)
    assert complaints == []


def _look(visitor: Visitor, path: str, wanted: list[str] | None = None) -> Look:
    """Go to a page; return its heading, its links and buttons, and how many dialogs are open."""
    found: Look = visitor.go(path).evaluate(LOOK, wanted or [])
    return found


def _misplaced(page: ConsolePage, looks: dict[str, Look]) -> Iterator[str]:
    """Say what somebody finds that is not theirs, what somebody lacks, and what the table does not have."""
    names = {name: {*look["found"], *look["links"]} for name, look in looks.items()}
    for action in page.actions:
        found = {name for name in looks if action.name in names[name]}
        if found != action.people & page.seen_by:
            yield f"{action.name!r} is there for {sorted(found)}, not for {sorted(action.people & page.seen_by)}"
    for name in page.seen_by:
        if "may not" in looks[name]["heading"] or not looks[name]["heading"]:
            yield f"{name} sees {looks[name]['heading']!r}"
    alike = page.seen_by & SEERS or page.seen_by  # the same things are there for all of them
    buttons = {name: {one for one in looks[name]["found"] if one and not HARMLESS.match(one)} for name in alike}
    for button in set.union(*buttons.values()) - set.intersection(*buttons.values()) - page.names:
        found = {name for name in buttons if button in buttons[name]}
        yield f"{button!r} is not in the table, and is there for {sorted(found)}"
    for name in EVERYBODY - OPERATORS:
        if "?new=" in page.path and looks[name]["dialogs"]:
            yield f"its address opens a form for {name}"


def test_a_job_is_shared_and_deployed_from_its_page(
    visitors: dict[str, Visitor], things: Belongings, server: Played
) -> None:
    page = visitors["ada"].page
    _look(visitors["ada"], f"/jobs/{things.completed}", ["Share…", "Deploy…"])
    page.get_by_role("button", name="Share…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="People").fill("eve")
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    shares = server.http.get(f"/jobs/{things.completed}/shares").json()
    assert shares["shared_with"] == ["bob", "vera", "eve"]

    page = visitors["olga"].page
    _look(visitors["olga"], f"/jobs/{things.completed}", ["Deploy…"])
    page.get_by_role("button", name="Deploy…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name of the endpoint").fill("from-its-page")
    dialog.get_by_label("Kernels at least").fill("1")
    dialog.get_by_label("Kernels at most").fill("3")
    dialog.get_by_role("button", name="Deploy", exact=True).click()
    expect(page.get_by_role("heading", name="from-its-page").first).to_be_visible()
    endpoint = server.http.get("/endpoints/from-its-page").json()
    assert (endpoint["kernel_min"], endpoint["kernel_max"], endpoint["owner"]) == (1, 3, "olga")
    server.http.delete("/endpoints/from-its-page")
    server.http.put(f"/jobs/{things.completed}/shares", json={"shared_with": ["bob", "vera"]})


def test_what_is_not_shown_is_refused_and_what_is_shown_is_not(
    visitors: dict[str, Visitor], things: Belongings
) -> None:
    """Whoever may change something names a revision that is not there, or what nobody knows.

    Nothing keeps them from starting, stopping and removing what has no revision; so they ask last.
    """
    wrong: list[str] = []
    for name, visitor in visitors.items():
        for request, status, text in visitor.page.evaluate(ASK, requests_of(things, name, may=False)):
            if status not in (403, 404) or '"detail":"' not in text:
                wrong.append(f"{name} may not {request}: {status} {text:.200}")
    done: set[str] = set()
    for name, visitor in visitors.items():
        asked = [request.partition(" {")[0] for request in requests_of(things, name, may=True)]
        for request, status, text in visitor.page.evaluate(ASK, [one for one in asked if one not in ENDS]):
            if status in (401, 403, 405, 500) or (status == 404 and request not in done):
                wrong.append(f"{name} may {request}: {status} {text:.200}")
            if status < 300:
                done.add(request)
    assert not wrong, "\n".join(wrong)


def test_of_many_jobs_one_chooses_those_that_one_may_change(visitors: dict[str, Visitor], things: Belongings) -> None:
    page = visitors["ada"].page
    _look(visitors["ada"], "/jobs")
    page.get_by_role("checkbox", name=f"Select {things.running}").check()
    toolbar = page.get_by_role("toolbar")
    expect(toolbar.get_by_role("button")).to_have_text(["Stop…", "Priority…", "Compare", "Clear"])

    request = f'POST /v1/jobs/stop {{"ids": ["{things.running}"]}}'
    ((_, status, text),) = visitors["bob"].page.evaluate(ASK, [request])
    (outcome,) = json.loads(text)["outcomes"]
    assert (status, outcome["ok"]) == (200, False)
    assert "only shared with you; ask ada to change it" in outcome["problem"]


def test_rail_palette_and_keys_lead_nowhere_that_a_role_may_not_go(visitors: dict[str, Visitor]) -> None:
    for name, visitor in visitors.items():
        page = visitor.page
        _look(visitor, "/usage")
        links = page.get_by_role("navigation").first.get_by_role("link").all_inner_texts()
        rail = {re.sub(r"[\d\s]+$", "", link) for link in links}
        assert rail == {place for place, people in RAIL.items() if name in people}, name
        assert page.get_by_role("link", name="Submit", exact=True).count() == int(name in USERS), name

        page.keyboard.press("Control+k")
        page.get_by_role("combobox").fill("a ")
        options = set(page.get_by_role("option").all_inner_texts())
        for command, people in COMMANDS.items():
            assert any(command in option for option in options) is (name in people), (name, command, options)
        page.keyboard.press("Escape")
        expect(page.get_by_role("combobox")).to_have_count(0)

        page.keyboard.press("c")
        page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert page.url.endswith("/submit") is (name in USERS), name
