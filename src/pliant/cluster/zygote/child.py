"""What a process that the zygote has just forked does to become a task.

It starts as a copy of the zygote and ends up as a fresh program would be, except that the modules are imported:
session, signals, files, environment, folder, path, arguments and random state are its own. It never returns into the
zygote. Knows no training: what it runs is an argument.
"""

import atexit
import importlib
import importlib.metadata  # what `invalidate_caches` would import too late: after the task became another user
import io
import os
import random
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from pliant.cluster import process
from pliant.cluster.json_lines import decode
from pliant.cluster.zygote.messages import PROGRAM, TaskProgram
from pliant.isolation.enter import enter
from pliant.isolation.system_calls import adopt_orphans

CANNOT_START = 127
"""Exit code of a child that could not become its task; it has sent the reason to the zygote."""
_LOG = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""What is there already may be anything that an earlier task of the job has left."""
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def become(path: Path, entry: str, handshake: socket.socket, *, cold: bool) -> NoReturn:
    """Become the task as soon as the zygote says so; end at once if the zygote dies before.

    All that comes before its program is done meanwhile: the zygote writes the record beside it.

    Args:
        path: the file that says what to become. It is removed.
        entry: `module:function`; called with the arguments in this process, or run as a program by another interpreter.
        handshake: the zygote sends a byte once the record is written; the child sends why it could not start.
        cold: run it by a fresh interpreter, whatever the file says.
    """
    code = CANNOT_START
    try:
        os.setsid()
        adopt_orphans()  # whatever it starts stays below it, also what detaches itself
        program = _read(path)
        entry = program.entry or entry
        if cold and program.python is None:
            program = replace(program, python=sys.executable)
        error = _prepare(program, handshake)
        if handshake.recv(1):
            code = _refuse(error, handshake) if error else _run_task(program, entry, handshake)
    finally:
        os._exit(code)


def _read(path: Path) -> TaskProgram:
    line = path.read_bytes()
    path.unlink(missing_ok=True)
    return decode(line, PROGRAM)


def _run_task(program: TaskProgram, entry: str, handshake: socket.socket) -> int:
    if program.python is not None:
        return _refuse(_run_other_python(program, program.python, entry), handshake)
    handshake.close()
    _set_up_interpreter(program, entry)
    return _run(entry, program.argv)


def _refuse(error: str, handshake: socket.socket) -> int:
    handshake.sendall(error.encode())
    return CANNOT_START


def _prepare(program: TaskProgram, handshake: socket.socket) -> str:
    """Take the task's signals, walls, files, folder and environment; return why that is impossible, or nothing."""
    os.umask(0o077)
    _restore_signals(to_exec=program.python is not None)
    try:
        user = _enter(program)
    except OSError as error:
        return f"it cannot be kept apart from others ({error}); see who runs this machine"
    try:
        _open_logs(program.log_dir)
        process.close_files(but=handshake.fileno())
        os.environ.update({**user, **program.env})
    except OSError as error:
        return f"its log folder {program.log_dir} cannot be used ({error}); make room there, or let Pliant write there"
    except ValueError as error:
        return f"its environment cannot be set ({error}); take the bad value out of the job's env"
    try:
        os.chdir(program.cwd)
    except OSError as error:
        return f"its folder {program.cwd} cannot be entered ({error}); the job's code may have been removed"
    if os.path.realpath(os.getcwd()) != os.path.realpath(program.cwd):
        return f"its folder {program.cwd} leads elsewhere; the job's code may have been removed"
    return ""


def _enter(program: TaskProgram) -> dict[str, str]:
    """Enter the confinement; return the variables that say who the process is then, and where its /tmp is."""
    if program.confinement is None:
        return {}
    entered = enter(program.confinement)
    name = entered.account.name if entered.account is not None else ""
    temporary = None if entered.has_mounts else program.confinement.temporary
    said = {"USER": name, "LOGNAME": name, "TMPDIR": temporary}
    return {variable: value for variable, value in said.items() if value}


def _run_other_python(program: TaskProgram, python: str, entry: str) -> str:
    """Become another interpreter; return why that is impossible."""
    try:
        os.execvp(python, [python, "-m", entry.partition(":")[0], *program.argv])
    except (OSError, ValueError) as error:
        return f"the Python interpreter {python} cannot be run ({error}); give the path of one that exists"


def _restore_signals(*, to_exec: bool) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if number not in _IGNORED_BY_PYTHON or to_exec:
            with suppress(OSError):  # a few are the C library's own
                signal.signal(number, signal.SIG_DFL)
    if not to_exec:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _open_logs(log_dir: str) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    if log_dir:
        Path(log_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    for target, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(log_dir, name), _LOG, 0o600) if log_dir else null, target)


def _set_up_interpreter(program: TaskProgram, entry: str) -> None:
    """Make the running interpreter what a fresh one with this environment, folder and arguments would be."""
    paths = os.environ.get("PYTHONPATH", "")
    front = [str(Path(path).absolute()) for path in paths.split(os.pathsep) if path]
    if program.entry is None:
        front.insert(0, program.cwd)
    sys.path[:] = [*front, *(path for path in sys.path if path not in front)]
    importlib.invalidate_caches()
    sys.argv = [entry.partition(":")[0], *program.argv]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    with suppress(OSError):
        Path("/proc/self/comm").write_text(program.task_id[-15:])


def _run(entry: str, argv: tuple[str, ...]) -> int:
    """Run the program and all that Python runs when a program ends; return the exit code."""
    try:
        code = _program(entry)(list(argv))
    except SystemExit as stop:
        code = _code_of(stop)
    except KeyboardInterrupt:
        sys.excepthook(*sys.exc_info())
        code = 128 + signal.SIGINT
    except BaseException:  # noqa: BLE001 - the top of the task's program; Python itself would do the same
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the end of every program does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 120  # what Python itself exits with if its last output is lost
    return code & 0xFF


def _program(entry: str) -> Callable[[list[str]], int]:
    module, _, function = entry.partition(":")
    program: Callable[[list[str]], int] = getattr(importlib.import_module(module), function)
    return program


def _code_of(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return 1
