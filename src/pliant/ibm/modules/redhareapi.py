"""`from redhareapi import Kernel`: IBM's API for scripts that answer inference requests.

    class Echo(Kernel):
        def on_task_invoke(self, task_context):
            while task_context is not None:
                task_context.set_output_data(task_context.get_input_data())
                task_context = task_context.next()

    Echo().run()

The rules of tasks are those of `pliant.serve.runner.redhare`. Log lines of `Kernel.log_*` go to the kernel's stderr;
`DLIM_MK_LOG_LEVEL` says from which level on.
"""

import os
import sys
import time
import uuid
from typing import Any, Final

from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.redhare import RedhareTask, serve_kernel

_LEVELS: Final = ("debug", "info", "warn", "error")


class KernelContext:
    """What a kernel is told about itself."""

    def __init__(self, model: DeployedModel, description: str) -> None:
        self._model = model
        self._description = description

    def get_id(self) -> str:
        """Return the kernel's name."""
        return self._model.kernel

    def get_instance_id(self) -> str:
        """Return the id of the job whose kernel it is."""
        return self._model.job_id

    def get_model_description(self) -> str:
        """Return `model.json` as JSON, with `model_path`: the folder where the model lies."""
        return self._description


class TaskContext:
    """One request. It stays valid until `on_task_invoke` returns."""

    def __init__(self, task: RedhareTask) -> None:
        self._task = task
        self._uuid = ""

    def get_id(self) -> str:
        """Return a number that no other request of this kernel has."""
        return str(self._task.request.id)

    def get_uuid(self) -> str:
        """Return an id that no other request has anywhere."""
        if not self._uuid:
            self._uuid = str(uuid.uuid4())
        return self._uuid

    def get_session_id(self) -> str:
        """Return what the client calls the series of requests that this one belongs to; empty if it does not."""
        return str(self._task.request.params.get("session", ""))

    def get_job_id(self) -> str:
        """Return the id of the job whose kernel it is."""
        return self._task.batch.model.job_id

    def get_version(self) -> str:
        """Return the number of the model's version."""
        return str(self._task.batch.model.version)

    def get_model_name(self) -> str:
        """Return the endpoint's name."""
        return self._task.batch.model.endpoint

    def get_input_data(self) -> str:
        """Return the body of the request; tensors in binary form are lists in it."""
        return self._task.text

    def get_input_data_extend(self) -> bytes:
        """Return the bytes that followed the JSON of the body; empty if none did."""
        return self._task.bytes_after

    def set_output_data(self, data: Any) -> None:
        """Answer: a string or bytes are the answer as they are, anything else becomes JSON. The last one counts."""
        if not self._task.set_output("null" if data is None else data):
            Kernel.log_warn(f"task {self.get_id()} has been answered; a later output is dropped")

    def set_output_data_extend(self, data: bytes) -> None:
        """Let bytes follow the output."""
        self._task.extend = bytes(data)

    def report_ready(self) -> None:
        """Let the output leave now."""
        self._task.batch.flush()

    def next(self) -> "TaskContext | None":
        """Return the next request of the batch; None: there is none now."""
        return _context_of(self._task.next())

    def prev(self) -> "TaskContext | None":
        """Return the request before this one; None: this is the first."""
        return _context_of(self._task.previous())


class Kernel:
    """Base of kernels; override what is needed, and call `run` at the bottom of the script."""

    def on_kernel_start(self, kernel_context: KernelContext) -> None:
        """Load the model; the kernel is given requests when this has returned."""

    def on_task_invoke(self, task_context: TaskContext) -> None:
        """Answer the batch that begins with this request."""
        raise NotImplementedError(f"{type(self).__name__} has no on_task_invoke; define it to answer requests")

    def on_kernel_shutdown(self) -> None:
        """Clean up; all requests that were begun are answered."""

    def run(self) -> None:
        """Serve until the kernel has to go."""
        serve_kernel(lambda model, description: _Hooks(self, KernelContext(model, description)))

    @staticmethod
    def log_debug(message: object) -> None:
        """Print to stderr, if DLIM_MK_LOG_LEVEL is `debug`."""
        _log("debug", message)

    @staticmethod
    def log_info(message: object) -> None:
        """Print to stderr."""
        _log("info", message)

    @staticmethod
    def log_warn(message: object) -> None:
        """Print to stderr."""
        _log("warn", message)

    @staticmethod
    def log_error(message: object) -> None:
        """Print to stderr."""
        _log("error", message)


class _Hooks:
    def __init__(self, kernel: Kernel, context: KernelContext) -> None:
        self._kernel = kernel
        self._context = context

    def start(self) -> None:
        self._kernel.on_kernel_start(self._context)

    def invoke(self, first: RedhareTask) -> None:
        context = _context_of(first)
        assert context is not None
        self._kernel.on_task_invoke(context)

    def shut_down(self) -> None:
        self._kernel.on_kernel_shutdown()


def _context_of(task: RedhareTask | None) -> TaskContext | None:
    """Return the context of a task, the same one every time."""
    if task is None:
        return None
    if task.context is None:
        task.context = TaskContext(task)
    context: TaskContext = task.context
    return context


def _log(level: str, message: object) -> None:
    least = os.environ.get("DLIM_MK_LOG_LEVEL", "info").lower()
    if _LEVELS.index(level) >= (_LEVELS.index(least) if least in _LEVELS else 1):
        print(f"[{time.strftime('%Y-%m-%d %H:%M:%S')}] {level.upper()} {message}", file=sys.stderr, flush=True)
