"""No file, class, function or parameter list of Pliant outgrows what a reader can hold in the head.

A call that people outside make may take more keywords; it says so where it is defined, with `noqa: PLR0913 (reason)`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_FILE_LINES = 500
MAX_CLASS_LINES = 300
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 7


def too_large(path: Path, source: str) -> Iterator[str]:
    """Yield one sentence for everything in a file that is over a limit."""
    num_lines = source.count("\n")
    if num_lines > MAX_FILE_LINES:
        yield f"{path} has {num_lines} lines, more than {MAX_FILE_LINES}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            limit, kind = MAX_CLASS_LINES, "class"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            limit, kind = MAX_FUNCTION_LINES, "function"
            excused = "noqa: PLR0913 (" in source.splitlines()[node.lineno - 1]
            if (num := num_parameters(node)) > MAX_PARAMETERS and not excused:
                yield f"{path}:{node.lineno} {node.name} takes {num} parameters, more than {MAX_PARAMETERS}"
        else:
            continue
        num_lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if num_lines > limit:
            yield f"{path}:{node.lineno} {kind} {node.name} has {num_lines} lines, more than {limit}"


def num_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    named = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in named if name not in ("self", "cls")])


def test_everything_stays_within_the_limits() -> None:
    patterns = (
        "src/**/*.py",
        "bench/*.py",
        "examples/demo/*.py",
        "examples/serve_demo/*.py",
        "examples/tune_demo/*.py",
    )
    files = [path for pattern in patterns for path in ROOT.glob(pattern)]

    found = [line for path in sorted(files) for line in too_large(path.relative_to(ROOT), path.read_text())]

    assert found == []


def test_each_limit_notices() -> None:
    body = "    pass\n" * (MAX_FUNCTION_LINES + 1)
    parameters = ", ".join(f"p{i}" for i in range(MAX_PARAMETERS + 1))
    method = f"    def m(self):\n{body.replace('    ', '        ')}"
    source = f"def long():\n{body}def wide({parameters}):\n    pass\nclass Large:\n{method * 5}" + "\n" * MAX_FILE_LINES

    found = " ".join(too_large(Path("made.py"), source))

    assert "made.py has" in found
    assert "function long has" in found
    assert "wide takes 8 parameters" in found
    assert "class Large has" in found
