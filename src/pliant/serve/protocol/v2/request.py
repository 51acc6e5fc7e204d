"""The nouns of a request of the Open Inference Protocol, version 2."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

RAW_OUTPUT: Final = "binary_data_output"
"""The parameter of a request that asks for every output as binary data."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tensor:
    """One input. The array is its own: in the machine's byte order, aligned, and may be written to."""

    name: str
    datatype: str
    """As it was sent, such as `FP32`."""
    shape: tuple[int, ...]
    data: NDArray[Any]
    """Of that shape. BYTES are objects of `bytes`; BF16, which numpy lacks, is widened to float32, which is exact."""
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedOutput:
    """One output that the caller wants."""

    name: str
    binary: bool | None = None
    """As binary data; None: as the request says for all of them."""
    classification: int | None = None
    """Only so many of the largest values, with their indices."""
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InferRequest:
    """What a caller asks of a model."""

    id: str = ""
    """Comes back with the answer."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[RequestedOutput, ...] = ()
    """Empty: all that the model has."""
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_raw(self) -> bool:
        """Whether the body was data alone: one input without a name, whose bytes the model's metadata explains."""
        return len(self.inputs) == 1 and not self.inputs[0].datatype


def raw_request(body: bytes | memoryview) -> InferRequest:
    """Return the request whose body is the data of the only input; all outputs come as binary data."""
    data = np.frombuffer(body, np.uint8).copy()
    tensor = Tensor(name="", datatype="", shape=data.shape, data=data)
    return InferRequest(inputs=(tensor,), parameters={RAW_OUTPUT: True})
