"""The code keeps to `docs/words.md`: one word for an idea, and one module for a name."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pliant"
WORDS = ROOT / "docs" / "words.md"
ROW = re.compile(r"^\| `([a-z_]+)` \| (.+) \|$", re.MULTILINE)
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def forbidden() -> frozenset[str]:
    """Return the words that `docs/words.md` lists as not used."""
    _, _, listed = WORDS.read_text().partition("## Not used")
    return frozenset(word for word, _ in ROW.findall(listed))


def public_classes(source: str) -> Iterator[str]:
    """Yield the classes that a module defines for others."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def defined_twice(sources: dict[Path, str]) -> dict[str, list[str]]:
    """Return every public class name that more than one module defines, with the modules."""
    modules = defaultdict(list)
    for path, source in sorted(sources.items()):
        for name in public_classes(source):
            modules[name].append(str(path))
    return {name: paths for name, paths in modules.items() if len(paths) > 1}


def words_of(name: str) -> list[str]:
    """Return the words that an identifier is made of, in small letters."""
    return [part.lower() for part in PART.findall(name)]


def misused(source: str, words: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of every identifier that a forbidden word is part of."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and not words.isdisjoint(words_of(token.string)):
            yield token.start[0], token.string


def sources() -> dict[Path, str]:
    """Return the text of every module; IBM's own names are IBM's."""
    found = [path for path in SOURCE.rglob("*.py") if not path.is_relative_to(SOURCE / "ibm" / "modules")]
    return {path.relative_to(ROOT): path.read_text() for path in found}


def test_no_two_modules_define_a_public_class_of_the_same_name() -> None:
    assert defined_twice(sources()) == {}


def test_no_name_holds_a_word_that_is_not_used_here() -> None:
    words = forbidden()
    assert len(words) > 10

    found = [f"{path}:{line} {name}" for path, text in sources().items() for line, name in misused(text, words)]

    assert found == []


def test_both_checks_notice() -> None:
    twice = {Path("a.py"): "class Thing: ...\nclass _Own: ...", Path("b.py"): "class Thing: ...\nclass _Own: ..."}
    assert defined_twice(twice) == {"Thing": ["a.py", "b.py"]}

    source = "class FrontDesk:\n    open_the_desk = deskless = 1\n"
    assert list(misused(source, frozenset({"desk"}))) == [(1, "FrontDesk"), (2, "open_the_desk")]
