"""The runner of IBM's kernels: a script with a subclass of `redhareapi.Kernel`, and `.run()` at its bottom.

The script is run; its call of `run` comes here (`serve_kernel`), starts the kernel, and returns when it has to go.
IBM's classes are `pliant.ibm.modules.redhareapi`; here stand the rules of tasks, as `RedhareTask`:

* a batch is a linked list: `next` leads from one task to the following one, None closes the batch
* a task stays valid until `on_task_invoke` returns, so kernels may collect tasks, compute them together, and give the
  outputs afterwards
* the last output of a task is its answer; it leaves with the next call of `next`, or when `on_task_invoke` returns
* a task without output is answered with HTTP 500
"""

import json
import os
import runpy
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pliant.core.errors import InvalidInput
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.errors import ModelNotLoaded
from pliant.serve.runner.json_values import complete_v2, json_part, write_json, write_text
from pliant.serve.runner.metadata import ModelMetadata
from pliant.serve.runner.request import TENSOR_APIS, BatchOfRequests, KernelRequest, KernelResult, failure
from pliant.serve.runner.session import KernelSession

DESCRIPTION: Final = "model.json"
_MAX_DESCRIPTION: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Host:
    session: KernelSession
    model: DeployedModel


_HOST: Final[ContextVar[_Host]] = ContextVar("pliant_redhare_host")


class RedhareHooks(Protocol):
    """What a kernel's script defines."""

    def start(self) -> None: ...
    def invoke(self, first: "RedhareTask") -> None: ...
    def shut_down(self) -> None: ...


def serve(session: KernelSession, model: DeployedModel) -> None:
    """Run the kernel's script.

    Raises:
        ModelNotLoaded: it did not call `run`.
    """
    path = model.path
    _set_variables(model)
    sys.argv = [str(path), *model.args]
    sys.path.insert(0, str(path.parent))
    _HOST.set(_Host(session, model))
    runpy.run_path(str(path), run_name="__main__")
    if not session.has_served:
        raise ModelNotLoaded(f"{model.file} has ended without a kernel; end it with YourKernel().run()")


def serve_kernel(make: Callable[[DeployedModel, str], RedhareHooks]) -> None:
    """Start a kernel, and give it tasks until it has to go.

    Args:
        make: returns the kernel; called with what is served, and with its description as JSON.

    Raises:
        RuntimeError: this process is no kernel of an endpoint.
    """
    host = _HOST.get(None)
    if host is None:
        raise RuntimeError("a kernel runs in an endpoint; deploy its folder with `pliant deploy` and ask it there")
    hooks = make(host.model, describe(host.model))
    hooks.start()
    host.session.serve(_RedhareModel(host.model, hooks))
    hooks.shut_down()


def describe(model: DeployedModel) -> str:
    """Return the description of a model as JSON: what stands in `model.json`, and where it lies now."""
    given = read_description(model)
    defaults = {
        "tag": "",
        "weight_path": "",
        "runtime": "",
        "attributes": [],
        "mk_environments": [],
        "schema_version": "1",
    }
    here = {
        "name": model.endpoint,
        "kernel_path": model.file,
        "model_path": str(model.folder),
        "version": model.version,
    }
    return json.dumps({**defaults, **given, **here})


def read_description(model: DeployedModel) -> dict[str, Any]:
    """Return what stands in `model.json`; nothing if there is none.

    Raises:
        ModelNotLoaded: it is no JSON object.
    """
    path = model.folder / DESCRIPTION
    if not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            given = json.loads(file.read(_MAX_DESCRIPTION))
    except (ValueError, RecursionError) as error:
        raise ModelNotLoaded(f"{DESCRIPTION} is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise ModelNotLoaded(f'{DESCRIPTION} is no JSON object; write {{"name": "{model.endpoint}", …}}')
    return given


def _set_variables(model: DeployedModel) -> None:
    """Set the variables that `model.json` names; those of the endpoint go before."""
    listed = read_description(model).get("mk_environments")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("name"), str) and one["name"]:
            os.environ.setdefault(one["name"], str(one.get("value", "")))


class _RedhareModel:
    def __init__(self, model: DeployedModel, hooks: RedhareHooks) -> None:
        self._model = model
        self._hooks = hooks
        self.metadata = ModelMetadata(platform="redhare")

    def serve(self, batch: BatchOfRequests) -> None:
        """Give a batch to the kernel."""
        tasks = RedhareBatch(self._model, batch)
        first = tasks.first()
        try:
            if first is not None:
                self._hooks.invoke(first)
        finally:
            tasks.close()


class RedhareBatch:
    """The tasks of one call of `on_task_invoke`, in their order."""

    def __init__(self, model: DeployedModel, batch: BatchOfRequests) -> None:
        self.model = model
        self._batch = batch
        self._tasks: list[RedhareTask] = []
        self._is_open = True

    def first(self) -> "RedhareTask | None":
        """Return the first task that can be read."""
        return self._fetch()

    def after(self, index: int) -> "RedhareTask | None":
        """Return the task that follows one, and let the outputs leave that are there."""
        if index + 1 < len(self._tasks):
            return self._tasks[index + 1]
        if not self._is_open:
            return None
        self.flush()
        return self._fetch()

    def at(self, index: int) -> "RedhareTask | None":
        return self._tasks[index] if 0 <= index < len(self._tasks) else None

    def flush(self) -> None:
        """Send all outputs that are there and have not left."""
        ready = [task for task in self._tasks if task.leave()]
        self._batch.answer([(task.request, self._result(task)) for task in ready])

    def close(self) -> None:
        """Send what is there; nothing follows."""
        self._is_open = False
        self.flush()

    def _fetch(self) -> "RedhareTask | None":
        while (request := self._batch.take()) is not None:
            try:
                text = _text_of(request)
            except InvalidInput as error:
                self._batch.answer([(request, failure(400, str(error)))])
                continue
            self._tasks.append(RedhareTask(self, len(self._tasks), request, text))
            return self._tasks[-1]
        return None

    def _result(self, task: "RedhareTask") -> KernelResult:
        try:
            return _write(task, self.model)
        except (TypeError, ValueError, RecursionError) as error:
            return failure(500, f"the kernel's output cannot be sent: {error}")


class RedhareTask:
    """One request, as a kernel sees it."""

    def __init__(self, batch: RedhareBatch, index: int, request: KernelRequest, text: str) -> None:
        self.batch = batch
        self.request = request
        self.text = text
        """The body; tensors that followed it stand in it as lists."""
        self.output: Any = None
        self.extend = b""
        self._index = index
        self._has_left = False
        self.context: Any = None
        """What IBM's API makes of it."""

    @property
    def bytes_after(self) -> bytes:
        """What followed the JSON of the body."""
        return b"" if self.request.num_json is None else self.request.body[self.request.num_json :]

    def next(self) -> "RedhareTask | None":
        return self.batch.after(self._index)

    def previous(self) -> "RedhareTask | None":
        return self.batch.at(self._index - 1)

    def leave(self) -> bool:
        """Tell, once, that there is an output; it is not changed afterwards."""
        if self._has_left or self.output is None:
            return False
        self._has_left = True
        return True

    def set_output(self, output: Any) -> bool:
        """Take the answer; return whether it is in time."""
        if not self._has_left:
            self.output = output
        return not self._has_left


def _text_of(request: KernelRequest) -> str:
    if request.api == "grpc" or (request.api == "v2" and request.num_json is not None):
        from pliant.serve.runner.tensors import as_json  # numpy is imported where it is needed

        return json.dumps(as_json(request))
    return json_part(request).decode("utf-8", "surrogateescape")


def _write(task: RedhareTask, model: DeployedModel) -> KernelResult:
    output = task.output
    if not isinstance(output, str | bytes | bytearray | memoryview):
        output = write_json(output).body
    given = output if isinstance(output, str) else bytes(output)
    if task.request.api in TENSOR_APIS and not task.extend:
        try:
            value = json.loads(given)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and "outputs" in value:
            if task.request.api == "grpc":
                from pliant.serve.runner.tensors import write_json_tensors

                return write_json_tensors(task.request, model, value["outputs"])
            return write_json(complete_v2(value, task.request, model))
    if task.request.api == "grpc":
        raise ValueError('over gRPC an answer is tensors: {"outputs": [{"name", "datatype", "shape", "data"}]}')
    return write_text(given, task.extend)
