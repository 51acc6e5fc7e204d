"""The build of the console, played by npm with sources of one line: what lies there until another one is whole."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PACKAGE = {
    "name": "tiny",
    "private": True,
    "scripts": {"client": "node -v > /dev/null", "types": "node -v > /dev/null", "bundle": "node build.mjs"},
}
BUILD = """
import { copyFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";
const folder = process.argv[process.argv.indexOf("--outDir") + 1];
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
copyFileSync("page.txt", `${folder}/index.html`);
if (readFileSync("page.txt", "utf-8") === "broken") throw new Error("half of it is there");
"""


def build(checkout: Path, page: str) -> subprocess.CompletedProcess[str]:
    """Build a checkout whose only page says this."""
    (checkout / "web" / "page.txt").write_text(page)
    command = [sys.executable, "web/bundle.py"]
    return subprocess.run(command, cwd=checkout, check=False, capture_output=True, text=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose packages are installed: none."""
    web, console = tmp_path / "web", tmp_path / "src" / "pliant" / "server" / "console"
    (web / "node_modules").mkdir(parents=True)
    console.mkdir(parents=True)
    shutil.copy(ROOT / "web" / "bundle.py", web)
    (web / "package.json").write_text(json.dumps(PACKAGE))
    (web / "build.mjs").write_text(BUILD)
    (web / "package-lock.json").write_text("{}")
    (web / "node_modules" / ".installed").write_text(hashlib.sha256(b"{}").hexdigest())
    return tmp_path


def test_a_build_that_fails_leaves_the_bundle_before_it(checkout: Path) -> None:
    console = checkout / "src" / "pliant" / "server" / "console"
    page = console / "bundle" / "index.html"
    first = build(checkout, "one")
    assert (first.returncode, page.read_text()) == (0, "one"), first.stderr

    failed = build(checkout, "broken")
    assert (failed.returncode, page.read_text()) == (1, "one")
    assert "half of it is there" in failed.stderr
    assert "the console could not be bundled" in failed.stderr

    page.with_name("left.js").touch()
    mended = build(checkout, "two")
    assert (mended.returncode, page.read_text()) == (0, "two"), mended.stderr
    assert [folder.name for folder in console.iterdir()] == ["bundle"]
    assert sorted(file.name for file in page.parent.iterdir()) == ["index.html", "sources.sha256"]

    again = build(checkout, "two")
    assert (again.returncode, again.stdout) == (0, ""), "it is current"
