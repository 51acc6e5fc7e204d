"""Every link in the documents leads somewhere, and what they tell people to type exists."""

import re
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.testing import CliRunner

from pliant.cli.commands import COMMANDS, Listed, app

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Return the anchors that headings make, as the usual Markdown renderers name them."""
    headings = HEADING.findall(document.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    dead = []
    for target in LINK.findall(document.read_text()):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        if not path.exists() or (anchor and anchor not in anchors(path)):
            dead.append(target)

    assert dead == []


def test_every_decision_is_listed() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text()

    written = [path.name for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md")]

    assert [name for name in written if name not in listed] == []


GROUPS = {name for name in COMMANDS if isinstance(Listed(name, COMMANDS[name]).load(), TyperGroup)}


def commands(text: str) -> list[tuple[list[str], list[str]]]:
    """Return every `pliant` command in the code blocks of a document: the verb (and its group) and its long options."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    found = []
    for words in lines:
        if words[:1] == ["pliant"]:
            rest = words[1:]
            while rest and rest[0].startswith("--"):
                rest = rest[2:]  # what stands before the verb has a value each
            verb = rest[: 2 if rest[0] in GROUPS else 1]
            found.append((verb, [word for word in rest if word.startswith("--")]))
    return found


def test_every_command_that_the_documents_show_exists() -> None:
    shown = [command for path in DOCUMENTS for command in commands(path.read_text())]
    assert len(shown) > 5

    for verb, options in shown:
        said = CliRunner().invoke(app, [*verb, "--help"])
        assert said.exit_code == 0, f"pliant {verb}: {said.output}"
        assert [option for option in options if option not in said.output] == [], verb


def test_every_make_target_that_the_documents_name_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        name
        for path in DOCUMENTS
        for name in re.findall(r"`?make ([a-z]+)(?=`|\s+#|$)", path.read_text(), re.MULTILINE)
    }

    assert named - targets == set()


def test_the_map_is_short_and_names_every_folder() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    source = ROOT / "src" / "pliant"
    (tree,) = re.findall(r"```\nsrc/pliant/\n(.*?)```", text, re.DOTALL)
    folders = {path for path in source.rglob("*") if (path / "__init__.py").exists()}
    rooms = {path.name for path in source.iterdir() if path.is_dir() and path.name != "__pycache__"}

    assert len(text.splitlines()) <= 120
    assert [line for line in text.splitlines() if len(line) > 120] == []
    assert rooms <= {folder.name for folder in folders}, "a folder that is no room"
    assert sorted(set(re.findall(r"\b([a-z_0-9]+)/", tree))) == sorted({folder.name for folder in folders} - {"pyedt"})
