"""Nothing but `files/untrusted` opens, lists or removes what tasks can write to; a planted violation is caught.

The types hold most of it: the folders of a job are an `UntrustedPath`, which is no path that anything else takes, so
mypy refuses `open(folders.weights)` and `folders.logs.iterdir()`. What is left is to make a path of it again, by its
text or by its name. Both are refused here.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pliant"
ROOMS = ("control", "server", "ibm/rest", "catalog/models", "cluster", "entry/server")
"""Where the folders of jobs are known. What runs as the task itself is not among them."""
FOLDERS = frozenset({"result", "log", "checkpoint", "model", "model.pt", "state"})
"""Names that only `control/settings.py` puts into paths."""
NEW_FOLDERS = "control/requests/changes.py"
"""Makes the folders of a job that nobody else knows of yet."""


def opened_by_text(source: str) -> Iterator[str]:
    """Yield calls that get the text of something as a path: `Path(str(x))`, `open(str(x))`, `os.walk(str(x))`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _takes_paths(node.func) and any(_is_text(arg) for arg in node.args):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def joined_by_name(source: str) -> Iterator[str]:
    """Yield paths that are put together with the name of a folder of a job."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        if isinstance(node.right, ast.Constant) and node.right.value in FOLDERS:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def _takes_paths(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id in ("Path", "open")
    modules = ("os", "shutil", "os.path", "tarfile", "zipfile")
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) in modules


def _is_text(argument: ast.expr) -> bool:
    named = isinstance(argument, ast.Call) and isinstance(argument.func, ast.Name) and argument.func.id == "str"
    return named or (isinstance(argument, ast.JoinedStr) and not ast.unparse(argument).startswith("f'/proc/"))


def found_in(room: str) -> dict[str, list[str]]:
    """Return what breaks the law in a room, by file."""
    found = {}
    for path in sorted((SOURCE / room).rglob("*.py")):
        name, source = path.relative_to(SOURCE).as_posix(), path.read_text()
        lines = [] if name == NEW_FOLDERS else list(opened_by_text(source))
        if name != "control/settings.py":
            lines += joined_by_name(source)
        if lines:
            found[name] = lines
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_no_path_is_made_of_an_untrusted_one(room: str) -> None:
    assert (SOURCE / room).is_dir()
    assert found_in(room) == {}


@pytest.mark.parametrize(
    "planted",
    [
        "with open(str(folders.weights)) as file: ...",
        "weights = Path(str(folders.result / 'x'))",
        "for entry in os.scandir(f'{folders.logs}'): ...",
        "shutil.rmtree(str(folders.result))",
        "os.path.getsize(str(path))",
    ],
)
def test_a_path_that_is_made_of_its_text_is_caught(planted: str) -> None:
    assert len(list(opened_by_text(planted))) == 1


@pytest.mark.parametrize("planted", ["home / 'jobs' / job_id / 'result'", "root / 'model.pt'", "result / 'log' / name"])
def test_a_path_that_is_made_of_names_is_caught(planted: str) -> None:
    assert len(list(joined_by_name(planted))) == 1
