"""A model that maps arrays to arrays (`TensorModel`): reads requests, computes them together, writes answers.

Knows no library: what computes is given. `v2` requests are tensors, `dlim` ones either the same JSON, or plain lists:
`{"x": [[1, 2]]}` is answered by `{"output": [[3]]}`; for `generate` see `flat_json`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pliant.core.errors import InvalidInput
from pliant.serve.protocol.v2 import InferRequest
from pliant.serve.runner.deployed import DeployedModel
from pliant.serve.runner.errors import error_line, last_line
from pliant.serve.runner.flat_json import read_flat, write_flat
from pliant.serve.runner.joined import Arrays, Computed, JoinedCompute
from pliant.serve.runner.json_values import json_part, read_json, write_json
from pliant.serve.runner.metadata import ModelMetadata
from pliant.serve.runner.request import (
    FLAT_API,
    TENSOR_APIS,
    BatchOfRequests,
    KernelRequest,
    KernelResult,
    failure,
)
from pliant.serve.runner.tensors import check_inputs, plain_arrays, read_tensors, write_tensors


@dataclass(frozen=True, slots=True)
class _Asked:
    request: KernelRequest
    inputs: Arrays
    infer: InferRequest | None
    """None: plain JSON."""


class TensorModel:
    """A loaded model.

    Args:
        model: what is served.
        metadata: what it says of itself.
        compute: returns outputs by name.
        is_strict: refuse inputs that are not those of the metadata, before anything is computed.
        may_join: requests may be computed together.
        blames_caller: tells whether an error of `compute` is due to the inputs.
    """

    def __init__(
        self,
        model: DeployedModel,
        metadata: ModelMetadata,
        compute: Callable[[Arrays], Arrays],
        *,
        is_strict: bool,
        may_join: bool = True,
        blames_caller: Callable[[Exception], bool],
    ) -> None:
        self.metadata = metadata
        self._model = model
        self._joined = JoinedCompute(compute, may_join)
        self._is_strict = is_strict
        self._blames_caller = blames_caller

    def serve(self, batch: BatchOfRequests) -> None:
        """Answer a batch.

        Raises:
            Exception: the model could compute none of its requests, and that is not their fault; all are answered.
        """
        answers: list[tuple[KernelRequest, KernelResult]] = []
        asked: list[_Asked] = []
        while (request := batch.take()) is not None:
            try:
                asked.append(self._read(request))
            except InvalidInput as error:
                answers.append((request, failure(400, str(error))))
        computed = self._joined.compute([one.inputs for one in asked])
        answers += [(one.request, self._write(one, outputs)) for one, outputs in zip(asked, computed, strict=True)]
        batch.answer(answers)
        errors = [one for one in computed if isinstance(one, Exception) and not self._blames_caller(one)]
        if errors and len(errors) == len(computed):
            raise errors[-1]

    def _read(self, request: KernelRequest) -> _Asked:
        if request.api in TENSOR_APIS:
            return self._read_tensors(request, read_tensors(request, self.metadata))
        if request.api == FLAT_API:
            return self._read_tensors(request, read_flat(request.body, self.metadata))
        if request.api != "dlim":
            raise InvalidInput.at("", f"this model does not speak {request.api}; ask it over REST")
        value = read_json(json_part(request))
        if isinstance(value, dict) and _are_tensors(value.get("inputs")):
            return self._read_tensors(request, read_tensors(request, self.metadata))
        inputs = plain_arrays(value, self.metadata)
        self._check(inputs)
        return _Asked(request, inputs, None)

    def _read_tensors(self, request: KernelRequest, infer: InferRequest) -> _Asked:
        inputs = {tensor.name: tensor.data for tensor in infer.inputs}
        if len(inputs) == 1 and len(self.metadata.inputs) == 1:  # the only one is meant, whatever it is called
            inputs = {self.metadata.inputs[0].name: infer.inputs[0].data}
        self._check(inputs)
        return _Asked(request, inputs, infer)

    def _check(self, inputs: Arrays) -> None:
        if self._is_strict:
            check_inputs(inputs, self.metadata.inputs)

    def _write(self, asked: _Asked, computed: Computed) -> KernelResult:
        if isinstance(computed, Exception):
            if self._blames_caller(computed):
                return failure(400, f"the model cannot compute these inputs: {last_line(computed)}")
            return failure(500, f"{type(computed).__name__}: {last_line(computed)}")
        try:
            if asked.request.api == FLAT_API and asked.infer is not None:
                return write_flat(asked.infer, self._model, computed)
            if asked.infer is not None:
                return write_tensors(asked.request, asked.infer, self._model, computed)
            return write_json(dict(computed))
        except InvalidInput as error:
            return failure(400, str(error))
        except Exception as error:  # noqa: BLE001 (whatever the outputs are, the others are answered)
            return failure(500, error_line(error))


def _are_tensors(inputs: Any) -> bool:
    return isinstance(inputs, list) and any(isinstance(one, dict) and "datatype" in one for one in inputs)
