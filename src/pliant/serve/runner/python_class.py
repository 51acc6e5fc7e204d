"""The runner of a Python class with `predict`, `stream`, or both.

    class Model:
        def load(self):                 # optional
            self.scale = 2.0
        def predict(self, batch):       # a list of inputs → a list of as many outputs
            return [{"y": one["x"] * self.scale} for one in batch]
        def stream(self, one):          # one input → its output in parts
            for x in one["x"]:
                yield {"y": x * self.scale}

An element of `batch` is one request. Over the Open Inference Protocol it is a dict of its tensors by name, as numpy
arrays of the shapes that were sent; with `raw = True` in the class it is the decoded JSON. Over IBM's route it is the
decoded JSON. An output is a dict of arrays by name, one array (called `output`), or what JSON can hold.

`ValueError` says that an input is not one: HTTP 400 with its words. If `predict` raises for a batch of several, it is
called again for each of them alone, so that one does not spoil the others.

Clients that take an answer in parts get what `stream` yields, each part as it comes; several streams go on in turns.
When the client is gone the generator is closed: `yield` raises GeneratorExit. Everybody else gets what `predict`
returns. Where there is no `predict`, they get the only part of a stream, and HTTP 400 if it has several.
"""

import importlib.util
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2 import InferRequest
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.errors import ModelNotLoaded, error_line
from pliant.serve.runner.flat_json import read_flat, write_flat
from pliant.serve.runner.json_values import complete_v2, json_part, read_json, write_json
from pliant.serve.runner.metadata import ModelMetadata, parse_max_batch_size, parse_tensors
from pliant.serve.runner.request import (
    BYTES_TYPE,
    FLAT_API,
    TENSOR_APIS,
    BatchOfRequests,
    KernelRequest,
    KernelResult,
    failure,
)
from pliant.serve.runner.session import KernelSession
from pliant.serve.runner.streams import close_parts
from pliant.serve.runner.tensors import as_arrays, as_json, read_tensors, write_json_tensors, write_tensors

_FORM: Final = "define one: class Model, with predict(self, batch) or stream(self, one)"
_NOT_ONE: Final = (
    "this model answers in parts; ask it by /generate_stream, with `Accept: text/event-stream`, with ModelStreamInfer "
    "over gRPC, or with `pliant predict --stream`"
)


def serve(session: KernelSession, model: DeployedModel) -> None:
    """Load the class, and answer requests with it.

    Raises:
        ModelNotLoaded: the file has no such class.
    """
    session.serve(load(model))


def load(model: DeployedModel) -> "PythonModel":
    """Return the model that a file's class is.

    Raises:
        ModelNotLoaded: the file has no such class, or its attributes are not what they have to be.
    """
    path = model.path
    sys.argv = [str(path), *model.args]
    sys.path.insert(0, str(path.parent))
    instance = find_class(_import(path), model.file)()
    if callable(prepare := getattr(instance, "load", None)):
        prepare()
    metadata = ModelMetadata(
        platform=str(getattr(instance, "platform", "python")),
        inputs=parse_tensors("inputs", getattr(instance, "inputs", ())),
        outputs=parse_tensors("outputs", getattr(instance, "outputs", ())),
        max_batch_size=parse_max_batch_size(getattr(instance, "max_batch_size", None)),
        decoupled=callable(getattr(instance, "stream", None)),
    )
    return PythonModel(model, instance, metadata)


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ModelNotLoaded(f"{path.name} is no Python file; name one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # as an import would: pickle and dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def find_class(module: ModuleType, file: str) -> type:
    """Return the class that serves: the one called `Model`, or the only public one that has `predict` or `stream`.

    Raises:
        ModelNotLoaded: there is none, or several.
    """
    found = {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, type)
        and not name.startswith("_")
        and any(callable(getattr(one, method, None)) for method in ("predict", "stream"))
        and (one.__module__ == module.__name__ or name == "Model")
    }
    if "Model" in found:
        return found["Model"]
    if not found:
        raise ModelNotLoaded(f"{file} has no public class with `predict` or `stream`; {_FORM}")
    if len(found) > 1:
        raise ModelNotLoaded(f"{file} has several classes that serve: {', '.join(found)}; call one of them Model")
    return next(iter(found.values()))


@dataclass(frozen=True, slots=True)
class _Asked:
    request: KernelRequest
    given: Any
    infer: InferRequest | None
    """None: it was read as JSON."""


def _asked_of(request: KernelRequest, infer: InferRequest) -> _Asked:
    return _Asked(request, {tensor.name: tensor.data for tensor in infer.inputs}, infer)


def _as_event(request: KernelRequest, part: KernelResult) -> KernelResult:
    """Return a part as it can be sent: over HTTP it is text among others."""
    if part.type == BYTES_TYPE and request.takes_parts and request.api != "grpc":
        return failure(400, "over HTTP the parts of an answer are JSON, and this one is bytes; ask over gRPC for those")
    return part


class _WrongNumber(TypeError):
    """`predict` gave more or fewer outputs than there were inputs; nobody knows whose they are."""


class PythonModel:
    """An instance of a person's class."""

    def __init__(self, model: DeployedModel, instance: Any, metadata: ModelMetadata) -> None:
        self.metadata = metadata
        self._model = model
        self._instance = instance
        self._is_raw = bool(getattr(instance, "raw", False))
        self._has_predict = callable(getattr(instance, "predict", None))

    def serve(self, batch: BatchOfRequests) -> None:
        """Answer a batch.

        Raises:
            Exception: `predict` has failed for every request; those that are not answered get that error.
        """
        asked: list[_Asked] = []
        while (request := batch.take()) is not None:
            try:
                one = self._read(request)
            except InvalidInput as error:
                batch.answer([(request, failure(400, str(error)))])
                continue
            if not self.metadata.decoupled or (self._has_predict and not request.takes_parts):
                asked.append(one)
            elif request.takes_parts:
                batch.stream(request, self._parts(one))
            else:
                batch.stream(request, self._only_part(one))
        if asked:
            self._answer(batch, asked)

    def _answer(self, batch: BatchOfRequests, asked: list[_Asked]) -> None:
        try:
            outputs = self._predict([one.given for one in asked])
        except _WrongNumber:
            raise
        except Exception as error:  # noqa: BLE001 (a model may raise anything)
            self._answer_alone(batch, asked, error)
        else:
            batch.answer([(one.request, self._write(one, output)) for one, output in zip(asked, outputs, strict=True)])

    def _parts(self, asked: _Asked) -> Generator[KernelResult]:
        """Yield the parts of an answer; an error is the last."""
        try:
            parts = self._instance.stream(asked.given)
            if isinstance(parts, Mapping | str | bytes) or not isinstance(parts, Iterable):
                raise TypeError(f"stream returned {type(parts).__name__}; let it yield the parts of one answer")
            try:
                for part in parts:
                    yield _as_event(asked.request, self._write(asked, part))
            finally:
                close_parts(parts)
        except ValueError as refused:
            yield failure(400, str(refused) or error_line(refused))

    def _only_part(self, asked: _Asked) -> Generator[KernelResult]:
        """Yield nothing but the answer of a stream that has one part, or an error."""
        parts = self._parts(asked)
        answer = next(parts, None)
        if answer is None:
            yield failure(500, "the model gave no answer; let `stream` yield one part at least, or add `predict`")
        elif answer.status < 400 and next(parts, None) is not None:
            parts.close()
            yield failure(400, _NOT_ONE)
        else:
            yield answer

    def _answer_alone(self, batch: BatchOfRequests, asked: list[_Asked], error: Exception) -> None:
        """Answer requests one by one after an error, so that only those fail that are at fault."""
        last, num_failed = error, 0
        answers: list[tuple[KernelRequest, KernelResult]] = []
        for one in asked:
            try:
                if len(asked) == 1:
                    raise error
                answers.append((one.request, self._write(one, self._predict([one.given])[0])))
            except ValueError as refused:
                answers.append((one.request, failure(400, str(refused) or error_line(refused))))
            except Exception as failed:  # noqa: BLE001 (a model may raise anything)
                answers.append((one.request, failure(500, error_line(failed))))
                last, num_failed = failed, num_failed + 1
        batch.answer(answers)
        if num_failed == len(asked):
            raise last

    def _predict(self, batch: list[Any]) -> Sequence[Any]:
        outputs = self._instance.predict(batch)
        if isinstance(outputs, Mapping | str | bytes) or not isinstance(outputs, Sized):
            raise _WrongNumber(f"predict returned {type(outputs).__name__}; return a list, one output for each input")
        if len(outputs) != len(batch):
            raise _WrongNumber(f"predict returned {len(outputs)} outputs for {len(batch)} inputs; return one for each")
        return list(outputs)  # type: ignore[call-overload,no-any-return]

    def _read(self, request: KernelRequest) -> _Asked:
        if request.api not in (*TENSOR_APIS, FLAT_API, "dlim"):
            raise InvalidInput.at("", f"this model does not speak {request.api}; ask it over REST")
        if request.api == FLAT_API and not self._is_raw:
            return _asked_of(request, read_flat(request.body, self.metadata))
        if request.api in TENSOR_APIS and not self._is_raw:
            return _asked_of(request, read_tensors(request, self.metadata))
        if request.api == "grpc" or (request.api == "v2" and request.num_json is not None):
            return _Asked(request, as_json(request), None)
        return _Asked(request, read_json(json_part(request)), None)

    def _write(self, asked: _Asked, output: Any) -> KernelResult:
        try:
            if asked.request.api in TENSOR_APIS:
                return self._write_v2(asked, output)
            if asked.request.api == FLAT_API and asked.infer is not None:
                return write_flat(asked.infer, self._model, as_arrays(output))
            if isinstance(output, bytes):
                return KernelResult(body=output, type=BYTES_TYPE)
            return write_json(output)
        except InvalidInput as error:
            return failure(400, str(error))
        except Exception as error:  # noqa: BLE001 (whatever the output is, the others are answered)
            return failure(500, error_line(error))

    def _write_v2(self, asked: _Asked, output: Any) -> KernelResult:
        if self._is_raw and isinstance(output, dict) and isinstance(output.get("outputs"), list):
            if asked.request.api == "grpc":
                return write_json_tensors(asked.request, self._model, output["outputs"])
            return write_json(complete_v2(output, asked.request, self._model))
        infer = asked.infer or read_tensors(asked.request, self.metadata)
        return write_tensors(asked.request, infer, self._model, as_arrays(output))
