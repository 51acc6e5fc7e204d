"""The tutorial of the system that Pliant follows, played in the console: two trainings share eight slots, a priority
changes, the first one ends; and what the chart shows is what was."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.pace import Pace
from tests.e2e.pool import HERE, Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def holds(page: Page, job: str, slots: int) -> None:
    """Wait until the legend of the chart says that a job has so many slots now."""
    entry = (
        page.get_by_role("listitem")
        .filter(has=page.get_by_role("link", name=job))
        .filter(has=page.get_by_role("button"))
    )
    expect(entry.first).to_contain_text(f"{slots}", timeout=45_000)
    expect(entry.first.locator("b")).to_have_text(str(slots), timeout=45_000)


def test_two_trainings_share_eight_slots_while_one_watches(visit: Any, pool: Pool, tmp_path: Path) -> None:
    paces = [Pace(tmp_path / f"pace-{number}", 0.2) for number in (1, 2)]
    script = HERE / "paced.py"
    first = pool.submit(script, "--max", "8", "--name", "first", args=("--pace", str(paces[0]), "--epochs", "40"))
    visitor = visit("a-operator")
    page = visitor.goto("/?from=-900")
    holds(page, first, 8)

    second = pool.submit(script, "--max", "8", "--name", "second", args=("--pace", str(paces[1]), "--epochs", "40"))
    holds(page, second, 4)
    holds(page, first, 4)

    # The priority, by the page of the job: it says who would get what, and then that is so.
    other = visit("a-operator")
    changes = other.goto(f"/jobs/{second}/overview")
    changes.get_by_role("textbox", name="Priority").fill("10000")
    expect(changes.get_by_role("table").filter(has_text=first).first).to_contain_text("3")
    changes.get_by_role("button", name="Apply").click()
    holds(page, second, 5)
    holds(page, first, 3)
    with pool.client() as client:
        assert client.why(second).sentence in changes.get_by_role("main").inner_text()

    paces[0].set(0)
    pool.until(lambda: pool.json("show", first)["job"]["state"] == "completed", "the first ends", 90)
    holds(page, second, 8)
    visitor.picture("walk")

    # What the chart says of them is what they used.
    with pool.client() as client:
        now = client.cluster().now
        usage = [(point.at, point.num_slots) for point in client.usage(job_id=first).points]
    used = sum(slots * (end - at) for (at, slots), (end, _) in zip(usage, [*usage[1:], (now, 0)], strict=True))
    answer = visitor.context.request.get(f"{visitor.url}/v1/slots/chart?from=-900").json()
    assert next(key["slot_seconds"] for key in answer["keys"] if key["id"] == first) == pytest.approx(used, abs=0.01)
