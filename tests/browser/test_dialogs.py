"""What opens over a page: dialogs, menus, the palette, the drawer of a telephone. It can be used without a mouse and by
those who do not see it, and the page below is as it was when it has closed."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import NARROW, WIDE, Visitor
from tests.browser.furnished import Furniture

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]


def dialogs(things: Furniture) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the pages that have dialogs, with the buttons that open them."""
    training = f"/models/{things.model}/trainings/{things.training}"
    yield f"/jobs/{things.running}", ("Stop…",)
    yield f"/jobs/{things.done}", ("Share…", "Deploy…", "Delete…")
    yield f"/endpoints/{things.endpoint}", ("New version", "Stop…")
    yield "/queues", ("New queue", "New group")
    yield f"/queues/{things.queue}", ("Edit…", "Delete…")
    yield f"/queues/groups/{things.group}", ("Edit…", "Delete…")
    yield "/models/templates", ("Add template",)
    yield f"/models/templates/{things.template}", ("New model", "Replace…", "Remove…")
    yield f"/models/{things.model}", ("Train…", "Edit…", "Remove…")
    yield training, ("Train again…", "Deploy…", "Forget…")
    yield f"/datasets/{things.pictures}", ("Delete…",)
    yield f"/environments/{things.built}", ("Build again…", "Delete…")
    yield "/machines", ("Drain…", "Exclude…", "Labels…")
    yield "/people", ("Add a user",)
    yield f"/people/{things.person}", ("Password…", "Disable…", "Remove…")
    yield "/me", ("New token",)
    yield "/settings", ("Clean up now…", "End the server…")
    yield "/jobs", ("Filters", "Columns", "Saved views")


def test_dialogs_keep_the_focus_and_give_it_back(visit_furnished: Any, furniture: Furniture) -> None:
    visitor = visit_furnished("a-admin").stand_still()
    found = []
    for path, names in dialogs(furniture):
        page = visitor.go(path)
        for name in names:
            opener = page.get_by_role("main").get_by_role("button", name=name, exact=True).first
            opener.focus()
            page.keyboard.press("Enter")
            found += wrong_with(visitor, page.get_by_role("dialog"), f"{path} {name}")
            expect(opener, f"{path} {name}").to_be_focused()
    assert not found, "\n".join(found)


def wrong_with(visitor: Visitor, dialog: Locator, where: str) -> list[str]:
    """Look at a dialog that opens, in both schemes; close it by Escape; return what is wrong with it."""
    page = visitor.page
    expect(dialog, where).to_be_visible()
    page.locator("[role=dialog] :focus").wait_for()
    found = []
    for scheme in sorted(("dark", "light"), key=lambda scheme: scheme != visitor.scheme):
        visitor.resize(WIDE, scheme)
        found += [
            f"{where} {scheme}: {wrong}" for wrong in visitor.violations("[role=dialog]", others=scheme == "light")
        ]
    for key in ("Shift+Tab", "Shift+Tab", "Tab", "Tab", "Tab"):
        page.keyboard.press(key)
        if page.locator("[role=dialog] :focus, [role=dialog]:focus").count() == 0:
            found.append(f"{where}: {key} leaves it")
    if (close := dialog.get_by_role("button", name="Close", exact=True).first).count():
        close.focus()  # in a field with a list Escape closes the list first
    page.keyboard.press("Escape")
    expect(dialog, where).to_have_count(0)
    return found


def test_menus_open_and_close_by_keys(visit_furnished: Any, furniture: Furniture) -> None:
    visitor = visit_furnished("a-admin").stand_still()
    for path, name in (
        ("/", "a-admin"),
        (f"/endpoints/{furniture.endpoint}", "More actions"),
        (f"/searches/{furniture.search}", "More"),
    ):
        page = visitor.go(path)
        opener = page.get_by_role("button", name=name)
        opener.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("menu")).to_be_visible()
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("menuitem").and_(page.locator(":focus"))).to_have_count(1)
        assert visitor.violations("[role=menu]") == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("menu")).to_have_count(0)
        expect(opener).to_be_focused()


def test_palette_and_list_of_keys_open_anywhere(visit_furnished: Any) -> None:
    visitor = visit_furnished("a-admin").stand_still()
    page = visitor.goto("/queues")
    link = page.get_by_role("navigation").first.get_by_role("link", name="Queues")
    for keys in ("Control+k", "?"):
        link.focus()
        page.keyboard.press(keys)
        assert wrong_with(visitor, page.get_by_role("dialog"), keys) == []
        expect(link).to_be_focused()


def test_the_drawer_of_a_telephone_leads_everywhere(visit_furnished: Any) -> None:
    visitor = visit_furnished("a-admin", size=NARROW).stand_still()
    page: Page = visitor.goto("/queues")
    opener = page.get_by_role("button", name="Menu")
    opener.focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_role("link", name="Machines")).to_be_visible()
    assert visitor.violations() == []
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(opener).to_be_focused()
    opener.click()
    drawer.get_by_role("link", name="Submit").click()
    expect(page.get_by_role("heading", name="Submit", level=1)).to_be_visible()
    expect(drawer).to_have_count(0)
