"""What people do by clicks, and by keys: slots taken out of use, many jobs changed at once, jobs laid over each other;
and what pages say when there is nothing to show.

The server's tasks are played, so nothing has to be trained for it.
"""

import re
import secrets
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import WIDE, Visitor, visitors
from tests.browser.test_dialogs import wrong_with
from tests.server.conftest import PASSWORD
from tests.server.played import Played

from pliant.control.requests.joining import Joining, JoiningRoom
from pliant.core.access import Role
from pliant.core.joining import JoinedMachine, parse_join_token

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

EMPTY: Final = {
    "/": "Nothing runs yet",
    "/jobs": "No jobs yet",
    "/jobs?q=nothing": "No job fits",
    "/jobs/compare": "Name the jobs to compare",
    "/models/weights": "No weights yet",
    "/usage": "Nothing was used in this time",
    "/events?q=nothing": "No event fits",
}
"""Pages of a server on which nothing was done, and what they say; tests of whole pages look at the others."""
OF_A_JOB: Final = {
    "metrics": "No metrics yet",
    "workers": "It has no tasks",
    "logs": "No logs yet",
    "results": "No results yet",
}
"""What the pages of a job say that waits."""
MISSING: Final = (
    "/jobs/job-99",
    "/endpoints/none",
    "/searches/none",
    "/models/none",
    "/models/templates/none",
    "/models/none/trainings/none",
    "/datasets/none",
    "/environments/none",
    "/queues/none",
    "/queues/groups/none",
    "/people/none",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    home = tmp_path_factory.mktemp("clicks") / "home"
    home.mkdir()
    served = Played(home)
    for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):
        served.add_user(f"a-{role}", role)
    yield served
    served.close()


@pytest.fixture
def visit_played(chromium: Browser, server: Played) -> Iterator[Visitor]:
    """An administrator; a test in which their browser complained fails, and jobs that it leaves are stopped."""
    with visitors(chromium, server.url) as open_console:
        visitor: Visitor = open_console(None)
        visitor.log_on("a-admin", PASSWORD)
        yield visitor.stand_still()
    for job in server.http.get("/jobs").json()["jobs"]:
        server.http.post(f"/jobs/{job['id']}/stop", params={"now": True})
    server.http.post("/machines/local/include", json={"slots": None})
    server.tick(1.0)


def wrong_on(visitor: Visitor, pages: dict[str, str]) -> list[str]:
    """Go to pages, each of which says something; return what axe finds in them, in both schemes."""
    found = []
    for scheme in ("light", "dark"):
        visitor.resize(WIDE, scheme)
        for path, said in pages.items():
            visitor.go(path)
            expect(visitor.page.get_by_role("main"), path).to_contain_text(said)
            wrong = visitor.violations("main", others=scheme == "light")
            found += [f"{path} {scheme}: {violation}" for violation in wrong]
    return found


def test_pages_with_nothing_to_show_are_whole(visit_played: Visitor, server: Played) -> None:
    visit_played.goto("/me")
    found = wrong_on(visit_played, EMPTY)
    job = server.add(name="large", min_tasks=8, max_tasks=8)
    found += wrong_on(visit_played, {f"/jobs/{job}/{tab}": said for tab, said in OF_A_JOB.items()})
    assert not found, "\n".join(found)


def test_pages_of_what_is_not_there_or_not_for_one_are_whole(visit_played: Visitor) -> None:
    visit_played.goto("/nowhere")
    found = visit_played.violations("main")
    found += wrong_on(visit_played, {path: "none" if path.endswith("none") else "job-99" for path in MISSING})
    visit_played.log_on("a-viewer", PASSWORD)
    visit_played.goto("/me")
    found += wrong_on(visit_played, dict.fromkeys(("/people", "/submit"), "Your role may not do this"))
    assert not found, "\n".join(found)


def test_a_slot_is_excluded_for_a_reason_and_included_again(visit_played: Visitor, server: Played) -> None:
    job = server.add(name="resnet", max_tasks=4)
    server.tick(1.0)
    page = visit_played.goto("/machines")
    page.get_by_role("button", name="Exclude slot 3 of local…").click()
    dialog = page.get_by_role("dialog", name="Exclude slots of local")
    expect(dialog.get_by_role("checkbox", name="3", exact=True)).to_be_checked()
    expect(dialog.get_by_role("textbox", name="Why")).to_be_focused()
    expect(dialog.get_by_role("button", name="Exclude", exact=True)).to_be_disabled()
    page.keyboard.type("ECC errors")
    dialog.get_by_role("button", name="Exclude", exact=True).click()
    expect(dialog).to_have_count(0)
    server.tick(1.0)
    machine = page.get_by_role("region", name="local", exact=True)
    expect(machine.get_by_role("listitem").filter(has=page.get_by_text("slot 3", exact=True))).to_contain_text(
        "excluded"
    )
    expect(machine).to_contain_text("Slot 3 was excluded by a-admin")
    expect(machine).to_contain_text("ECC errors")
    expect(machine).to_contain_text("3 of 3 slots")
    assert visit_played.violations("main") == []

    visit_played.go("/")
    expect(page.get_by_role("main")).to_contain_text("1 excluded")
    visit_played.go(f"/jobs/{job}")
    expect(page.get_by_role("region", name="Why")).to_contain_text("1 slot of local is excluded: ECC errors")

    visit_played.go("/machines")
    page.get_by_role("button", name="Include again: Slot 3, local").click()
    expect(machine).not_to_contain_text("ECC errors")
    server.tick(1.0)
    expect(machine).to_contain_text("4 of 4 slots")


@pytest.fixture
def joining(server: Played) -> Iterator[Joining]:
    """The server takes machines; gpu9 has joined, is drained, and is away."""
    joining = Joining(registry=server.store.registry, now=server.clock.now, token_hex=secrets.token_hex)
    joining.note(JoinedMachine(name="gpu9", owner="ada", fingerprint="ab" * 32, joined_at=5.0, slots=(0, 1)))
    machines = server.control.inquiries.machines
    machines.joining = JoiningRoom(
        joining=joining,
        pin=lambda: "2d" * 32,
        address=lambda: "10.0.0.1:7314",
        is_here=lambda _name: False,
        forget=lambda _name: None,
    )
    machines.out_of_use.drain("gpu9", "ada")
    yield joining
    machines.joining = None


def test_a_machine_is_let_join_labelled_and_removed(visit_played: Visitor, joining: Joining) -> None:
    page = visit_played.goto("/machines")
    page.get_by_role("button", name="Let a machine join…").click()
    dialog = page.get_by_role("dialog", name="Let a machine join")
    expect(dialog.get_by_role("textbox", name="Name")).to_be_focused()
    page.keyboard.type("gpu 7")
    dialog.get_by_role("button", name="Make a token").click()
    expect(dialog).to_contain_text("'gpu 7' cannot be taken")
    dialog.get_by_role("textbox", name="Name").fill("gpu7")
    visit_played.picture("machine-joins")
    assert visit_played.violations("[role=dialog]") == []
    dialog.get_by_role("button", name="Make a token").click()
    made = page.get_by_role("dialog", name="The join token")
    expect(made).to_contain_text("pliant agent --join 10.0.0.1:7314")
    visit_played.picture("machine-token")
    token = made.get_by_text("pliant-join-").text_content() or ""
    made.get_by_role("button", name="I have it").click()
    token_id, secret, _ = parse_join_token(token)
    listed = page.get_by_role("table", name="Join tokens").get_by_role("row").filter(has_text="gpu7")
    expect(listed).to_contain_text("a-admin")
    expect(listed).to_contain_text("0 of 1")
    assert joining.admit(token_id, secret, "gpu7").num_uses == 1
    listed.get_by_role("button", name="Revoke: gpu7").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(listed).to_have_count(0)

    machine = page.get_by_role("region", name="gpu9", exact=True)
    machine.get_by_role("button", name="Labels…").click()
    labels = page.get_by_role("dialog", name="Labels of gpu9")
    labels.get_by_role("textbox", name="Given here").fill("rack")
    labels.get_by_role("button", name="Label", exact=True).click()
    expect(labels).to_contain_text("rack is no label: give NAME=VALUE")
    labels.get_by_role("textbox", name="Given here").fill("rack=7\nzone=b")
    visit_played.picture("machine-labels")
    labels.get_by_role("button", name="Label", exact=True).click()
    expect(labels).to_have_count(0)
    expect(machine).to_contain_text("rack=7")
    visit_played.picture("machine-labelled")
    assert visit_played.violations("main") == []
    machine.get_by_role("button", name="Remove…").click()
    page.get_by_role("dialog", name="Remove gpu9 from the pool?").get_by_role("button", name="Remove").click()
    expect(machine).to_have_count(0)
    assert joining.get("gpu9") is None


def test_of_many_jobs_what_was_refused_is_said(visit_played: Visitor, server: Played) -> None:
    """One of three jobs ends while somebody chooses what to do with all three."""
    jobs = [server.add(name=f"one-of-{number}", max_tasks=1) for number in range(3)]
    page = visit_played.goto("/jobs?state=running")
    for job in jobs:
        page.get_by_role("checkbox", name=f"Select {job}").check()
    server.complete(jobs[1])
    dialog = page.get_by_role("dialog")
    for name, act in (("Priority…", "Apply"), ("Stop…", "Stop")):
        opener = page.get_by_role("toolbar").get_by_role("button", name=name)
        opener.focus()
        page.keyboard.press("Enter")
        assert wrong_with(visit_played, dialog, name) == []
        expect(opener).to_be_focused()
        page.keyboard.press("Enter")
        if name == "Priority…":
            dialog.get_by_role("textbox", name="Priority").fill("7000")
        dialog.get_by_role("button", name=act, exact=True).press("Enter")
        said = dialog.get_by_role("status")
        expect(said).to_contain_text("Done for 2 of 3.")
        expect(said.get_by_role("listitem")).to_have_count(1)
        expect(said.get_by_role("listitem")).to_contain_text(f"{jobs[1]}: {jobs[1]} has already completed")
        assert wrong_with(visit_played, dialog, f"{name} done") == []
        expect(opener).to_be_focused()
    server.tick(1.0)
    shown = {job["id"]: job for job in server.http.get("/jobs").json()["jobs"]}
    assert [shown[job]["priority"] for job in jobs] == [7000, 5000, 7000]
    assert [shown[job]["state"] for job in jobs] == ["stopped", "completed", "stopped"]


def test_jobs_are_laid_over_each_other_and_smoothed(visit_played: Visitor, server: Played) -> None:
    jobs = [server.add(name=f"overlaid-{number}", max_tasks=1) for number in range(2)]
    server.measure(jobs[0], 1.0, 0.5, 0.25)
    server.measure(jobs[1], 2.0, 1.0, 0.75)
    page = visit_played.goto("/jobs?q=overlaid")
    for job in jobs:
        page.get_by_role("checkbox", name=f"Select {job}").check()
    page.get_by_role("toolbar").get_by_role("link", name="Compare").click()
    expect(page).to_have_url(re.compile(r"/jobs/compare\?ids="))
    chart = page.get_by_role("figure", name="loss", exact=True)
    for job, newest in zip(jobs, ("0.25", "0.75"), strict=True):
        expect(chart.get_by_role("listitem").filter(has_text=job)).to_contain_text(newest)
    smoothing = page.get_by_role("slider", name="Smoothing")
    smoothing.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"smooth=0\.01\b"))
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"smooth=0\.02\b"))
    page.keyboard.press("End")
    for job, mean in zip(jobs, ("0.581", "1.25"), strict=True):  # nearly that of all, the newest counting a little more
        expect(chart.get_by_role("listitem").filter(has_text=job)).to_contain_text(mean)
    assert visit_played.violations("main") == []

    visit_played.go(f"/jobs/{jobs[0]}/metrics")
    page.get_by_role("textbox", name="Compare with").fill(jobs[1].removeprefix("job-"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"with={jobs[1]}\b"))
    expect(chart.get_by_role("listitem")).to_have_count(2)
