"""Where Pliant's source starts processes, and which rows of the table they are.

What calls `start_loader`, or starts a program of its own, is a person's script; `uv` stands for all that a build runs.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

SOURCE: Final = Path(__file__).parents[3] / "src" / "pliant"
_STARTS: Final = re.compile(
    r"os\.(fork|forkpty|exec\w+|spawn\w+|posix_spawnp?|system|popen)|pty\.\w+|multiprocessing\.\w+(\.\w+)*"
    r"|subprocess\.(Popen|run|call|check_call|check_output|getoutput|getstatusoutput)"
    r"|asyncio\.create_subprocess_\w+|(concurrent\.)?futures\.ProcessPoolExecutor"
)
_NAMES: Final = frozenset({"ChildProgram", "ProcessPoolExecutor"})
_MODULES: Final = re.compile(r"os|pty|multiprocessing(\.\w+)*|subprocess|asyncio(\.subprocess)?")
_CONTEXT: Final = "multiprocessing_context"

_CHILDREN: Final = ("importer", "look", "probe", "builder", "plugin", "algorithm")
STARTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "catalog/algorithms/walls.py confined": ("algorithm",),
        "catalog/children/child.py _start": ("supervisor",),
        "catalog/children/supervisor.py main": _CHILDREN,
        "catalog/children/supervisor.py _become": _CHILDREN,
        "catalog/datasets/imports.py _import": ("importer",),
        "catalog/environments/build_program.py _answer": ("uv",),
        "catalog/environments/build_program.py compile_packages": ("uv",),
        "catalog/environments/build_program.py run": ("uv",),
        "catalog/environments/builder.py _install": ("builder",),
        "catalog/environments/probe.py look": ("look",),
        "catalog/environments/probe.py probe": ("probe",),
        "cli/admin/agent.py agent": ("agent",),
        "cli/admin/server.py _launch": ("server", "standby"),
        "cli/admin/server.py up": ("server", "standby"),
        "cli/admin/upkeep.py restore": ("restore",),
        "cli/jobs/run.py run": ("alone",),
        "cli/searches/storage.py _ask": ("alone",),
        "cluster/agent/inspector.py _start": ("inspector",),
        "cluster/launcher.py _start": ("agent",),
        "cluster/zygote/child.py _run_other_python": ("interpreter",),
        "cluster/zygote/handle.py _spawn": ("zygote",),
        "cluster/zygote/zygote.py _fork": ("elastic", "fixed", "kernel", "sidecar"),
        "entry/agent/process.py _begin_again": ("agent",),
        "entry/detached.py main": ("agent",),
        "entry/gateway/group.py _start": ("gateway",),
        "entry/server/lead.py _run": ("server",),
        "entry/server/rooms/companion.py companion": ("copier", "ray"),
        "entry/gateway_process.py _start": ("gateway",),
        "ibm/rest/translate/generator.py command": ("plugin",),
        "integrations/elastic_lightning/batches.py _enlarge": ("started",),
        "integrations/transformers/data.py _global_loader": ("started",),
        "isolation/launcher.py main": _CHILDREN,
        "isolation/mounts.py can_mount": ("walls",),
        "isolation/report.py report": ("walls",),
        "tracking/recorder.py _start": ("tracker",),
        "tune/adviser_process.py _start": ("adviser", "supervisor"),
        "tunnel/program.py _spawn": ("shell",),
        "train/data/loader_process.py start_loader": ("started",),
    }
)
"""The file and the function that starts processes, and which they are."""
PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "catalog/environments/build_program.py": ("builder",),
        "catalog/environments/look_program.py": ("look",),
        "cli/app.py": ("command",),
        "cli/endpoints/settings_table.py": ("alone",),
        "cli/jobs/job_schema.py": ("alone",),
        "cli/searches/search_file.py": ("alone",),
        "client/methods.py": ("alone",),
        "entry/adviser.py": ("adviser",),
        "entry/agent/__main__.py": ("agent",),
        "entry/alone.py": ("alone",),
        "entry/copier.py": ("copier",),
        "entry/detached.py": ("agent",),
        "entry/gateway/__main__.py": ("gateway",),
        "entry/importer.py": ("importer",),
        "entry/inspector.py": ("inspector",),
        "entry/kernel.py": ("kernel", "interpreter"),
        "entry/plugin.py": ("algorithm",),
        "entry/ray.py": ("ray",),
        "entry/restore.py": ("restore",),
        "entry/openapi.py": ("alone",),
        "entry/routes.py": ("alone",),
        "entry/server/__main__.py": ("server", "standby"),
        "entry/sidecar.py": ("sidecar",),
        "entry/study.py": ("alone",),
        "entry/task.py": ("interpreter",),
        "entry/tracker.py": ("tracker",),
        "entry/zygote.py": ("zygote",),
        "ibm/notebook/train_sent.py": ("elastic",),
        "server/monitoring/table.py": ("alone",),
        "sim/play.py": ("alone",),
    }
)
"""The files that are programs, and which processes run them."""
WITHOUT_ROW: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tracker": "what logs to an experiment tracker: a task starts it, and it never leaves that task's walls",
        "walls": "what tries which walls there are, when a server or a zygote starts: it enters them and ends",
        "alone": "`pliant run` and what else needs no server: a process of whoever calls it",
        "agent": "the agent of another machine: its operator starts it there, and it is there what the server is here",
        "copier": "what copies results to an object store for a server with `--results-to`: it runs nobody's code",
        "ray": "what speaks to Ray for a server with `--cluster auto`: it runs nobody's code",
    }
)
"""What is not in the table, and why."""


def found_starts() -> dict[str, list[str]]:
    """Return what starts processes, by file and function."""
    found: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        for function, what in starts_in(path.read_text()):
            found.setdefault(f"{name} {function}", []).append(what)
    return found


def found_programs() -> set[str]:
    """Return the files that are programs of their own."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if 'if __name__ == "__main__"' in path.read_text()
    }


def starts_in(source: str) -> Iterator[tuple[str, str]]:
    """Yield the function and the name of whatever starts a process in a module."""
    yield from _starts_below(ast.parse(source), "")


def _starts_below(node: ast.AST, function: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = node.name
    if what := _what_starts(node):
        yield function, what
    for child in ast.iter_child_nodes(node):
        is_annotation = isinstance(node, ast.Subscript) and child is node.value  # `subprocess.Popen[bytes]`
        if not is_annotation:
            yield from _starts_below(child, function)


def _what_starts(node: ast.AST) -> str:
    """Return by what a piece of source starts a process; empty if it does not."""
    match node:
        case ast.Attribute() if _STARTS.fullmatch(name := ast.unparse(node)):
            return name
        case ast.Call(func=ast.Name(id=name)) if name in _NAMES:
            return name
        case ast.Call(keywords=given) if any(each.arg == _CONTEXT for each in given):
            return _CONTEXT
        case ast.ImportFrom(module=module, names=names) if module and _MODULES.fullmatch(module):
            imported = (f"{module}.{each.name}" for each in names)
            return ", ".join(name for name in imported if _STARTS.fullmatch(name))
    return ""
