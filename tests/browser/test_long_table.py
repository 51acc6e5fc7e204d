"""A table of which only the rows that are seen are drawn, by elements that rows take from each other."""

import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.pool import HERE, Pool

from pliant.api.arrays import ArrayRequest
from pliant.api.jobs import JobPatch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

NUM_JOBS = 80


def drawn(page: Page) -> list[int]:
    """Return the rows that are drawn, in the order in which Tab goes through them."""
    rows: list[int] = page.locator("tbody tr[data-row]").evaluate_all("rows => rows.map(row => +row.dataset.row)")
    return rows


def focused(page: Page) -> str:
    """Return which row has the focus, by its number; empty: none."""
    row: str = page.evaluate("document.activeElement?.closest('[data-row]')?.dataset.row ?? ''")
    return row


@pytest.fixture
def table(visit: Any, pool: Pool) -> Iterator[Page]:
    """The page of jobs, of which there are more than three screens; none of them runs."""
    name = f"many-{secrets.token_hex(4)}"
    request = ArrayRequest(
        script="paced.py", name=name, fixed=True, min_tasks=9, max_tasks=9, array={"n": tuple(range(NUM_JOBS))}
    )
    with pool.client() as client:
        array = client.arrays.submit(Path(HERE / "paced.py"), request)
        page: Page = visit("a-admin").goto(f"/jobs?q={name}")
        expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", str(NUM_JOBS + 1))
        yield page
        client.arrays.stop(array.id, now=True)
        client.arrays.delete(array.id)


def scroll(page: Page, pixels: int) -> None:
    page.locator("section[tabindex='0']").hover()
    page.mouse.wheel(0, pixels)


def scroll_to_rest(page: Page, pixels: int) -> None:
    before = drawn(page)
    scroll(page, pixels)
    Pool.until(lambda: drawn(page) != before, "other rows are drawn")
    Pool.until(lambda: drawn(page) == sorted(drawn(page)), "the rows that are drawn are in their order")


def jobs_by_row(page: Page) -> dict[str, str]:
    rows: list[tuple[str, str]] = page.locator("tbody tr[data-row]").evaluate_all(
        "rows => rows.map(row => [row.getAttribute('aria-rowindex'), row.querySelector('a').textContent])"
    )
    return dict(rows)


def await_focus(page: Page, row: int) -> None:
    Pool.until(lambda: focused(page) == str(row), f"row {row} has the focus")


def press_j(page: Page, times: int) -> None:
    page.locator("section[tabindex='0']").focus()
    for row in range(times):
        page.keyboard.press("j")
        await_focus(page, row)


def test_rows_are_in_their_order_for_tab_as_soon_as_nothing_scrolls(table: Page) -> None:
    for pixels in (1500, 2000, -700, -1900):
        scroll_to_rest(table, pixels)
    assert len(set(drawn(table))) == len(drawn(table)) < NUM_JOBS


def test_each_row_shows_its_own_job_wherever_one_scrolls(table: Page) -> None:
    shown: dict[str, str] = jobs_by_row(table)
    for pixels in (900, 900, 2000, -1300, -3000):
        scroll_to_rest(table, pixels)
        seen = jobs_by_row(table)
        assert seen == {**seen, **{number: job for number, job in shown.items() if number in seen}}
        shown |= seen
    assert len(set(shown.values())) == len(shown) == NUM_JOBS


def test_the_focus_stays_with_its_row_when_that_scrolls_out_of_sight(table: Page) -> None:
    press_j(table, 3)
    job = table.evaluate("document.activeElement.textContent")

    scroll(table, 5000)
    Pool.until(lambda: NUM_JOBS - 1 in drawn(table), "the last row is drawn")
    assert table.evaluate("document.activeElement.textContent") == job

    table.keyboard.press("j")
    await_focus(table, 3)
    expect(table.locator("tbody tr[data-row='3']")).to_be_in_viewport()


def test_a_row_that_becomes_another_one_under_the_pointer_is_not_clicked_at(table: Page, pool: Pool) -> None:
    table.get_by_role("button", name="Priority").click()
    expect(table.get_by_role("columnheader", name="Priority")).to_have_attribute("aria-sort", "descending")
    listed, row = table.url, table.locator("tbody tr[data-row='0']")
    with pool.client() as client:
        for number, place in enumerate((row.get_by_role("checkbox"), row.get_by_role("link"))):
            before, other = (row.get_by_role("link").inner_text(), jobs_by_row(table)[str(10 + number)])
            place.hover()
            table.mouse.down()
            client.change(other, JobPatch(priority=6000 + number))
            expect(row.get_by_role("link")).not_to_have_text(before)
            table.mouse.up()
            table.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert (table.url, table.locator("tr[aria-selected=true]").count()) == (listed, 0)
    row.get_by_role("checkbox").click()
    expect(table.locator("tr[aria-selected=true]")).to_have_attribute("aria-rowindex", "2")
    row.get_by_role("link").click()
    expect(table).not_to_have_url(listed)


def test_keys_select_a_row_far_below_and_open_it(table: Page) -> None:
    press_j(table, 30)
    table.keyboard.press("x")
    expect(table.locator("tbody tr[aria-selected=true]")).to_have_attribute("aria-rowindex", "31")
    job = table.evaluate("document.activeElement.textContent")
    table.keyboard.press("Enter")
    expect(table).to_have_url(re.compile(rf"/jobs/{job}$"))
