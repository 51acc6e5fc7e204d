"""The process of one task: connects to the server, runs the person's script, tells how it ended.

`main` is called in a process forked from the zygote; `python -m pliant.entry.task SCRIPT [ARGS…]` is the same, cold.
The environment that it reads is listed in docs/architecture.md.
"""

import os
import runpy
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pliant.api.trust import Trust
from pliant.core.job import DEFAULT_CHECKPOINT_EVERY_S, JobId, Mode, TaskId
from pliant.core.link import Failed, FromTask
from pliant.entry.output import survive_full_disk
from pliant.files import step_file
from pliant.train.context import TRAIN_CONTEXT, TrainContext
from pliant.train.determinism import limit_threads
from pliant.train.errors import Departed
from pliant.train.group.membership import TaskMembership
from pliant.train.link.link import Link, PulseSettings
from pliant.train.link.server_address import ServerAddress
from pliant.train.state.step_file import StepFile

GOODBYE_S = 15.0
"""A task that has ended waits this long for a server that is away, to tell it how."""
_LOCKING = frozenset(function.__code__.co_filename for function in (Link.send, TaskMembership.deliver))
"""Files whose code takes locks in the main thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What a task is told through its environment."""

    url: str
    server_file: Path | None
    trust: Trust
    token: str
    task_id: TaskId
    job_id: JobId
    host: str
    num_threads: int
    virtual_workers: int
    checkpoint_freq: int
    checkpoint_every_s: float
    mode: Mode
    weights: Path | None
    resume_from: Path | None
    audit: bool
    memory_dir: Path | None
    result_dir: Path
    log_dir: Path
    lease_s: float | None
    """The server takes a task for hung that is silent for this long; None: nobody minds."""
    python_path: tuple[str, ...]

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "TaskSettings":
        """Read the environment of a task."""
        return cls(
            url=env["PLIANT_URL"],
            server_file=Path(env["PLIANT_SERVER_FILE"]) if env.get("PLIANT_SERVER_FILE") else None,
            trust=Trust(
                certificate=Path(env["PLIANT_CA"]) if env.get("PLIANT_CA") else None,
                server_name=env.get("PLIANT_SERVER_NAME"),
            ),
            token=env["PLIANT_TASK_TOKEN"],
            task_id=TaskId(env["PLIANT_TASK_ID"]),
            job_id=JobId(env["PLIANT_JOB_ID"]),
            host=env.get("PLIANT_HOST", "127.0.0.1"),
            num_threads=int(env.get("PLIANT_NUM_THREADS", "1")),
            virtual_workers=int(env["PLIANT_VIRTUAL_WORKERS"]),
            checkpoint_freq=int(env.get("PLIANT_CHECKPOINT_FREQ", "1")),
            checkpoint_every_s=float(env.get("PLIANT_CHECKPOINT_EVERY_S", DEFAULT_CHECKPOINT_EVERY_S)),
            mode="fast" if env.get("PLIANT_MODE") == "fast" else "exact",
            weights=Path(env["PLIANT_WEIGHTS"]) if env.get("PLIANT_WEIGHTS") else None,
            resume_from=Path(env["PLIANT_RESUME_FROM"]) if env.get("PLIANT_RESUME_FROM") else None,
            audit=env.get("PLIANT_AUDIT") == "1",
            memory_dir=Path(env["PLIANT_MEMORY_DIR"]) if env.get("PLIANT_MEMORY_DIR") else None,
            result_dir=Path(env["RESULT_DIR"]),
            log_dir=Path(env["LOG_DIR"]),
            lease_s=float(env["PLIANT_LEASE_S"]) if "PLIANT_LEASE_S" in env else None,
            python_path=_python_path(env),
        )


def main(argv: Sequence[str]) -> int:
    """Run the script `argv[0]` with the arguments that follow as one task of a job; return the exit code."""
    survive_full_disk()
    if os.environ.get("PLIANT_FIXED") == "1":
        return _run_fixed(argv)
    settings = TaskSettings.read(os.environ)
    os.environ.pop("PLIANT_TASK_TOKEN")  # the script and what it starts have no use for it
    limit_threads(settings.num_threads)

    def send(message: FromTask) -> None:
        link.send(message)

    step_file = StepFile(settings.log_dir)
    membership = TaskMembership(
        job_id=settings.job_id,
        task_id=settings.task_id,
        pid=os.getpid(),
        host=settings.host,
        send=send,
        on_commit=step_file.write,
    )
    link = Link(
        address=ServerAddress(settings.url, settings.server_file, settings.trust),
        task_id=settings.task_id,
        token=settings.token,
        hello=membership.hello,
        deliver=membership.deliver,
        pulse=PulseSettings(make=membership.pulse, lease_s=settings.lease_s) if settings.lease_s is not None else None,
    )
    context = TrainContext(
        membership=membership,
        clock=time.monotonic,
        now=time.time,
        virtual_workers=settings.virtual_workers,
        checkpoint_freq=settings.checkpoint_freq,
        checkpoint_every_s=settings.checkpoint_every_s,
        mode=settings.mode,
        weights=settings.weights,
        resume_from=settings.resume_from,
        memory_dir=settings.memory_dir,
        result_dir=settings.result_dir,
        log_dir=settings.log_dir,
        audit=settings.audit,
    )
    context.cleanups.append(step_file.close)
    TRAIN_CONTEXT.set(context)
    _leave_on_sigterm(membership)
    link.start()
    try:
        return _run(argv, settings, context)
    finally:
        for clean_up in context.cleanups:
            clean_up()
        sys.stdout.flush()
        sys.stderr.flush()
        link.close(GOODBYE_S)


def _leave_on_sigterm(membership: TaskMembership) -> None:
    def leave(_signal: int, frame: FrameType | None) -> None:
        if membership.is_training:
            threading.Thread(target=membership.ask_to_leave, args=("SIGTERM",), daemon=True).start()
        elif membership.give_up(reason := "SIGTERM before training began") and not _may_hold_a_lock(frame):
            raise Departed(reason)

    signal.signal(signal.SIGTERM, leave)


def _may_hold_a_lock(frame: FrameType | None) -> bool:
    """Tell whether an exception in this frame could leave a lock of the link or the session locked for ever.

    It could between taking a lock and entering the block that gives it back. What waits there sees `give_up`.
    """
    while frame is not None:
        if frame.f_code.co_filename in _LOCKING:
            return True
        frame = frame.f_back
    return False


def _run(argv: Sequence[str], settings: TaskSettings, context: TrainContext) -> int:
    script = _enter(argv, settings.python_path)
    try:
        runpy.run_path(str(script), run_name="__main__")
        for close in context.closers:
            close()
    except Departed as departed:
        print(f"pliant: left the job: {departed.reason}", file=sys.stderr)
        return 0
    except SystemExit as ended:
        return _exit_code(ended, context)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001 (the script may raise anything; the server tells people what)
        told = "".join(_of_the_user(error, script).format())
        step = step_file.read(settings.log_dir)
        context.membership.send(Failed(error=_last_line(error), traceback=told, step=step))
        print(told, file=sys.stderr, end="")
        return 1
    return 0


def _run_fixed(argv: Sequence[str]) -> int:
    """Run the script of a fixed job: it finds the others by itself, so there is neither a link nor a coordinator."""
    limit_threads(int(os.environ.get("PLIANT_NUM_THREADS", "1")))
    script = _enter(argv, _python_path(os.environ))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 (the script may raise anything)
        print("".join(_of_the_user(error, script).format()), file=sys.stderr, end="")
        return 1
    return 0


def _enter(argv: Sequence[str], python_path: Sequence[str]) -> Path:
    """Make this process look as if the script were its program; return the script."""
    script = Path(argv[0]).resolve()
    sys.argv = [str(script), *argv[1:]]
    sys.path[:0] = [str(script.parent), *(part for part in python_path if part not in sys.path)]
    return script


def _python_path(env: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(filter(None, env.get("PYTHONPATH", "").split(os.pathsep)))


def _exit_code(ended: SystemExit, context: TrainContext) -> int:
    if ended.code is None or ended.code == 0:
        for close in context.closers:
            close()
        return 0
    if isinstance(ended.code, int):
        return ended.code
    print(ended.code, file=sys.stderr)
    return 1


def _of_the_user(error: BaseException, script: Path) -> traceback.TracebackException:
    """Return the traceback from the script's first frame on."""
    told = traceback.TracebackException.from_exception(error)
    places = [place for place, frame in enumerate(told.stack) if frame.filename == str(script)]
    if places:
        told.stack = traceback.StackSummary.from_list(list(told.stack)[places[0] :])
    return told


def _last_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip().splitlines()[-1][:1000]


if __name__ == "__main__":
    code = main(sys.argv[1:])
    if os.environ.get("PLIANT_FIXED") == "1":
        sys.exit(code)  # what the script left to be done at the end of its program is its own
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that still drop connections have nothing more to save
