"""Histograms of weights and gradients, on the page of a job and on that of a training."""

import re
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, expect
from tests.browser.conftest import NARROW, REFLOW, WIDE, Visitor
from tests.browser.furnished import Furniture
from tests.e2e.pool import Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PANEL: Final = "section:has(> header input[aria-label=Layer])"
SIZES: Final = (("dark", WIDE), ("light", WIDE), ("light", NARROW), ("light", REFLOW))


def test_a_layer_is_chosen_by_clicks_and_by_keys_and_the_address_keeps_it(
    visit_furnished: Any, furniture: Furniture, furnished_pool: tuple[Pool, Furniture]
) -> None:
    visitor = visit_furnished("a-admin").stand_still()
    page = visitor.goto(f"/models/{furniture.model}/trainings/{furniture.training}")
    panel = page.get_by_role("region", name="Histograms", exact=True)
    with furnished_pool[0].client() as client:
        job = client.models.training(furniture.model, furniture.training).job_id
        names = [series.name for series in client.histogram_names(job).series]
        gradients = client.histograms(job, "gradients/0.bias").histograms
    newest = gradients[-1]
    expect(picture_of(panel, "0.weight")).to_be_visible()  # not a bias of few values

    layer = panel.get_by_role("combobox", name="Layer")
    layer.click()
    expect(page.get_by_role("option")).to_have_count(sum(name.startswith("weights/") for name in names))
    page.get_by_role("option", name="0.bias", exact=True).click()
    expect(picture_of(panel, "0.bias")).to_be_visible()
    panel.get_by_role("radiogroup", name="Of what").get_by_text("Gradients").click()
    expect(page).to_have_url(re.compile(r"histogram=gradients%2F0\.bias"))

    picture = picture_of(panel, "0.bias")
    expect(picture.locator("path")).to_have_count(len(gradients))
    picture.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    expect(panel.get_by_role("status")).to_contain_text(f"step {gradients[-2:][0].step}")
    page.keyboard.press("ArrowDown")
    expect(panel.get_by_role("status")).to_contain_text(f"step {newest.step}")

    panel.get_by_role("radiogroup", name="As").get_by_text("Table").click()
    page.reload()
    rows = panel.get_by_role("table", name="Histograms: gradients/0.bias").get_by_role("row")
    expect(rows).to_have_count(1 + len(gradients))
    cells = rows.nth(1).get_by_role("cell")
    expect(cells.first).to_have_text(str(newest.step))
    expect(cells.nth(6)).to_have_text(str(sum(newest.counts)))


def test_they_are_whole_in_every_size_and_scheme(visit_furnished: Any, furniture: Furniture) -> None:
    visitor = visit_furnished("a-admin").stand_still()
    page = visitor.goto(f"/jobs/{furniture.running}/metrics")
    panel = page.get_by_role("region", name="Histograms", exact=True)
    found = []
    for scheme, size in SIZES:
        visitor.resize(size, scheme)
        for view in ("Chart", "Table"):
            panel.get_by_role("radiogroup", name="As").get_by_text(view).click()
            expect(panel.get_by_role("table" if view == "Table" else "status")).to_be_visible()
            found += wrong_with(visitor, scheme, size, view)
    assert not found, "\n".join(found)


def wrong_with(visitor: Visitor, scheme: str, size: tuple[int, int], view: str) -> list[str]:
    """Look at the panel as it is, and leave a picture of it."""
    visitor.picture(f"histograms-{view.lower()}-{size[0]}-{scheme}")
    found = visitor.violations(PANEL, colours=size == WIDE, others=scheme == "light")  # of the scheme are colours
    if (sideways := visitor.num_sideways()) > 0:
        found.append(f"{sideways} pixels wider than the window")
    return [f"{view} {size[0]} {scheme}: {wrong}" for wrong in found]


def picture_of(panel: Locator, layer: str) -> Locator:
    """Return the ridges of a layer; they can be focused."""
    return panel.get_by_role("region", name=f"How {layer} lies at")
