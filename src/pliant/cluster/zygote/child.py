"""What a process that the zygote has just forked does to become a task.

It starts as a copy of the zygote and ends up as a fresh program would be, except that the modules are imported:
session, signals, files, environment, folder, path, arguments and random state are its own. It never returns into the
zygote. Knows no training: what it runs is an argument.
"""

import atexit
import importlib
import importlib.metadata  # what `invalidate_caches` would import too late: after the task became another user
import io
import logging
import os
import random
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from pliant.cluster import process
from pliant.cluster.zygote.messages import Launch
from pliant.cluster.zygote.read_only import make_read_only
from pliant.cluster.zygote.run_as import grant_access, switch_user

_log = logging.getLogger(__name__)

CANNOT_START = 127
"""Exit code of a child that could not become its task; it has sent the reason to the zygote."""
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def become(launch: Launch, entry: str, handshake: socket.socket) -> NoReturn:
    """Become the task as soon as the zygote says so; end at once if the zygote dies before.

    Args:
        launch: what to become.
        entry: `module:function`; called with the arguments in this process, or run as a program by another interpreter.
        handshake: the zygote sends a byte once the record is written; the child sends why it could not start.
    """
    code = CANNOT_START
    try:
        os.setsid()
        if handshake.recv(1):
            code = _run_task(launch, entry, handshake)
    finally:
        os._exit(code)


def _run_task(launch: Launch, entry: str, handshake: socket.socket) -> int:
    error = _prepare(launch, handshake)
    if not error and launch.python is not None:
        error = _run_other_python(launch, launch.python, entry)
    if error:
        handshake.sendall(error.encode())
        return CANNOT_START
    handshake.close()
    _set_up_interpreter(launch, entry)
    return _run(entry, launch.argv)


def _prepare(launch: Launch, handshake: socket.socket) -> str:
    """Take the task's signals, files, folder and environment; return why that is impossible, or nothing."""
    try:
        _restore_signals(to_exec=launch.python is not None)
        if launch.run_as is not None:
            grant_access(launch.run_as)
        _mount_read_only(launch)
        home = {} if launch.run_as is None else switch_user(launch.run_as)
    except OSError as error:
        return f"it cannot run as another user ({error}); see who runs this machine"
    try:
        _open_logs(Path(launch.log_dir))
        process.close_files(but=handshake.fileno())
        os.environ.update({**home, **launch.env})
    except OSError as error:
        return f"its log folder {launch.log_dir} cannot be used ({error}); make room there, or let Pliant write there"
    except ValueError as error:
        return f"its environment cannot be set ({error}); take the bad value out of the job's env"
    try:
        os.chdir(launch.cwd)
    except OSError as error:
        return f"its folder {launch.cwd} cannot be entered ({error}); the job's code may have been removed"
    return ""


def _mount_read_only(launch: Launch) -> None:
    """Keep the task from writing where it shall only read; where that is refused, the modes of the files remain."""
    try:
        make_read_only(launch.read_only)
    except OSError as error:
        if os.geteuid() == 0:  # else the modes bind
            _log.warning("task %s can write in %s: %s", launch.task_id, ", ".join(launch.read_only), error)


def _run_other_python(launch: Launch, python: str, entry: str) -> str:
    """Become another interpreter; return why that is impossible."""
    try:
        os.execvp(python, [python, "-m", entry.partition(":")[0], *launch.argv])
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


def _open_logs(log_dir: Path) -> None:
    log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for target, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(log_dir / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), target)


def _set_up_interpreter(launch: Launch, entry: str) -> None:
    """Make the running interpreter what a fresh one with this environment, folder and arguments would be."""
    paths = os.environ.get("PYTHONPATH", "")
    front = [launch.cwd, *(str(Path(path).absolute()) for path in paths.split(os.pathsep) if path)]
    sys.path[:] = [*front, *(path for path in sys.path if path not in front)]
    importlib.invalidate_caches()
    sys.argv = [entry.partition(":")[0], *launch.argv]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()
    with suppress(OSError):
        Path("/proc/self/comm").write_text(launch.task_id[-15:])


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
