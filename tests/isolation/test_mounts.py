"""Tasks that read folders and cannot write in them, also as root, while everybody else can."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.process_stage import PATHS, ProcessStage
from tests.privileges import needs_mounts

from pliant.cluster.node import NodeCluster
from pliant.core.confinement import Confinement, RunAs
from pliant.core.job import TaskId
from pliant.core.ports import StartOrder

Stage = ProcessStage[NodeCluster]

TRIES = """
import errno, os, pathlib

def tried(act):
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

def all_tried(data):
    return {
        "write": tried(lambda: (data / "numbers").write_text("4")),
        "append": tried(lambda: (data / "numbers").open("a")),
        "mode": tried(lambda: (data / "numbers").chmod(0o666)),
        "delete": tried(lambda: (data / "numbers").unlink()),
        "create": tried(lambda: (data / "new").touch()),
        "rename": tried(lambda: data.rename(data.with_name("other"))),
        "read": tried(lambda: (data / "numbers").read_text()),
    }
"""
IN_A_TASK = f"""{TRIES}
data = pathlib.Path(os.environ["DATA_DIR"])
note(folder / "report", all_tried(data) | {{"elsewhere": tried(lambda: (folder / "mine").touch())}})
(folder / "orders").open().readline()
"""
KEPT = {**dict.fromkeys(("write", "append", "mode", "delete", "create"), "EROFS"), "rename": "EBUSY", "read": "done"}
SUBMOUNT = f"""{TRIES}
import json, sys
from pliant.isolation.mounts import MountView, own_namespace, show
data = pathlib.Path(sys.argv[1])
before = os.statvfs(data / "disk two").f_flag
own_namespace(as_user=False)
show(MountView(read_only=(str(data),)))
inside = all_tried(data / "disk two")
print(json.dumps([inside, os.statvfs(data / "disk two").f_flag == before | os.ST_RDONLY, all_tried(data)]))
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set whose modes would let anybody write."""
    folder = tmp_path / "the data"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "numbers").write_text("1 2 3")
    (folder / "numbers").chmod(0o666)
    return folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="pliant-read-only-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def order_of(stage: Stage, data: Path) -> StartOrder:
    order = stage.order(TaskId("job-1.1"), (0,), IN_A_TASK)
    confinement = replace(order.confinement, reads=(str(data),))
    return replace(order, env={**order.env, "DATA_DIR": str(data)}, confinement=confinement)


@pytest.mark.parametrize("python", [None, sys.executable], ids=["forked", "another interpreter"])
def test_a_task_reads_its_data_and_cannot_change_them_while_others_can(
    stage: Stage, data: Path, python: str | None
) -> None:
    needs_mounts()
    exits = stage.exits()
    order = order_of(stage, data)
    order = replace(order, python=python, env={**order.env, "PYTHONPATH": PATHS})
    mounted = Path("/proc/self/mountinfo").read_text()

    stage.cluster.start(order)
    found = stage.read(order.task_id)

    assert found == {**KEPT, "elsewhere": "done"}
    (data / "numbers").write_text("5 6 7")
    (data / "ours").touch()
    (data / "ours").unlink()
    assert Path("/proc/self/mountinfo").read_text() == mounted
    stage.finish(order.task_id, 0)
    assert stage.exit_of(order.task_id, exits).exit_code == 0
    assert stage.log(order.task_id) == ""


def test_a_task_of_another_user_gets_its_data_opened_and_cannot_change_them(
    open_folder: Path, bring_up: Callable[..., Stage]
) -> None:
    needs_mounts()
    stage = bring_up(open_folder, preload=("tests.contracts.program",))
    data = open_folder / "data"
    data.mkdir(mode=0o700)
    (data / "numbers").write_text("1 2 3")
    shutil.chown(data / "numbers", "nobody")
    order = order_of(stage, data)
    confinement = Confinement(
        user=RunAs(name="nobody"), writes=(order.cwd,), reads=(str(data),), hides=(str(open_folder),)
    )

    stage.cluster.start(replace(order, confinement=confinement))
    found = stage.read(order.task_id)

    assert (found["read"], found["elsewhere"]) == ("done", "done")
    assert [found[name] for name in ("write", "append", "mode")] == ["EROFS"] * 3, "a file of the user's own"


def test_what_is_mounted_in_a_folder_stays_there_and_is_read_only_too(data: Path) -> None:
    needs_mounts()
    (data / "disk two").mkdir()
    script = (
        'mount -t tmpfs -o nosuid,nodev none "$1/disk two" && echo 1 > "$1/disk two/numbers" && exec "$2" -c "$3" "$1"'
    )
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", script, "sh", str(data), sys.executable, SUBMOUNT],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": PATHS},
    )
    assert ran.returncode == 0, ran.stderr
    inside, kept_its_flags, around = json.loads(ran.stdout)
    assert inside == {**KEPT, "rename": "EROFS"}
    assert kept_its_flags
    assert around == KEPT
