"""The command line imports what a command needs, no more; and Ctrl-C never shows a traceback, whenever it comes."""

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.process_state import interrupt
from tests.server.played import Played, set_scene

from pliant.cli.commands import COMMANDS, Listed

COMMAND = [sys.executable, "-m", "pliant.cli.app"]
MODULES = "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
HEAVY = {"httpx", "rich", "pliant.client", "pliant.api.jobs", "sqlalchemy", "fastapi"}
INTERRUPTED = -signal.SIGINT
"""Ended by the signal itself: a shell says 130, and ends the loop that the command stands in."""
STOP = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(30)\n"
"""A module that is interrupted while it is imported; it ends by itself if Ctrl-C does nothing."""


def imported_by(*words: str, env: Mapping[str, str]) -> tuple[str, set[str]]:
    """Return what a command prints, and the modules that it has imported."""
    program = f"{MODULES}; from pliant.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env=dict(env), capture_output=True, text=True, timeout=50, check=True
    )
    return done.stdout, set(done.stderr.split())


def test_a_command_that_asks_no_server_imports_no_client(clean: dict[str, str]) -> None:
    said, modules = imported_by("version", env=clean)

    assert said.startswith("pliant ")
    assert "pliant.cli.commands" in modules
    assert modules & HEAVY == set()


def test_a_command_looks_for_garbage_no_more_than_once_while_it_is_imported(clean: dict[str, str]) -> None:
    count = "import gc; looks = []; gc.callbacks.append(lambda phase, _: looks.append(phase))"
    tell = "import sys, atexit; atexit.register(lambda: print(looks.count('start'), gc.isenabled(), file=sys.stderr))"
    program = f"from pliant.cli.app import main; {count}; {tell}; main()"
    command = [sys.executable, "-c", program, "submit", "--help"]

    done = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=50, check=True)

    looks, goes_on = done.stderr.split()
    assert int(looks) <= 1
    assert goes_on == "True"


@pytest.mark.parametrize(
    "asked", [{}, {"_PLIANT_COMPLETE": "complete_bash", "COMP_WORDS": "pliant wh", "COMP_CWORD": "1"}]
)
def test_a_command_and_a_completion_look_for_no_garbage_at_their_end(
    asked: dict[str, str], clean: dict[str, str]
) -> None:
    ring = "class Ring:\n    def __del__(self): print('looked')\nring = Ring(); ring.ring = ring"
    program = f"{ring}\nfrom pliant.cli.app import main; main()"
    command = [sys.executable, "-c", program, *(() if asked else ("version",))]

    done = subprocess.run(command, env=clean | asked, capture_output=True, text=True, timeout=50, check=True)

    assert done.stdout.startswith("why" if asked else "pliant ")
    assert "looked" not in done.stdout


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_told_in_a_line(unbuffered: str, clean: dict[str, str]) -> None:
    env = clean | {"PYTHONUNBUFFERED": unbuffered}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, "version"], env=env, stdout=full, stderr=subprocess.PIPE, timeout=50)

    assert (done.returncode, done.stderr) == (1, b"error: No space left on device\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_who_has_read_enough_hears_no_more(unbuffered: str, clean: dict[str, str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    env = clean | {"PYTHONUNBUFFERED": unbuffered}

    done = subprocess.run([*COMMAND, "version"], env=env, stdout=writer, stderr=subprocess.PIPE, timeout=50)

    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("words", "number", "offered"), [("pliant wh", 1, {"why", "whoami"}), ("pliant version --", 2, set())]
)
def test_a_shell_completes_names_without_the_client(
    words: str, number: int, offered: set[str], clean: dict[str, str]
) -> None:
    asked = {"_PLIANT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}

    said, modules = imported_by(env=clean | asked)

    assert offered <= set(said.split())
    assert modules & HEAVY == set()


def test_a_command_that_asks_a_server_imports_nothing_of_other_command_lines(clean: dict[str, str]) -> None:
    program = f"{MODULES}; from pliant.cli.commands import COMMANDS, Listed; Listed('ps', COMMANDS['ps']).load()"

    done = subprocess.run(
        [sys.executable, "-c", program], env=clean, capture_output=True, text=True, timeout=50, check=True
    )

    modules = set(done.stderr.split())
    assert "httpx" in modules
    assert modules & {"click", "pygments", "rich.progress"} == set()


def test_what_is_wrong_with_a_call_is_said_without_a_client(clean: dict[str, str]) -> None:
    program = f"{MODULES}; from pliant.cli.commands import run; run(['sumbit'])"

    done = subprocess.run(
        [sys.executable, "-c", program], env=clean, capture_output=True, text=True, timeout=50, check=True
    )

    assert "is 'submit' meant?" in done.stderr
    assert set(done.stderr.split()) & {"httpx", "pliant.client"} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_of_each_command_what_its_page_says(name: str) -> None:
    place = COMMANDS[name]

    assert Listed(name, place).load().get_short_help_str(200) == place.help


@pytest.mark.parametrize(("module", "words"), [("typer", ("version",)), ("httpx", ("ps",))])
def test_ctrl_c_while_something_is_imported_ends_the_command_without_a_word(
    module: str, words: tuple[str, ...], tmp_path: Path, clean: dict[str, str]
) -> None:
    (tmp_path / f"{module}.py").write_text(STOP)

    done = subprocess.run(
        [*COMMAND, *words], env=clean | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=25
    )

    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")


@pytest.mark.parametrize("words", [("up", "--port", "0"), ("restore", "backup.tar.gz")])
def test_ctrl_c_while_the_server_or_a_restoration_is_imported_ends_it_without_a_word(
    words: tuple[str, ...], tmp_path: Path, clean: dict[str, str]
) -> None:
    (tmp_path / "alembic.py").write_text(STOP)

    done = subprocess.run(
        [*COMMAND, *words], env=clean | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=25
    )

    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")


def test_ctrl_c_ends_a_script_that_runs_alone_without_a_traceback(tmp_path: Path, clean: dict[str, str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"import sys\nprint(sys.path[0], __file__, sys.argv[1:], flush=True)\n{STOP}")

    done = subprocess.run([*COMMAND, "run", str(script), "-x"], env=clean, capture_output=True, text=True, timeout=25)

    assert (done.returncode, done.stderr) == (INTERRUPTED, "")
    assert done.stdout == f"{tmp_path} {script} ['-x']\n"


def test_a_script_that_fails_alone_is_shown_from_its_first_line_on(tmp_path: Path, clean: dict[str, str]) -> None:
    script = tmp_path / "train.py"
    script.write_text("def step():\n    raise ValueError('a\\nb')\nstep()\n")

    by_us = subprocess.run([*COMMAND, "run", str(script)], env=clean, capture_output=True, text=True, timeout=25)
    by_python = subprocess.run([sys.executable, str(script)], env=clean, capture_output=True, text=True, timeout=25)

    assert (by_us.returncode, by_us.stderr) == (1, by_python.stderr)


@pytest.mark.parametrize("words", [("stop", "1", "--wait"), ("logs", "1", "-f"), ("logs", "1", "-f", "--task", "1")])
def test_ctrl_c_leaves_the_job_alone_and_says_how_to_end_it(
    words: tuple[str, ...], pool: Played, clean: dict[str, str]
) -> None:
    set_scene(pool)
    env = clean | {"PLIANT_URL": pool.url, "PLIANT_TOKEN": pool.token}
    with subprocess.Popen([*COMMAND, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as command:
        assert command.stdout is not None
        first = command.stdout.readline()
        interrupt(command)
        said = (first + command.stdout.read()).decode()

    assert command.returncode == INTERRUPTED
    assert "job-1 goes on: `pliant logs -f job-1` follows it, `pliant stop job-1` ends it" in said
    assert "Traceback" not in said


def test_ctrl_c_ends_the_loop_of_a_shell_that_the_command_stands_in(pool: Played, clean: dict[str, str]) -> None:
    set_scene(pool)
    env = clean | {"PLIANT_URL": pool.url, "PLIANT_TOKEN": pool.token}
    loop = f"for i in 1 2; do {shlex.join([*COMMAND, 'logs', '1', '-f'])}; echo next; done"
    with subprocess.Popen(
        ["bash", "-c", loop], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as shell:
        assert shell.stdout is not None
        first = shell.stdout.readline()
        os.killpg(shell.pid, signal.SIGINT)  # as a terminal does
        said = (first + shell.stdout.read()).decode()

    assert shell.returncode == INTERRUPTED
    assert "job-1 goes on" in said
    assert "next" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("users", "add", "bob"),
            "\nthe server had been asked already, and may have done it; look before you try again\n",
        ),
        (("users", "list"), ""),
    ],
)
def test_ctrl_c_while_the_server_changes_something_says_that_it_may_have_done_so(
    words: tuple[str, ...], said: str, clean: dict[str, str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = clean | {"PLIANT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "PLIANT_TOKEN": "t"}
        with subprocess.Popen([*COMMAND, *words], env=env, stderr=subprocess.PIPE, text=True) as command:
            asked, _ = silent.accept()
            with asked:
                assert asked.recv(1)
                interrupt(command)
                _, found = command.communicate(timeout=25)

    assert (command.returncode, found) == (INTERRUPTED, said)


def test_who_waits_from_a_pipe_reads_a_line_per_change_on_stderr(pool: Played, clean: dict[str, str]) -> None:
    set_scene(pool)
    env = clean | {"PLIANT_URL": pool.url, "PLIANT_TOKEN": pool.token}
    with subprocess.Popen(
        [*COMMAND, "stop", "1", "--wait", "--json"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stderr is not None
        assert command.stderr.readline() == (
            "job-1 is stopping on 2 slots: epoch 3/20 (15%), loss 0.25, 2 min 05 s left\n"
        )
        pool.end_tasks("job-1", 0)
        pool.until_ended("job-1")
        out, rest = command.communicate(timeout=25)

    assert (command.returncode, rest) == (0, "")
    assert '"state": "stopped"' in out
