"""A task as a process, against a real server: how it ends, and what it says of it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.pool import free_port
from tests.entry.warm_task import end, warm_task
from tests.train.link.link_server import LinkServer

from pliant.core.link import Dismiss, Failed, Hello, Leaving, Ready
from pliant.entry.script_error import in_a_line

pytestmark = pytest.mark.timeout(180)

TIMEOUT_S = 60


@pytest.fixture
def server() -> Iterator[LinkServer]:
    with LinkServer() as server:
        yield server


def prepared(tmp_path: Path, server: LinkServer, script: str) -> tuple[Path, dict[str, str]]:
    """Return the folder of a task's code and its environment."""
    env = {
        **without_ours(),
        "PLIANT_URL": server.url,
        "PLIANT_TASK_TOKEN": "secret",
        "PLIANT_TASK_ID": "job-1.1",
        "PLIANT_JOB_ID": "job-1",
        "PLIANT_VIRTUAL_WORKERS": "8",
        "RESULT_DIR": str(tmp_path / "result"),
        "LOG_DIR": str(tmp_path / "log"),
        "PYTHONUNBUFFERED": "1",
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # as the server starts them
    }
    return code_of(tmp_path, script), env


def code_of(tmp_path: Path, script: str) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(script)
    return code


def without_ours() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PLIANT_")}


def run(tmp_path: Path, server: LinkServer, script: str, *args: str) -> tuple[int, str, str]:
    """Run a script as a task to its end; return exit code, stdout, stderr."""
    code, env = prepared(tmp_path, server, script)
    with warm_task(code, env, "train.py", *args) as process:
        return end(process, code, TIMEOUT_S)


def run_cold(code: Path, env: dict[str, str], *args: str) -> tuple[int, str, str]:
    """Do the same in a process that imports all by itself."""
    command = [sys.executable, "-m", "pliant.entry.task", "train.py", *args]
    done = subprocess.run(command, cwd=code, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return done.returncode, done.stdout, done.stderr


def test_script_that_raises_on_import_tells_where(tmp_path: Path, server: LinkServer) -> None:
    script = "import json\n\ndef read(text):\n    return json.loads(text)\n\nread('{')\n"

    code, _, err = run_cold(*prepared(tmp_path, server, script))

    (hello, failed) = server.all_heard()
    assert code == 1
    assert isinstance(hello, Hello)
    assert isinstance(failed, Failed)
    assert failed.error == (
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    )
    first, second, third, *_ = failed.traceback.splitlines()
    assert first == "Traceback (most recent call last):"
    assert second == f'  File "{tmp_path}/code/train.py", line 6, in <module>', "the person's own frame comes first"
    assert third == "    read('{')"
    assert "runpy" not in failed.traceback
    assert err.endswith(failed.traceback)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError("10%\r 50%\r100%\nand more"), "ValueError: 10% 50% 100% and more"),
        (KeyError(), "KeyError"),
        (SyntaxError("invalid syntax", ("train.py", 2, 5, "for in x:\n")), "SyntaxError: invalid syntax"),
    ],
)
def test_an_error_is_said_in_a_line_with_its_kind(error: BaseException, said: str) -> None:
    assert in_a_line(error) == said


def test_script_that_does_not_parse_tells_the_line(tmp_path: Path, server: LinkServer) -> None:
    code, _, _ = run(tmp_path, server, "x = 1\nfor in x:\n")

    failed = server.all_heard()[-1]
    assert code == 1
    assert isinstance(failed, Failed)
    assert failed.error == "SyntaxError: invalid syntax"
    assert f'File "{tmp_path}/code/train.py", line 2' in failed.traceback


@pytest.mark.parametrize(
    ("statement", "code", "err"),
    [
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no data')", 1, "no data\n"),
        ("sys.exit()", 0, ""),
        ("print('done')", 0, ""),
    ],
    ids=["a number", "a message", "nothing", "by itself"],
)
def test_exit_code_is_the_script_s_own(tmp_path: Path, server: LinkServer, statement: str, code: int, err: str) -> None:
    ended = run(tmp_path, server, f"import sys\nprint(sys.argv[1:], __name__)\n{statement}\n", "--lr", "0.1")

    assert ended[0] == code
    assert ended[1].startswith("['--lr', '0.1'] __main__\n")
    assert ended[2] == err
    assert all(isinstance(message, Hello) for message in server.all_heard()), "it never trained: nothing to tell"


def test_script_sees_no_token(tmp_path: Path, server: LinkServer) -> None:
    _, out, _ = run(tmp_path, server, "import os\nprint('PLIANT_TASK_TOKEN' in os.environ)\n")

    assert out == "False\n"


def test_sigterm_before_training_ends_the_task_quietly(tmp_path: Path, server: LinkServer) -> None:
    folder, env = prepared(tmp_path, server, "import pathlib, time\npathlib.Path('here').touch()\ntime.sleep(60)\n")
    with warm_task(folder, env, "train.py") as process:
        server.wait(lambda: bool(server.all_heard()) and (folder / "here").exists(), TIMEOUT_S)
        process.terminate()
        code, _, err = end(process, folder, TIMEOUT_S)

    assert code == 0
    assert err == "pliant: left the job: SIGTERM before training began\n"
    assert [type(message) for message in server.all_heard()] == [Hello, Leaving], "or it would count as done"


IMPORTING = """
import pathlib, time
from pliant.train.context import TRAIN_CONTEXT
from pliant.train.errors import Departed

try:
    while True:
        TRAIN_CONTEXT.get().membership.check_dismissed()
        time.sleep(0.01)
except Departed:
    pathlib.Path("dismissed").touch()
time.sleep(60)
"""


def test_who_is_dismissed_while_it_still_imports_leaves_at_sigterm(tmp_path: Path, server: LinkServer) -> None:
    folder, env = prepared(tmp_path, server, IMPORTING)
    with warm_task(folder, env, "train.py") as process:
        server.wait(lambda: bool(server.all_heard()), TIMEOUT_S)
        server.say(Dismiss(reason="its slots go to others"))
        server.wait(lambda: (folder / "dismissed").exists(), TIMEOUT_S)
        process.terminate()
        code, _, err = end(process, folder, TIMEOUT_S / 2)

    assert code == 0
    assert err == "pliant: left the job: its slots go to others\n"
    assert [type(message) for message in server.all_heard()] == [Hello]


ALONE = """
import os, sys, threading
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
print(dist.get_rank(), dist.get_world_size(), sys.argv[1:], __name__, torch.get_num_threads(), threading.active_count())
{ending}
"""


def prepared_fixed(tmp_path: Path, ending: str) -> tuple[Path, dict[str, str]]:
    """Return folder and environment of a script that is the only process of a fixed job."""
    env = {**without_ours(), "PLIANT_FIXED": "1", "PLIANT_NUM_THREADS": "1", "RANK": "0", "WORLD_SIZE": "1"}
    env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "PYTHONWARNINGS": "ignore"}
    return code_of(tmp_path, ALONE.format(ending=ending)), env


def run_fixed(tmp_path: Path, ending: str) -> tuple[int, str, str]:
    code, env = prepared_fixed(tmp_path, ending)
    with warm_task(code, env, "train.py", "--lr", "0.1") as process:
        return end(process, code, TIMEOUT_S)


@pytest.mark.parametrize(
    ("ending", "code"), [("dist.destroy_process_group()", 0), ("sys.exit(3)", 3), ("sys.exit('no data')", 1)]
)
def test_a_fixed_script_needs_no_server_and_has_its_own_exit_code(tmp_path: Path, ending: str, code: int) -> None:
    ended = run_fixed(tmp_path, ending)

    assert ended[:2] == (code, "0 1 ['--lr', '0.1'] __main__ 1 1\n")


def test_what_a_fixed_script_left_for_its_end_is_done(tmp_path: Path) -> None:
    _, out, _ = run_cold(*prepared_fixed(tmp_path, "import atexit; atexit.register(print, 'bye')"))

    assert out.endswith("bye\n")


def test_a_fixed_script_that_raises_tells_its_own_frames_and_the_error_last(tmp_path: Path) -> None:
    code, _, err = run_fixed(tmp_path, "raise LookupError('no such sample')")

    lines = err[err.index("Traceback") :].splitlines()
    assert code == 1
    assert lines[1].startswith(f'  File "{tmp_path}/code/train.py"')
    assert lines[-1] == "LookupError: no such sample"


READY = """
import torch
from torch.utils.data import TensorDataset
from pliant.train import Run

model = torch.nn.Linear(2, 1)
run = Run(model, torch.optim.SGD(model.parameters(), lr=0.1), TensorDataset(torch.zeros(64, 2)), batch_size=8)
for _ in run.epochs(1):
    for (x,) in run:
        run.step(model(x).sum())
"""


def test_sigterm_while_it_waits_to_train_ends_the_task_quietly(tmp_path: Path, server: LinkServer) -> None:
    folder, env = prepared(tmp_path, server, READY)
    with warm_task(folder, env, "train.py") as process:
        server.wait(lambda: any(isinstance(m, Ready) for m in server.all_heard()), TIMEOUT_S)
        process.terminate()
        code, _, err = end(process, folder, TIMEOUT_S)

    assert code == 0
    assert err == "pliant: left the job: SIGTERM before training began\n"
    assert not any(isinstance(m, Failed) for m in server.all_heard())
    assert sum(isinstance(m, Leaving) for m in server.all_heard()) == 1
