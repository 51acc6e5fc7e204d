"""Every kind of process that Pliant starts has its row in docs/security.md, and is what that row says."""

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from tests.e2e.processes.places import PROGRAMS, STARTS, WITHOUT_ROW, found_programs, found_starts, starts_in
from tests.e2e.processes.stage import Stage
from tests.e2e.processes.table import MOUNTS, PAGE, ROLES, SECRET, WALLS, ProcessRow, read_rows, take_census

PERSONS: Final = range(60_706, 61_184)
_SETTLES_S: Final = 10.0
"""The server itself opens a file now and then."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


@pytest.fixture(scope="module")
def has_mounts(stage: Stage) -> bool:
    with stage.pool.client() as client:
        return not any("mount" in wall for node in client.cluster().nodes for wall in node.missing_walls)


def as_here(row: ProcessRow, *, has_mounts: bool) -> ProcessRow:
    """Return a row of the document as it is with the server of this test's user, on this machine."""
    user, is_within, _ = row.user.partition(WALLS)
    user = user if os.geteuid() == 0 else "the server's"
    if has_mounts:
        return replace(row, user=f"{user}{is_within}")
    return without_mounts(replace(row, user=f"{user}{MOUNTS if is_within else ''}"))


def without_mounts(row: ProcessRow) -> ProcessRow:
    """Return a row without what only mounts of its own show: Landlock alone keeps a process from the state folder."""
    return replace(row, sees="", knows=row.knows.removesuffix(SECRET).removesuffix(", ") or "–")


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_every_process_is_what_its_row_says(stage: Stage, has_mounts: bool) -> None:
    written = {name: as_here(row, has_mounts=has_mounts) for name, row in read_rows().items()}

    def look() -> dict[str, ProcessRow]:
        rows = take_census(stage).rows()
        return rows if has_mounts else {name: without_mounts(row) for name, row in rows.items()}

    deadline = time.monotonic() + _SETTLES_S
    while (seen := look()) != written and time.monotonic() < deadline:
        time.sleep(0.2)  # between two looks

    assert seen == written, f"{PAGE} is stale, or a process has what it should not; run: python -m tests.e2e.processes"


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_no_command_line_tells_a_secret_and_every_person_has_an_id(stage: Stage) -> None:
    census = take_census(stage)
    everybody = [one for found in census.facts.values() for one in found]
    token = (stage.home / "token").read_text().strip()

    for one in everybody:
        told = " ".join(one.command)
        assert [secret for secret in (stage.password, stage.key, token) if secret in told] == []
        assert token not in "".join(one.environment.values())
    if os.geteuid() == 0:
        ids = {role: {one.uid for one in found} for role, found in census.facts.items()}
        assert [role for role, uids in ids.items() if 0 not in uids and not all(uid in PERSONS for uid in uids)] == []
        assert ids["elastic"] == ids["probe"] != ids["builder"] == ids["uv"]


def test_whatever_starts_a_process_is_in_the_table() -> None:
    assert set(found_starts()) == set(STARTS), "say in places.py which row it is; a new kind needs one in the table"
    assert found_programs() == set(PROGRAMS), "say in places.py which row it is; a new kind needs one in the table"

    started = {role for roles in (*STARTS.values(), *PROGRAMS.values()) for role in roles}
    assert started == {*ROLES, *WITHOUT_ROW}


def test_every_kind_is_in_the_document() -> None:
    assert sorted(read_rows()) == sorted(ROLES.values())


@pytest.mark.parametrize(
    "planted",
    [
        "import os\nos.execv('/bin/true', ['true'])",
        "import os\npid = os.fork()",
        "import subprocess\ndone = subprocess.run(['true'])",
        "from subprocess import Popen",
        "from os import posix_spawn as start",
        "import multiprocessing\nmultiprocessing.Process(target=print).start()",
        "import asyncio\nasyncio.create_subprocess_exec('true')",
        "run = functools.partial(os.system, 'true')",
        "ChildProgram(command=['true'])",
    ],
)
def test_a_new_place_that_starts_processes_is_seen(planted: str) -> None:
    assert len(list(starts_in(planted))) == 1
