"""The pages of things that are there: an endpoint that serves, a search that ran, data with a preview, and so on."""

from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect
from tests.browser.furnished import LONG, Furniture

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def test_pages_of_things_are_whole_with_what_they_show(visit_furnished: Any, furniture: Furniture) -> None:
    """No page has a violation of WCAG 2.2 AA that axe finds, or scrolls sideways, in any size or scheme."""
    visitor = visit_furnished("a-admin")
    found = [wrong for name, path in furniture.paths().items() for wrong in visitor.look_at(path, name)]
    assert not found, "\n".join(found)


def test_they_show_what_is_there(visit_furnished: Any, furniture: Furniture) -> None:
    visitor = visit_furnished("a-admin")
    page = visitor.goto(f"/endpoints/{furniture.endpoint}/versions")
    expect(page.get_by_role("main")).to_contain_text("90\u202f%")
    page = visitor.goto(f"/endpoints/{furniture.endpoint}/logs")
    expect(page.get_by_role("main")).to_contain_text("loaded version")
    page = visitor.goto(f"/searches/{furniture.search}/trials")
    expect(page.get_by_role("table").get_by_text("Completed")).to_have_count(6)
    page = visitor.goto(f"/datasets/{furniture.pictures}/preview")
    expect(page.get_by_role("img").first).to_be_visible()
    page = visitor.goto(f"/datasets/{furniture.rows}/preview")
    expect(page.get_by_role("cell", name="word--10--5").first).to_be_visible()
    page = visitor.goto(f"/environments/{furniture.failed}")
    expect(page.get_by_role("status").filter(has_text="it could not be built")).to_be_visible()
    page = visitor.goto(f"/jobs/{furniture.running}/config?diff={furniture.done}")
    expect(page.get_by_role("table").get_by_text(LONG)).to_be_visible()


@pytest.mark.parametrize("what", ["lines of a log", "load of an endpoint", "uploads"])
def test_what_is_on_its_way_is_said(visit_furnished: Any, furniture: Furniture, what: str) -> None:
    """An answer that is held back leaves its place busy, and nothing says that there is nothing."""
    path, held, title, nothing = {
        "lines of a log": (f"/jobs/{furniture.done}", "**/lines?*", "Newest log lines", "Nothing has been written"),
        "load of an endpoint": (f"/endpoints/{furniture.endpoint}", "**/metrics?*", "Overview", "Nobody has asked yet"),
        "uploads": ("/datasets", "**/v1/uploads", "Data sets", "There are no data sets"),
    }[what]
    visitor = visit_furnished("a-admin")
    page = visitor.page
    page.route(held, lambda _route: None)
    with page.expect_request(held):
        page.goto(f"{visitor.url}{path}")
    expect(page.get_by_role("main").get_by_role("heading", name=title).first).to_be_visible()
    visitor.stand_still()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(page.get_by_role("main").locator("[aria-busy=true]")).to_have_count(1)
    assert page.get_by_text(nothing).count() == 0


@pytest.mark.parametrize("kind", ["JSON", "Picture"])
def test_an_endpoint_is_asked(visit_furnished: Any, furniture: Furniture, tmp_path: Any, kind: str) -> None:
    """A picture becomes the numbers that the model takes: of a white one the mean is 1."""
    page = visit_furnished("a-admin").goto(f"/endpoints/{furniture.endpoint}/test?with={kind.lower()}")
    if kind == "Picture":
        white = tmp_path / "white.png"
        Image.new("RGB", (20, 20), (255, 255, 255)).save(white)
        page.get_by_label("Choose a picture").set_input_files(white)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("scores")
    expect(page.get_by_role("main").locator("[aria-live]")).to_contain_text("0.25")
