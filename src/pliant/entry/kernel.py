"""The process of a kernel: loads a model, and answers the requests that the gateway gives it.

`main` is called in a process forked from the zygote; `python -m pliant.entry.kernel FILE [ARGS…]` is the same, cold.
What it serves stands in its environment: see docs/task-environment.md. The model comes from people: this process may
run any code, and holds nothing but the socket. It ends with code 0 when it was told to go, and with 1 and a last line
on stderr that says why when the model cannot be loaded, fails again and again, or no gateway comes.
"""

import atexit
import faulthandler
import io
import os
import runpy
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from pliant.core.task_environment import STACKS_SIGNAL, ServingTask, TaskEnvironment, TaskNode
from pliant.entry.script_error import in_a_line, of_the_user
from pliant.serve.runner.connection import GatewayFinder
from pliant.serve.runner.deployed import BuiltModel, DeployedModel, serve_model
from pliant.serve.runner.errors import KernelBroken, ModelNotLoaded, NoGateway
from pliant.serve.runner.gpu_memory import keep_to_part_of_gpu
from pliant.serve.runner.leaving import LeaveSignal
from pliant.serve.runner.session import KernelIdentity, KernelSession
from pliant.train.determinism import limit_threads
from pliant.train.handover import take_model

TOKEN: Final = "PLIANT_KERNEL_TOKEN"


def main(argv: Sequence[str]) -> NoReturn:
    """Be a kernel until it has to go; the process ends with it, also if the model has left threads behind.

    Args:
        argv: the file that is run, and the arguments of a job's script; the file of the environment counts.
    """
    code = 1
    try:
        code = _run(tuple(argv[1:]))
    finally:
        with suppress(Exception):
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _run(args: tuple[str, ...]) -> int:
    leave = LeaveSignal()
    leave.install()
    faulthandler.register(STACKS_SIGNAL, file=2, all_threads=True)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # models print what strangers have sent
    environment, serving = TaskEnvironment.from_env(os.environ), ServingTask.from_env(os.environ)
    os.environ.pop(TOKEN)  # the model and what it starts have no use for it
    node = TaskNode.from_env(os.environ)
    limit_threads(node.num_threads)
    keep_to_part_of_gpu(node.slot_share)
    session = KernelSession(
        KernelIdentity(task=environment.task_id, token=serving.token),
        GatewayFinder(Path(serving.gateway)).connect,
        leave,
        time.monotonic,
    )
    os.register_at_fork(after_in_child=session.close)
    model = DeployedModel(
        runner=serving.runner,
        folder=Path(serving.folder),
        file=serving.file,
        args=args,
        weights=serving.weights,
        endpoint=serving.endpoint,
        version=serving.version,
        kernel=serving.kernel,
        job_id=environment.job_id,
        num_threads=node.num_threads,
        slot_share=node.slot_share,
        build=build_model,
    )
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in paths if path and path not in sys.path]
    session.begin()
    return _serve(session, model)


def _serve(session: KernelSession, model: DeployedModel) -> int:
    """Load and serve; return the exit code."""
    try:
        serve_model(session, model)
    except (KernelBroken, NoGateway) as error:
        print(f"pliant: {error}", file=sys.stderr)
        return 1
    except ModelNotLoaded as error:
        return _say_not_loaded(str(error))
    except SystemExit as ended:
        return _exit_code(ended, session)
    except KeyboardInterrupt:
        return 130
    except BaseException as error:  # noqa: BLE001 (a model's code may raise anything)
        print("".join(of_the_user(error, model.folder / model.file).format()), file=sys.stderr, end="")
        if session.has_served:
            print(f"pliant: the kernel has failed when it ended: {in_a_line(error)}", file=sys.stderr)
            return 1
        return _say_not_loaded(in_a_line(error))
    return 0


def _exit_code(ended: SystemExit, session: KernelSession) -> int:
    """Return the code of a model that ends the process by itself; it never looks as if it was told to."""
    if not session.has_served:
        return _say_not_loaded(f"it has ended the process with sys.exit({ended.code!r})")
    print(f"pliant: the model has ended the process with sys.exit({ended.code!r})", file=sys.stderr)
    return ended.code & 0xFF or 1 if isinstance(ended.code, int) else 1


def _say_not_loaded(why: str) -> int:
    print(f"pliant: the model was not loaded: {why}", file=sys.stderr)
    return 1


def build_model(script: Path, args: tuple[str, ...]) -> BuiltModel:
    """Run a job's script until it has its model.

    Raises:
        TrainingError: it has ended without one.
    """
    sys.argv = [str(script), *args]
    sys.path.insert(0, str(script.parent))
    module, sample = take_model(lambda: runpy.run_path(str(script), run_name="__main__"))
    return BuiltModel(module=module, sample=sample)


if __name__ == "__main__":
    main(sys.argv[1:])
