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
    visitor = visit_furnished("a-admin").stand_still()
    page = visitor.go(f"/endpoints/{furniture.endpoint}/versions")
    expect(page.get_by_role("main")).to_contain_text("90\u202f%")
    page = visitor.go(f"/endpoints/{furniture.endpoint}/logs")
    expect(page.get_by_role("main")).to_contain_text("loaded version")
    page = visitor.go(f"/searches/{furniture.search}/trials")
    expect(page.get_by_role("table").get_by_text("Completed")).to_have_count(6)
    page = visitor.go(f"/datasets/{furniture.pictures}/preview")
    expect(page.get_by_role("img").first).to_be_visible()
    page = visitor.go(f"/datasets/{furniture.rows}/preview")
    expect(page.get_by_role("cell", name="word--10--5").first).to_be_visible()
    page = visitor.go(f"/environments/{furniture.failed}")
    expect(page.get_by_role("status").filter(has_text="it could not be built")).to_be_visible()
    page = visitor.go(f"/jobs/{furniture.running}/config?diff={furniture.done}")
    expect(page.get_by_role("table").get_by_text(LONG)).to_be_visible()


def test_what_is_on_its_way_is_said(visit_furnished: Any, furniture: Furniture) -> None:
    """An answer that is held back leaves its place busy, and nothing says that there is nothing."""
    visitor = visit_furnished("a-admin").stand_still()
    page = visitor.page
    for path, held, title, nothing in (
        (f"/jobs/{furniture.done}", "**/lines?*", "Newest log lines", "Nothing has been written"),
        (f"/endpoints/{furniture.endpoint}", "**/metrics?*", "Load", "Nobody has asked yet"),
        ("/datasets", "**/v1/uploads", "Data sets", "There are no data sets"),
    ):
        page.route(held, lambda _route: None)
        with page.expect_request(held):
            page.goto(f"{visitor.url}{path}")
        expect(page.get_by_role("main").get_by_role("heading", name=title).first).to_be_visible()
        expect(page.get_by_role("main").locator("[aria-busy=true]")).to_have_count(1)
        assert page.get_by_text(nothing).count() == 0
        page.unroute(held)


def test_an_endpoint_is_asked(visit_furnished: Any, furniture: Furniture, tmp_path: Any) -> None:
    """A picture becomes the numbers that the model takes: of a white one the mean is 1."""
    visitor = visit_furnished("a-admin").stand_still()
    white = tmp_path / "white.png"
    Image.new("RGB", (20, 20), (255, 255, 255)).save(white)
    for kind in ("json", "picture"):
        page = visitor.go(f"/endpoints/{furniture.endpoint}/test?with={kind}")
        if kind == "picture":
            page.get_by_label("Choose a picture").set_input_files(white)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("scores")
        expect(page.get_by_role("main").locator("[aria-live]")).to_contain_text("0.25")
