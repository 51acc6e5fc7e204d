"""The process of one task: connects to the server, runs the person's script, tells how it ended.

`main` is called in a process forked from the zygote; `python -m pliant.entry.task SCRIPT [ARGS…]` is the same, cold.
The environment that it reads is listed in docs/architecture.md.
"""

import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pliant.core.job import JobId, TaskId
from pliant.core.link import Failed, FromTask
from pliant.train.ambient import SURROUNDINGS, Surroundings
from pliant.train.errors import Departed
from pliant.train.link import Link
from pliant.train.process import prepare
from pliant.train.session import Session

GOODBYE_S = 10.0
"""A task that has ended waits this long for a server that is away, to tell it how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What a task is told through its environment."""

    url: str
    token: str
    task_id: TaskId
    job_id: JobId
    host: str
    num_threads: int
    virtual_workers: int
    checkpoint_freq: int
    audit: bool
    result_dir: Path
    log_dir: Path
    python_path: tuple[str, ...]

    @classmethod
    def read(cls, env: Mapping[str, str]) -> "TaskSettings":
        """Read the environment of a task."""
        return cls(
            url=env["PLIANT_URL"],
            token=env["PLIANT_TASK_TOKEN"],
            task_id=TaskId(env["PLIANT_TASK_ID"]),
            job_id=JobId(env["PLIANT_JOB_ID"]),
            host=env.get("PLIANT_HOST", "127.0.0.1"),
            num_threads=int(env.get("PLIANT_NUM_THREADS", "1")),
            virtual_workers=int(env["PLIANT_VIRTUAL_WORKERS"]),
            checkpoint_freq=int(env.get("PLIANT_CHECKPOINT_FREQ", "1")),
            audit=env.get("PLIANT_AUDIT") == "1",
            result_dir=Path(env["RESULT_DIR"]),
            log_dir=Path(env["LOG_DIR"]),
            python_path=tuple(filter(None, env.get("PYTHONPATH", "").split(os.pathsep))),
        )


def main(argv: Sequence[str]) -> int:
    """Run the script `argv[0]` with the arguments that follow as one task of a job; return the exit code."""
    settings = TaskSettings.read(os.environ)
    os.environ.pop("PLIANT_TASK_TOKEN")  # the script and what it starts have no use for it
    prepare(settings.num_threads)

    def send(message: FromTask) -> None:
        link.send(message)

    session = Session(job_id=settings.job_id, task_id=settings.task_id, pid=os.getpid(), host=settings.host, send=send)
    link = Link(
        url=settings.url,
        task_id=settings.task_id,
        token=settings.token,
        hello=session.hello,
        deliver=session.deliver,
    )
    surroundings = Surroundings(
        session=session,
        clock=time.monotonic,
        now=time.time,
        virtual_workers=settings.virtual_workers,
        checkpoint_freq=settings.checkpoint_freq,
        result_dir=settings.result_dir,
        log_dir=settings.log_dir,
        audit=settings.audit,
    )
    SURROUNDINGS.set(surroundings)
    _leave_on_sigterm(session)
    link.start()
    try:
        return _run(argv, settings, surroundings)
    finally:
        for clean_up in surroundings.cleanups:
            clean_up()
        sys.stdout.flush()
        sys.stderr.flush()
        link.close(GOODBYE_S)


def _leave_on_sigterm(session: Session) -> None:
    def leave(_signal: int, _frame: FrameType | None) -> None:
        if session.trains:
            session.ask_to_leave("SIGTERM")
        else:
            raise Departed("SIGTERM before training began")

    signal.signal(signal.SIGTERM, leave)


def _run(argv: Sequence[str], settings: TaskSettings, surroundings: Surroundings) -> int:
    script = Path(argv[0]).resolve()
    sys.argv = [str(script), *argv[1:]]
    sys.path[:0] = [str(script.parent), *(part for part in settings.python_path if part not in sys.path)]
    try:
        runpy.run_path(str(script), run_name="__main__")
        for close in surroundings.closers:
            close()
    except Departed as departed:
        print(f"pliant: left the job: {departed.reason}", file=sys.stderr)
        return 0
    except SystemExit as ended:
        return _exit_code(ended, surroundings)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001 (the script may raise anything; the server tells people what)
        told = "".join(_of_the_user(error, script).format())
        print(told, file=sys.stderr, end="")
        surroundings.session.send(Failed(error=_last_line(error), traceback=told))
        return 1
    return 0


def _exit_code(ended: SystemExit, surroundings: Surroundings) -> int:
    if ended.code is None or ended.code == 0:
        for close in surroundings.closers:
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
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that still drop connections have nothing more to save
