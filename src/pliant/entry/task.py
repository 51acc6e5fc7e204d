"""The process of one task: connects to the server, runs the person's script, tells how it ended.

`main` is called in a process forked from the zygote; `python -m pliant.entry.task SCRIPT [ARGS…]` is the same, cold.
The environment that it reads is listed in docs/task-environment.md.
"""

import faulthandler
import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from pliant.api.server_address import ServerAddress
from pliant.api.trust import Trust
from pliant.core.job_params import params_of_args
from pliant.core.link import Failed, FromTask, Note
from pliant.core.task_environment import STACKS_SIGNAL, FixedTask, ServingTask, TaskEnvironment, TaskNode
from pliant.entry import kernel
from pliant.entry.heap import keep_freed_memory
from pliant.entry.output import survive_full_disk
from pliant.entry.script_error import in_a_line, of_the_user
from pliant.files import step_file
from pliant.integrations.tensorflow_names import offer
from pliant.tracking.recorder import FOLDER, Recorder, RecorderSettings, trackers_of
from pliant.tracking.tracker import Outcome
from pliant.train.context import TRAIN_CONTEXT, TrainContext
from pliant.train.determinism import limit_threads
from pliant.train.errors import Departed
from pliant.train.group.handshake import job_key
from pliant.train.group.membership import TaskMembership
from pliant.train.link.link import Link, PulseSettings
from pliant.train.link.unsent_file import UnsentFile
from pliant.train.state.step_file import StepFile

GOODBYE_S = 300.0
"""So long a task that has ended waits for a server that is away, to tell it how, and what it reported last, if it could
not leave that in its LOG_DIR (`pliant.train.link.unsent_file`). If it could, it waits two seconds."""
TRACKED_END_S = 20.0
"""So long the trackers of a training that is over are waited for."""
TRACKED_LEAVE_S = 3.0
"""The same, where others wait for this task's failure or its slots."""
_TERMINATED = "SIGTERM before training began"
_LOCKING = frozenset(function.__code__.co_filename for function in (Link.send, TaskMembership.deliver))
"""Files whose code takes locks in the main thread."""


def main(argv: Sequence[str]) -> int:
    """Run the script `argv[0]` with the arguments that follow as one task of a job; return the exit code."""
    survive_full_disk()
    if ServingTask.is_said(os.environ):
        offer()
        return kernel.main(argv)
    keep_freed_memory(os.environ)
    if FixedTask.is_said(os.environ):
        return _run_fixed(argv)
    environment, node = TaskEnvironment.from_env(os.environ), TaskNode.from_env(os.environ)
    training, log_dir = environment.elastic, _path(environment.folders.log)
    if training is None or log_dir is None or environment.folders.result is None:
        raise KeyError("a task needs PLIANT_URL, RESULT_DIR and LOG_DIR in its environment")
    os.environ.pop("PLIANT_TASK_TOKEN")  # the script and what it starts have no use for it
    limit_threads(node.num_threads)

    def send(message: FromTask) -> None:
        link.send(message)

    notes = StepFile(log_dir)
    membership = TaskMembership(
        job_id=environment.job_id,
        task_id=environment.task_id,
        pid=os.getpid(),
        host=node.host,
        key=job_key(training.token),
        send=send,
        on_commit=notes.write,
    )
    trust = Trust(certificate=_path(training.certificate), server_name=training.server_name)
    link = Link(
        address=ServerAddress(training.url, _path(training.server_file), trust),
        task_id=environment.task_id,
        token=training.token,
        hello=membership.hello,
        deliver=membership.deliver,
        pulse=PulseSettings(make=membership.pulse, lease_s=training.lease_s) if training.lease_s is not None else None,
        unsent=UnsentFile(log_dir, environment.task_id),
    )
    context = _train_context(environment, node, membership)
    context.tracking = _recorder(environment, argv, membership)
    context.cleanups.append(notes.close)
    TRAIN_CONTEXT.set(context)
    _leave_on_sigterm(membership)
    offer()
    link.start()
    try:
        return _run(argv, log_dir, context)
    finally:
        for clean_up in context.cleanups:
            clean_up()
        sys.stdout.flush()
        sys.stderr.flush()
        link.close(GOODBYE_S)


def _train_context(environment: TaskEnvironment, node: TaskNode, membership: TaskMembership) -> TrainContext:
    training = environment.elastic
    assert training is not None
    return TrainContext(
        membership=membership,
        clock=time.monotonic,
        now=time.time,
        virtual_workers=training.virtual_workers,
        max_tasks=training.max_tasks,
        balance=training.balance,
        checkpoint_freq=training.checkpoint_freq,
        checkpoint_every_s=training.checkpoint_every_s,
        mode=training.mode,
        weights=_path(environment.weights),
        resume_from=_path(training.resume_from),
        own_numbers=training.own_numbers,
        keep_every=training.keep_every,
        memory_dir=_path(node.memory_dir),
        has_copies=node.has_copies,
        result_dir=_path(environment.folders.result),
        log_dir=_path(environment.folders.log),
        metrics_every=training.metrics_every,
        histograms_every=training.histograms_every,
        audit=training.audit,
    )


def _recorder(environment: TaskEnvironment, argv: Sequence[str], membership: TaskMembership) -> Recorder | None:
    """Return what takes the training's reports for experiment trackers, if the job's variables name some.

    The training logs to W&B then, once, and what the script logs there itself would come from every task: it is off.
    """
    trackers, folders = trackers_of(os.environ), environment.folders
    if environment.elastic is None or not environment.elastic.tracking or not trackers or folders.state is None:
        return None
    folder = Path(folders.state) / FOLDER
    options = ["--job", environment.job_id, "--name", environment.elastic.job_name or environment.job_id]
    options += ["--folder", str(folder), "--result-dir", str(folders.result)]
    settings = RecorderSettings(
        trackers=trackers,
        folder=folder,
        command=lambda tracker: [sys.executable, "-P", "-m", "pliant.entry.tracker", tracker, *options],
        env=dict(os.environ),
        params=params_of_args(argv[1:]),
    )
    if "wandb" in trackers:
        os.environ["WANDB_MODE"] = "disabled"

    def warn(text: str) -> None:
        print(f"pliant: {text}", file=sys.stderr, flush=True)
        membership.send(Note(message=text))

    return Recorder(settings, warn)


def _end_tracking(context: TrainContext, outcome: Outcome) -> None:
    if context.tracking is not None:
        context.tracking.end(outcome, TRACKED_END_S if outcome.is_last else TRACKED_LEAVE_S)


def _leave_on_sigterm(membership: TaskMembership) -> None:
    def leave(_signal: int, frame: FrameType | None) -> None:
        if membership.is_training:
            threading.Thread(target=membership.ask_to_leave, args=("SIGTERM",), daemon=True).start()
        elif (why := membership.give_up(_TERMINATED)) is not None and not _may_hold_a_lock(frame):
            raise Departed(why)  # also if the server has dismissed it: its imports may take long, and it holds slots

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


def _run(argv: Sequence[str], log_dir: Path, context: TrainContext) -> int:
    script = _enter(argv)
    try:
        runpy.run_path(str(script), run_name="__main__")
        for close in context.closers:
            close()
        _end_tracking(context, Outcome.FINISHED)
    except Departed as departed:
        _end_tracking(context, departed.outcome)
        if departed.reason == _TERMINATED:  # if the server has not asked for it, the exit code does not mean "done"
            context.membership.ask_to_leave(departed.reason)
        print(f"pliant: left the job: {departed.reason}", file=sys.stderr)
        return 0
    except SystemExit as ended:
        return _exit_code(ended, context)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001 (the script may raise anything; the server tells people what)
        _end_tracking(context, Outcome.FAILED)  # before the server hears of it, which may end all tasks
        text = "".join(of_the_user(error, script).format())
        step = step_file.read(log_dir)
        context.membership.send(Failed(error=in_a_line(error), traceback=text, step=step))
        print(text, file=sys.stderr, end="")
        return 1
    return 0


def _run_fixed(argv: Sequence[str]) -> int:
    """Run the script of a fixed job: it finds the others by itself, so there is neither a link nor a coordinator."""
    limit_threads(TaskNode.from_env(os.environ).num_threads)
    faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)
    script = _enter(argv)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 (the script may raise anything)
        print("".join(of_the_user(error, script).format()), file=sys.stderr, end="")
        return 1
    return 0


def _enter(argv: Sequence[str]) -> Path:
    """Make this process look as if the script were its program; return the script."""
    script = Path(argv[0]).resolve()
    python_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.argv = [str(script), *argv[1:]]
    sys.path[:0] = [str(script.parent), *(part for part in python_path if part and part not in sys.path)]
    return script


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _exit_code(ended: SystemExit, context: TrainContext) -> int:
    if ended.code is None or ended.code == 0:
        for close in context.closers:
            close()
        _end_tracking(context, Outcome.FINISHED)
        return 0
    _end_tracking(context, Outcome.FAILED)
    if isinstance(ended.code, int):
        return ended.code
    print(ended.code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    code = main(sys.argv[1:])
    if FixedTask.is_said(os.environ):
        sys.exit(code)  # what the script left to be done at the end of its program is its own
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that still drop connections have nothing more to save
