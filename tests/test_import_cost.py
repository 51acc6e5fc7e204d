"""`import pliant` is cheap; what it costs in milliseconds is measured by `bench/import_time.py`."""

import subprocess
import sys

import pytest

IMPORT_ALL = """
for found in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
    importlib.import_module(found.name)
"""


def modules_after(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True)
    return set(done.stdout.split())


def test_importing_pliant_brings_nothing_but_the_standard_library() -> None:
    brought = modules_after("import pliant") - modules_after("")

    roots = {name.partition(".")[0] for name in brought}
    assert roots - set(sys.stdlib_module_names) <= {"pliant"}


def test_what_starts_an_adviser_and_asks_it_brings_no_optuna() -> None:
    brought = modules_after("import pliant.tune.adviser_process, pliant.tune.sampler_rules, pliant.tune.searches")

    assert not brought & {"optuna", "cmaes", "scipy", "numpy", "torch"}


@pytest.mark.parametrize("room", ["core", "policy", "api", "client", "control", "store", "server", "cluster", "cli"])
def test_no_room_on_the_servers_side_brings_torch_or_grpc(room: str) -> None:
    brought = modules_after(f"import pkgutil, importlib, pliant.{room} as room\n{IMPORT_ALL}")

    assert not brought & {"torch", "grpc"}


def test_to_submit_a_job_takes_no_more_than_that_needs() -> None:
    load = "from pliant.cli.commands import COMMANDS, Listed; Listed('submit', COMMANDS['submit']).load()"
    brought = modules_after(f"{load}; from pliant.cli.screen import say; say('it is submitted')")

    needed = {"derive", "faults", "jobs", "request", "trust", "view"}
    assert {name.split(".")[2] for name in brought if name.startswith("pliant.api.")} == needed
    assert not brought & {"pliant.core.search", "pliant.core.endpoint", "pliant.core.event", "pliant.core.plan"}
    assert not brought & {"websockets", "numpy", "jsonschema"}
    assert not brought & {"yaml", "rich", "pliant.cli.readable_console"}, (
        "what reads job files, and what draws on a terminal, comes when it is used"
    )


IMPORT_ALL = (
    "for found in pkgutil.walk_packages(room.__path__, room.__name__ + '.'): importlib.import_module(found.name)"
)


def test_a_gateway_needs_nothing_that_a_server_needs_for_its_routes_and_its_store() -> None:
    brought = {name.partition(".")[0] for name in modules_after("import pliant.entry.gateway.launch")}

    assert not brought & {"torch", "numpy", "sqlalchemy", "alembic", "fastapi", "starlette", "cryptography", "httpx"}


def test_what_looks_at_tasks_files_for_an_agent_reads_no_message_of_theirs() -> None:
    brought = {name.partition(".")[0] for name in modules_after("import pliant.entry.inspector")}

    assert not brought & {"pydantic", "torch", "numpy", "sqlalchemy"}
