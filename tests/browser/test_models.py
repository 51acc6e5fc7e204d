"""A template comes from a folder that is chosen in the browser, which packs it."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.e2e.pool import ROOT, Pool

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_a_template_is_added_by_its_folder(visit: Any, pool: Pool, tmp_path: Path) -> None:
    folder = tmp_path / "images"
    shutil.copytree(ROOT / "examples/templates/images", folder, ignore=shutil.ignore_patterns("__pycache__"))
    visitor = visit("a-user")
    page = visitor.goto("/models/templates")
    page.get_by_role("button", name="Add template").first.click()
    dialog = page.get_by_role("dialog", name="Add a template")
    dialog.locator("input[webkitdirectory]").set_input_files(folder)
    expect(dialog.get_by_text(re.compile("3.files"))).to_be_visible()
    assert visitor.violations() == []
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("heading", name="images", level=1)).to_be_visible()
    visitor.settle()
    assert visitor.violations() == []
    with pool.client() as client:
        (template,) = client.templates.list().templates
    assert (template.owner, template.name) == ("a-user", "images")
