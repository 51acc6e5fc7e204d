"""Whether code can train elastically: whether anything that its script imports, near or far, names what does that.

The code is read and never run, and in doubt it can. A module of the folder counts as imported if its name is a part of
what is imported, or of a `.py` file that a text names, wherever in the folder it lies. Example: `main.py` imports
`lib.steps`, `lib/steps.py` has `import pliant.train as p`, and `plain.py` beside it imports torch alone. `main.py` can
train elastically; `plain.py` cannot, though it lies in the same folder.
"""

import ast
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ELASTIC: Final = frozenset({"pliant", "fabric_model", "pyedt"})
"""Packages whose users may train elastically."""
MAX_MODULES: Final = 500
MAX_SOURCE_BYTES: Final = 2 << 20
"""Of more code than this nothing is said: it would take seconds to read."""
_WORDS: Final = re.compile(r"\w+")
_FILE: Final = re.compile(r"(\w+)\.py\b")
_RUNS_TEXT: Final = frozenset({"exec", "eval", "compile"})
_IMPORTS_BY_NAME: Final = frozenset({"import_module", "__import__"})
_OPAQUE: Final = frozenset({".pyc", ".pyd", ".so"})


class _Doubt(Exception):
    """What the code imports cannot be known by reading it."""


def can_train_elastically(script: Path, code: Path, args: Sequence[str] = ()) -> bool:
    """Tell whether a script that parses, or what it imports out of its code folder, may train elastically.

    Args:
        script: lies in the folder.
        code: the folder; nobody else can change it now.
        args: of the script; a file that one names may be run by it.
    """
    try:
        return not _is_plain(script, code, args)
    except (_Doubt, OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return True


def _is_plain(script: Path, code: Path, args: Sequence[str]) -> bool:
    modules = _modules(code)
    wanted = [script, *(path for arg in args for name in _FILE.findall(arg) for path in modules.get(name, ()))]
    seen: set[Path] = set()
    num_bytes = 0
    while wanted:
        path = wanted.pop()
        if path in seen:
            continue
        seen.add(path)
        if path.suffix in _OPAQUE:
            raise _Doubt
        num_bytes += path.stat().st_size
        if num_bytes > MAX_SOURCE_BYTES:
            raise _Doubt
        names, runs_text = _names(ast.parse(path.read_bytes(), filename=path.name))
        if names & ELASTIC:
            return False
        wanted += [other for name in (modules if runs_text else names) for other in modules.get(name, ())]
    return True


def _modules(code: Path) -> dict[str, list[Path]]:
    """Return the modules and packages of a folder by their own names, wherever they lie."""
    found: dict[str, list[Path]] = {}
    num = 0
    for folder, _, files in os.walk(code):
        for file in files:
            path = Path(folder, file)
            if path.suffix != ".py" and path.suffix not in _OPAQUE:
                continue
            num += 1
            if num > MAX_MODULES:
                raise _Doubt
            name = path.parent.name if file == "__init__.py" else file.partition(".")[0]
            found.setdefault(name, []).append(path)
    return found


def _names(tree: ast.Module) -> tuple[set[str], bool]:
    """Return all parts of names that a module imports or may import, and whether it runs texts as code.

    Raises:
        _Doubt: it imports what it has computed the name of.
    """
    names: set[str] = set()
    runs_text = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            runs_text = runs_text or (called in _RUNS_TEXT and isinstance(node.func, ast.Name))
            if called in _IMPORTS_BY_NAME and not (node.args and isinstance(node.args[0], ast.Constant)):
                raise _Doubt
        names.update(_imported(node))
    return names, runs_text or "runpy" in names


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the parts of names that one node imports, or that a text in it may name."""
    match node:
        case ast.Import():
            for alias in node.names:
                yield from alias.name.split(".")
        case ast.ImportFrom():
            yield from (node.module or "").split(".")
            yield from (alias.name for alias in node.names)
        case ast.Constant(value=str() as text):
            yield from ELASTIC.intersection(_WORDS.findall(text))
            yield from _FILE.findall(text)
            if text.isidentifier() or all(part.isidentifier() for part in text.split(".")):
                yield from text.split(".")
