"""The runner of a Python class with `predict`.

    class Model:
        def load(self):                 # optional
            self.scale = 2.0
        def predict(self, batch):       # a list of inputs → a list of as many outputs
            return [{"y": one["x"] * self.scale} for one in batch]

An element of `batch` is one request. Over the Open Inference Protocol it is a dict of its tensors by name, as numpy
arrays of the shapes that were sent; with `raw = True` in the class it is the decoded JSON. Over IBM's route it is the
decoded JSON. An output is a dict of arrays by name, one array (called `output`), or what JSON can hold.

`ValueError` says that an input is not one: HTTP 400 with its words. If `predict` raises for a batch of several, it is
called again for each of them alone, so that one does not spoil the others.
"""

import importlib.util
import sys
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2 import InferRequest
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.errors import ModelNotLoaded, error_line
from pliant.serve.runner.json_values import complete_v2, json_part, read_json, write_json
from pliant.serve.runner.metadata import ModelMetadata, parse_max_batch_size, parse_tensors
from pliant.serve.runner.request import BYTES_TYPE, TENSOR_APIS, BatchOfRequests, KernelRequest, KernelResult, failure
from pliant.serve.runner.session import KernelSession
from pliant.serve.runner.tensors import as_arrays, as_json, read_tensors, write_json_tensors, write_tensors

_FORM: Final = "define one: class Model, with predict(self, batch)"


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
    """Return the class that serves: the one called `Model`, or the only public one that has `predict`.

    Raises:
        ModelNotLoaded: there is none, or several.
    """
    found = {
        name: one
        for name, one in vars(module).items()
        if isinstance(one, type)
        and not name.startswith("_")
        and callable(getattr(one, "predict", None))
        and (one.__module__ == module.__name__ or name == "Model")
    }
    if "Model" in found:
        return found["Model"]
    if not found:
        raise ModelNotLoaded(f"{file} has no public class with `predict`; {_FORM}")
    if len(found) > 1:
        raise ModelNotLoaded(f"{file} has several classes with `predict`: {', '.join(found)}; call one of them Model")
    return next(iter(found.values()))


@dataclass(frozen=True, slots=True)
class _Asked:
    request: KernelRequest
    given: Any
    infer: InferRequest | None
    """None: it was read as JSON."""


class _WrongNumber(TypeError):
    """`predict` gave more or fewer outputs than there were inputs; nobody knows whose they are."""


class PythonModel:
    """An instance of a person's class."""

    def __init__(self, model: DeployedModel, instance: Any, metadata: ModelMetadata) -> None:
        self.metadata = metadata
        self._model = model
        self._instance = instance
        self._is_raw = bool(getattr(instance, "raw", False))

    def serve(self, batch: BatchOfRequests) -> None:
        """Answer a batch.

        Raises:
            Exception: `predict` has failed for every request; those that are not answered get that error.
        """
        asked: list[_Asked] = []
        while (request := batch.take()) is not None:
            try:
                asked.append(self._read(request))
            except InvalidInput as error:
                batch.answer([(request, failure(400, str(error)))])
        if not asked:
            return
        try:
            outputs = self._predict([one.given for one in asked])
        except _WrongNumber:
            raise
        except Exception as error:  # noqa: BLE001 (a model may raise anything)
            self._answer_alone(batch, asked, error)
        else:
            batch.answer([(one.request, self._write(one, output)) for one, output in zip(asked, outputs, strict=True)])

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
        if request.api not in (*TENSOR_APIS, "dlim"):
            raise InvalidInput.at("", f"this model does not speak {request.api}; ask it over REST")
        if request.api in TENSOR_APIS and not self._is_raw:
            infer = read_tensors(request, self.metadata)
            return _Asked(request, {tensor.name: tensor.data for tensor in infer.inputs}, infer)
        if request.api == "grpc" or (request.api == "v2" and request.num_json is not None):
            return _Asked(request, as_json(request), None)
        return _Asked(request, read_json(json_part(request)), None)

    def _write(self, asked: _Asked, output: Any) -> KernelResult:
        try:
            if asked.request.api in TENSOR_APIS:
                return self._write_v2(asked, output)
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
